import { useParams } from '@tanstack/react-router'
import { Download, Pause, Play, RefreshCw } from 'lucide-react'
import { lazy, Suspense, useEffect, useState } from 'react'
import { milliseconds, now } from '../api'
import { ControlDialog } from '../control'
import type { Run } from '../gen/signalbox/v1/run_pb'
import {
  Ago,
  Button,
  cardHeight,
  copyCLI,
  DataTable,
  ErrorView,
  formatCount,
  Menu,
  Page,
  PageHead,
  Skeleton,
  TextField,
  usePreferences,
} from '../kit'
import { StartDialog } from '../start'
import { BatchDialog } from './BatchDialog'
import { ColumnChooser } from './ColumnChooser'
import { RunHistogram, StatusCounts } from './Counts'
import { isDenied, listEnd } from './ends'
import { currentView, exportAddress, isFiltered, listCommand, noFilter, viewFilter } from './filter'
import { FilterBar, Periods } from './FilterBar'
import { ListError, ListFoot, NoMatch, NoRuns } from './ListStates'
import { Peek } from './Peek'
import { PlatformAlerts } from './PlatformAlerts'
import styles from './runs.module.css'
import { ViewBar } from './SavedViews'
import { useRuns } from './useRuns'
import { cardLines } from './view'

const ReplayDialog = lazy(() => import('../control/ReplayDialog'))

/** The runs of a project. */
export function RunsPage() {
  const { project = '' }: { project?: string } = useParams({ strict: false })
  const page = useRuns(project)
  const { filter, state, feed, answered, offline, refused, peek, change } = page
  // Each part of the page would repeat that the project does not exist, or that there is no role for it.
  if (!state.ready && isDenied(state.error, filter)) {
    return (
      <Page title={`Runs of ${project}`}>
        <PageHead title="Runs" />
        <ErrorView error={state.error} what="Runs" />
      </Page>
    )
  }
  return (
    <Page title={`Runs of ${project}`} fill>
      <PageHead
        title="Runs"
        actions={
          <>
            <Periods filter={filter} onChange={change} />
            <Menu
              trigger={
                <Button icon={<Download size={14} aria-hidden />} refused={offline}>
                  Export
                </Button>
              }
              items={[
                ...(['csv', 'json'] as const).map((format) => ({
                  label: format === 'csv' ? 'CSV' : 'JSON, one run per line',
                  onSelect: () => download(exportAddress(project, filter, format, now())),
                })),
                { kind: 'separator', label: '' },
                {
                  label: 'Copy the CLI command of this list',
                  onSelect: () => copyCLI(listCommand(project, filter)),
                },
              ]}
            />
            <Button
              kind="primary"
              icon={<Play size={14} aria-hidden />}
              refused={refused}
              onClick={() => page.setStarting(true)}
            >
              Run…
            </Button>
          </>
        }
      >
        <ViewBar
          project={project}
          filter={filter}
          listed={answered}
          columns={page.columns}
          view={page.view}
          sameColumns={page.sameColumns}
          current={currentView(filter)}
          onBuiltIn={(builtIn) => page.showFilter(viewFilter(builtIn, filter))}
          onView={page.showView}
        />
      </PageHead>
      <PlatformAlerts project={project} />
      <RunHistogram
        project={project}
        filter={filter}
        listed={answered}
        onPeriod={(since, until) => change({ since, until })}
      />
      <StatusCounts
        project={project}
        filter={filter}
        listed={answered}
        onToggle={(status) =>
          change({
            statuses: filter.statuses.includes(status)
              ? filter.statuses.filter((s) => s !== status)
              : [...filter.statuses, status],
          })
        }
      />
      <div className={styles.tools}>
        <div ref={page.searchField} className={styles.search}>
          <SearchField value={filter.text} onCommit={(text) => change({ text })} />
        </div>
        <FilterBar
          project={project}
          filter={filter}
          invalid={page.invalid}
          onChange={change}
          open={page.filterOpen}
          onOpen={page.setFilterOpen}
        />
        <span className={styles.end}>
          {state.arrived.length > 0 ? (
            <Button
              onClick={feed.showNew}
            >{`${formatCount(state.arrived.length, state.overflow)} new ${state.arrived.length === 1 ? 'run' : 'runs'}`}</Button>
          ) : null}
          {state.refreshedAt === undefined ? null : (
            <span>
              Refreshed <Ago at={state.refreshedAt} />
            </span>
          )}
          <ColumnChooser columns={page.columns} cards={page.cards} onChange={page.chooseColumns} />
          <Button
            kind="quiet"
            aria-pressed={page.paused}
            icon={page.paused ? <Play size={14} aria-hidden /> : <Pause size={14} aria-hidden />}
            onClick={() => page.setPaused(!page.paused)}
          >
            {page.paused ? 'Resume' : 'Pause'}
          </Button>
          <Button
            kind="quiet"
            aria-label="Read the list again"
            icon={<RefreshCw size={14} aria-hidden />}
            onClick={() => void feed.reload()}
          />
        </span>
      </div>
      {page.selection.selected.size === 0 ? null : <SelectionBar page={page} />}
      <RunList project={project} page={page} />
      {peek === '' ? null : (
        <Peek
          project={project}
          id={peek}
          onLabel={page.addLabel}
          listed={page.peeked}
          onClose={() => page.showPeek('')}
          onPrevious={page.previous}
          onNext={page.next}
        />
      )}
      {page.starting ? (
        <StartDialog
          project={project}
          workflow={filter.workflow}
          version={filter.version}
          onClose={() => page.setStarting(false)}
        />
      ) : null}
      {page.control === undefined ? null : page.control.control === 'replay' ? (
        <Suspense>
          <ReplayDialog run={page.control.run} onClose={page.endControl} />
        </Suspense>
      ) : (
        <ControlDialog control={page.control.control} run={page.control.run} onClose={page.endControl} />
      )}
      {page.batch === undefined ? null : (
        <BatchDialog
          project={project}
          action={page.batch}
          selected={[...page.selection.selected]}
          filter={filter}
          onClose={() => page.setBatch(undefined)}
        />
      )}
    </Page>
  )
}

/** What can be done with the selected runs. */
function SelectionBar({ page }: { page: ReturnType<typeof useRuns> }) {
  const { selection } = page
  return (
    <div className={styles.selection} role="region" aria-label="Selection">
      <strong>{formatCount(selection.selected.size)} selected</strong>
      {page.matching === undefined ? null : (
        <span className={styles.number}>of {formatCount(page.matching.count, page.matching.more)} matching</span>
      )}
      <button type="button" className={styles.linkButton} onClick={selection.clear}>
        Clear the selection
      </button>
      <span className={styles.end}>
        {(['replay', 'cancel', 'terminate'] as const).map((action) => (
          <Button key={action} refused={page.refused} onClick={() => page.setBatch(action)}>
            {action === 'replay' ? 'Replay…' : action === 'cancel' ? 'Cancel…' : 'Terminate…'}
          </Button>
        ))}
      </span>
    </div>
  )
}

/** The rows, or why there are none. */
function RunList({ project, page }: { project: string; page: ReturnType<typeof useRuns> }) {
  const { density } = usePreferences()
  const { filter, state, feed, peek, change } = page
  const { shown } = state
  const heightOfCard = (run: Run) => {
    const lines = cardLines(page.columns, run)
    return cardHeight(2 + Number(lines.facts.length > 0) + Number(lines.labels))
  }
  return (
    <div
      ref={page.rows}
      className={styles.list}
      onPointerEnter={(event) => page.touch({ pointer: event.pointerType === 'mouse' })}
      onPointerLeave={() => page.touch({ pointer: false })}
      onFocus={() => page.touch({ focus: true })}
      onBlur={() => page.touch({ focus: false })}
      onScrollCapture={(event) => page.touch({ scrolled: (event.target as HTMLElement).scrollTop > 0 })}
    >
      {!state.ready || page.waiting ? (
        state.error === undefined ? (
          <Skeleton rows={16} />
        ) : (
          <ListError
            error={state.error}
            filter={filter}
            onRetry={() => void feed.reload()}
            onClear={() => change({ ...noFilter, order: filter.order })}
          />
        )
      ) : shown.length === 0 ? (
        isFiltered(filter) ? (
          <NoMatch project={project} filter={filter} onChange={change} />
        ) : (
          <NoRuns project={project} onStart={() => page.setStarting(true)} />
        )
      ) : (
        <DataTable
          label="Runs"
          columns={page.table}
          rows={shown}
          rowKey={(run) => run.id}
          onOpen={page.openRun}
          onPeek={(run) => page.showPeek(run.id === peek ? '' : run.id)}
          selected={page.selection.selected}
          onSelect={page.selection.select}
          faded={state.faded}
          active={page.active}
          onActive={page.activate}
          highlighted={peek}
          onEnd={feed.loadMore}
          onView={feed.setView}
          rowHeight={page.cards ? heightOfCard : density === 'compact' ? 28 : 32}
          footer={
            <ListFoot
              count={shown.length}
              end={listEnd(
                shown.length,
                state.next !== '',
                state.cut,
                milliseconds(shown.at(-1)?.createTime),
                filter.order,
              )}
              onContinue={change}
            />
          }
        />
      )}
    </div>
  )
}

/** download opens an address whose answer the browser saves as a file. */
function download(address: string): void {
  const link = document.createElement('a')
  link.href = address
  link.download = ''
  link.click()
}

function SearchField({ value, onCommit }: { value: string; onCommit: (text: string) => void }) {
  const [text, setText] = useState(value)
  useEffect(() => {
    setText(value)
  }, [value])
  useEffect(() => {
    if (text.trim() === value) return undefined
    const timer = window.setTimeout(() => {
      onCommit(text.trim())
    }, 300)
    return () => {
      window.clearTimeout(timer)
    }
  }, [text, value, onCommit])
  return (
    <TextField
      label="Beginning of a run ID or request ID"
      labelHidden
      type="search"
      placeholder="Run ID or request ID"
      value={text}
      onChange={(event) => setText(event.target.value)}
    />
  )
}
