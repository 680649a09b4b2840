import { useQueries, useQueryClient } from '@tanstack/react-query'
import { Link, useNavigate, useParams, useSearch } from '@tanstack/react-router'
import { Download, Pause, Play, RefreshCw } from 'lucide-react'
import { lazy, Suspense, useCallback, useEffect, useMemo, useRef, useState, useSyncExternalStore } from 'react'
import { callError, clients, milliseconds, now, useConnection, usePlatformProblems } from '../api'
import { rememberList } from '../app/list'
import { one, type Search, usePageKeys, useRefusal, useViews } from '../app'
import { ControlDialog } from '../control'
import type { Run } from '../gen/signalbox/v1/run_pb'
import {
  Ago,
  type Alert,
  AlertSlot,
  Button,
  cardHeight,
  command,
  CopyButton,
  copyCLI,
  DataTable,
  ErrorView,
  formatCount,
  Menu,
  Page,
  PageHead,
  plural,
  Since,
  Skeleton,
  StateView,
  TextField,
  useLinkRefusal,
  usePhone,
  setPreferences,
  usePreferences,
} from '../kit'
import type { Label } from '../labels'
import { StartDialog } from '../start'
import { type BatchAction, BatchDialog } from './BatchDialog'
import { type RowControl, runColumns } from './columns'
import { ColumnChooser } from './ColumnChooser'
import { RunHistogram, StatusCounts, total, useCounts } from './Counts'
import { RunFeed } from './feed'
import {
  countRequest,
  currentView,
  exportAddress,
  filterChips,
  isFiltered,
  listCommand,
  noFilter,
  type Order,
  type RunFilter,
  viewFilter,
  withLabel,
  writeFilter,
} from './filter'
import { FilterBar, Periods } from './FilterBar'
import { Peek } from './Peek'
import { mostRows } from './rows'
import styles from './runs.module.css'
import { ViewBar } from './SavedViews'
import { cardLines, changeShown, readColumns, readShown, standardCard, standardColumns } from './view'

const ReplayDialog = lazy(() => import('../control/ReplayDialog'))

/** useFeed returns the feed of a filter: the one that an earlier visit of the page left, or a new one. */
function useFeed(project: string, filter: RunFilter): RunFeed {
  const queries = useQueryClient()
  const key = JSON.stringify(writeFilter(filter))
  const feed = useMemo(
    () => queries.getQueryData<RunFeed>(['run-feed', project, key]) ?? new RunFeed(project, filter),
    // The key stands for the filter, which is a new object at each render.
    [queries, project, key], // eslint-disable-line react-hooks/exhaustive-deps
  )
  useEffect(() => {
    const close = feed.open()
    return () => {
      close()
      queries.setQueryData(['run-feed', project, key], feed)
    }
  }, [feed, queries, project, key])
  return feed
}

/** The runs of a project. */
export function RunsPage() {
  const { project = '' }: { project?: string } = useParams({ strict: false })
  const search: Search = useSearch({ strict: false })
  const navigate = useNavigate()
  const { zone, density, columns: chosenColumns, cards: chosenCards } = usePreferences()
  const views = useViews(project).data
  const { view, filter, columns: given, invalid, waiting } = readShown(search, views)
  const saved = readColumns(view?.query?.columns ?? [])
  const cards = usePhone()
  const own = readColumns((cards ? chosenCards : chosenColumns).split(','))
  const standard = cards ? standardCard : standardColumns
  const first = [given, saved, own].find((list) => list.length > 0) ?? standard
  const shownColumns = first.join(',')
  const filterKey = JSON.stringify(writeFilter(filter))
  const peek = one(search, 'peek')
  const feed = useFeed(project, filter)
  const state = useSyncExternalStore(feed.subscribe, feed.snapshot)
  const answered = state.ready || state.error !== undefined
  const counts = useCounts(project, filter, answered)
  const role = useRefusal()
  const offline = useLinkRefusal()
  const refused = offline ?? role('operator', project)

  const [selected, setSelected] = useState<ReadonlySet<string>>(new Set())
  const anchor = useRef<string | undefined>(undefined)
  const [active, setActive] = useState<string | undefined>(feed.active)
  const [paused, setPaused] = useState(false)
  const [filterOpen, setFilterOpen] = useState(false)
  const [starting, setStarting] = useState(false)
  const [control, setControl] = useState<{ control: RowControl; run: Run } | undefined>(undefined)
  const [batch, setBatch] = useState<BatchAction | undefined>(undefined)
  const [pointer, setPointer] = useState(false)
  const [focus, setFocus] = useState(false)
  const [scrolled, setScrolled] = useState(false)
  const list = useRef<HTMLDivElement>(null)
  const searchField = useRef<HTMLDivElement>(null)

  useEffect(() => {
    setSelected(new Set())
  }, [project, filterKey])
  useEffect(() => {
    feed.hold(
      pointer || focus || scrolled || selected.size > 0 || peek !== '' || batch !== undefined || control !== undefined,
    )
  }, [feed, pointer, focus, scrolled, selected, peek, batch, control])
  useEffect(() => {
    feed.pause(paused)
  }, [feed, paused])

  const setSearch = useCallback(
    (change: (before: Search) => Search) => {
      void navigate({ to: '.', search: (before: Search) => change(before), replace: true })
    },
    [navigate],
  )
  const change = useCallback(
    (part: Partial<RunFilter>) => {
      setSearch((before) => changeShown(before, part, views))
    },
    [setSearch, views],
  )
  const showView = useCallback(
    (id: string) => {
      setSearch((before) =>
        id === '' ? writeFilter(readShown(before, views).filter) : { ...writeFilter(noFilter), view: id },
      )
    },
    [setSearch, views],
  )
  // The columns of a view are changed in the URL, where the view can take them; without a view they are a preference of this browser.
  const chooseColumns = (list: string[]) => {
    const text = list.join(',')
    if (saved.length > 0) setSearch((before) => ({ ...before, columns: text === saved.join(',') ? undefined : text }))
    else {
      setPreferences({ [cards ? 'cards' : 'columns']: text === standard.join(',') ? '' : text })
      setSearch((before) => ({ ...before, columns: undefined }))
    }
  }
  const openRun = useCallback(
    (run: Run) => {
      void navigate({ to: '/p/$project/runs/$id', params: { project, id: run.id } })
    },
    [navigate, project],
  )
  const showPeek = useCallback(
    (id: string) => {
      setSearch((before) => ({ ...before, peek: id === '' ? undefined : id }))
    },
    [setSearch],
  )
  const activate = useCallback(
    (key: string) => {
      setActive(key)
      feed.active = key
      // The preview follows the row that has the keyboard.
      if (peek !== '' && peek !== key) showPeek(key)
    },
    [feed, peek, showPeek],
  )

  const { shown } = state
  const heightOfCard = (run: Run) => {
    const lines = cardLines(first, run)
    return cardHeight(2 + Number(lines.facts.length > 0) + Number(lines.labels))
  }
  useEffect(() => {
    rememberList(project, { search: { ...search, peek: undefined }, ids: shown.map((run) => run.id) })
  }, [project, search, shown])
  const listed = useRef(shown)
  useEffect(() => {
    listed.current = shown
  }, [shown])
  const select = useCallback((key: string, range: boolean) => {
    const ids = listed.current.map((run) => run.id)
    const from = anchor.current === undefined ? -1 : ids.indexOf(anchor.current)
    const to = ids.indexOf(key)
    anchor.current = key
    setSelected((before) => {
      const next = new Set(before)
      if (range && from >= 0 && to >= 0)
        for (const id of ids.slice(Math.min(from, to), Math.max(from, to) + 1)) next.add(id)
      else if (range) next.add(key)
      else if (!next.delete(key)) next.add(key)
      return next
    })
  }, [])
  const allSelected = shown.length > 0 && shown.every((run) => selected.has(run.id))
  const openControl = useCallback((name: RowControl, run: Run) => {
    setControl({ control: name, run })
  }, [])
  // What the list shows now: a chip in a row must not draw all rows again when the filter changes.
  const filterLabels = useRef(filter.labels)
  useEffect(() => {
    filterLabels.current = filter.labels
  })
  const addLabel = useCallback(
    (label: Label) => {
      change({ labels: withLabel(filterLabels.current, label) })
    },
    [change],
  )
  const sort = useCallback(
    (order: Order) => {
      change({ order })
    },
    [change],
  )
  const selectAll = useCallback(() => {
    setSelected((before) =>
      listed.current.every((run) => before.has(run.id)) ? new Set() : new Set(listed.current.map((run) => run.id)),
    )
  }, [])
  // The columns change rarely, so that a change of one run draws one row.
  const columns = useMemo(
    () =>
      runColumns({
        project,
        shown: shownColumns.split(','),
        cards,
        zone,
        order: filter.order,
        onOrder: sort,
        onOpen: openRun,
        onControl: openControl,
        onLabel: addLabel,
        refused,
        selected,
        allSelected,
        onSelect: select,
        onSelectAll: selectAll,
      }),
    [
      project,
      shownColumns,
      cards,
      zone,
      filter.order,
      sort,
      openRun,
      openControl,
      addLabel,
      refused,
      selected,
      allSelected,
      select,
      selectAll,
    ],
  )
  const endControl = () => {
    setControl(undefined)
    void feed.refresh()
  }
  const peeked = shown.findIndex((run) => run.id === peek)
  const peekAt = (index: number) => {
    const run = shown[index]
    return run === undefined
      ? undefined
      : () => {
          activate(run.id)
        }
  }
  const focusList = () => {
    list.current?.querySelector<HTMLElement>('[role=grid]')?.focus()
  }
  usePageKeys({
    f: () => {
      setFilterOpen(true)
    },
    l: () => {
      setPaused((before) => !before)
    },
    '/': () => {
      searchField.current?.querySelector('input')?.focus()
    },
    j:
      peek === ''
        ? focusList
        : () => {
            peekAt(peeked + 1)?.()
          },
    k:
      peek === ''
        ? focusList
        : () => {
            peekAt(peeked - 1)?.()
          },
  })

  const matching = total(counts.data, filter)
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
              onClick={() => setStarting(true)}
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
          columns={first}
          view={view}
          sameColumns={saved.length === 0 || saved.join(',') === shownColumns}
          current={currentView(filter)}
          onBuiltIn={(builtIn) => setSearch(() => writeFilter(viewFilter(builtIn, filter)))}
          onView={showView}
        />
      </PageHead>
      <PlatformAlerts project={project} />
      <RunHistogram
        project={project}
        filter={filter}
        listed={answered}
        onPeriod={(from, to) => change({ from, to, since: '' })}
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
        <div ref={searchField} className={styles.search}>
          <SearchField value={filter.text} onCommit={(text) => change({ text })} />
        </div>
        <FilterBar
          project={project}
          filter={filter}
          invalid={invalid}
          onChange={change}
          open={filterOpen}
          onOpen={setFilterOpen}
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
          <ColumnChooser columns={first} cards={cards} onChange={chooseColumns} />
          <Button
            kind="quiet"
            aria-pressed={paused}
            icon={paused ? <Play size={14} aria-hidden /> : <Pause size={14} aria-hidden />}
            onClick={() => setPaused(!paused)}
          >
            {paused ? 'Resume' : 'Pause'}
          </Button>
          <Button
            kind="quiet"
            aria-label="Read the list again"
            icon={<RefreshCw size={14} aria-hidden />}
            onClick={() => void feed.reload()}
          />
        </span>
      </div>
      {selected.size === 0 ? null : (
        <div className={styles.selection} role="region" aria-label="Selection">
          <strong>{formatCount(selected.size)} selected</strong>
          {matching === undefined ? null : (
            <span className={styles.number}>of {formatCount(matching.count, matching.more)} matching</span>
          )}
          <button type="button" className={styles.linkButton} onClick={() => setSelected(new Set())}>
            Clear the selection
          </button>
          <span className={styles.end}>
            {(['replay', 'cancel', 'terminate'] as const).map((action) => (
              <Button key={action} refused={refused} onClick={() => setBatch(action)}>
                {action === 'replay' ? 'Replay…' : action === 'cancel' ? 'Cancel…' : 'Terminate…'}
              </Button>
            ))}
          </span>
        </div>
      )}
      <div
        ref={list}
        className={styles.list}
        onPointerEnter={(event) => setPointer(event.pointerType === 'mouse')}
        onPointerLeave={() => setPointer(false)}
        onFocus={() => setFocus(true)}
        onBlur={() => setFocus(false)}
        onScrollCapture={(event) => setScrolled((event.target as HTMLElement).scrollTop > 0)}
      >
        {!state.ready || waiting ? (
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
            <NoRuns project={project} onStart={() => setStarting(true)} />
          )
        ) : (
          <DataTable
            label="Runs"
            columns={columns}
            rows={shown}
            rowKey={(run) => run.id}
            onOpen={openRun}
            onPeek={(run) => showPeek(run.id === peek ? '' : run.id)}
            selected={selected}
            onSelect={select}
            faded={state.faded}
            active={active}
            onActive={activate}
            highlighted={peek}
            onEnd={feed.loadMore}
            onView={feed.setView}
            rowHeight={cards ? heightOfCard : density === 'compact' ? 28 : 32}
            footer={
              <ListEnd
                count={shown.length}
                more={state.next !== ''}
                cut={state.cut}
                last={shown.at(-1)}
                order={filter.order}
                onContinue={change}
              />
            }
          />
        )}
      </div>
      {peek === '' ? null : (
        <Peek
          project={project}
          id={peek}
          onLabel={addLabel}
          listed={shown[peeked]}
          onClose={() => showPeek('')}
          onPrevious={peekAt(peeked - 1)}
          onNext={peekAt(peeked + 1)}
        />
      )}
      {starting ? (
        <StartDialog
          project={project}
          workflow={filter.workflow}
          version={filter.version}
          onClose={() => setStarting(false)}
        />
      ) : null}
      {control === undefined ? null : control.control === 'replay' ? (
        <Suspense>
          <ReplayDialog run={control.run} onClose={endControl} />
        </Suspense>
      ) : (
        <ControlDialog control={control.control} run={control.run} onClose={endControl} />
      )}
      {batch === undefined ? null : (
        <BatchDialog
          project={project}
          action={batch}
          selected={[...selected]}
          filter={filter}
          onClose={() => setBatch(undefined)}
        />
      )}
    </Page>
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

/** What keeps runs of the project from going on: the connection to Temporal, the dispatcher, the workers; for every role. */
function PlatformAlerts({ project }: { project: string }) {
  const { data: connection } = useConnection()
  const problems = usePlatformProblems(project)
  const alerts: Alert[] = []
  if (connection !== undefined && connection.title !== '') {
    const down = connection.state === 'down'
    alerts.push({
      id: 'engine',
      tone: down ? 'red' : 'amber',
      title: connection.title,
      since: <Since at={milliseconds(connection.since)} />,
      detail: down
        ? `The runs show what was known before. New runs are ${connection.queuesRuns ? 'queued until Temporal is available again' : 'refused'}.`
        : undefined,
    })
  }
  if (connection !== undefined && connection.mismatch !== '') {
    alerts.push({
      id: 'mismatch',
      tone: 'red',
      title: connection.mismatch,
      detail: 'The runs go on there. New runs are refused here.',
      actions: <Link to="/system">System</Link>,
    })
  }
  for (const problem of problems.data?.problems ?? []) {
    alerts.push({
      id: problem.id,
      tone: 'amber',
      title: problem.title,
      since: <Since at={milliseconds(problem.firstTime)} />,
      detail: problem.detail,
      actions: <Link to="/problems">Problems</Link>,
    })
  }
  return <AlertSlot alerts={alerts} />
}

/** Whether the list is refused because of the project. The workflow of a filter may be missing, too. */
function isDenied(error: unknown, filter: RunFilter): boolean {
  if (error === undefined) return false
  const { kind } = callError(error)
  return kind === 'denied' || (kind === 'missing' && filter.workflow === '')
}

function ListError({
  error,
  filter,
  onRetry,
  onClear,
}: {
  error: unknown
  filter: RunFilter
  onRetry: () => void
  onClear: () => void
}) {
  const e = callError(error)
  if (isFiltered(filter) && (e.kind === 'invalid' || (e.kind === 'missing' && filter.workflow !== ''))) {
    return (
      <StateView kind="no-match" title={e.message} actions={<Button onClick={onClear}>Clear the filter</Button>}>
        {e.reason === '' ? null : <code>{e.reason}</code>}
      </StateView>
    )
  }
  return <ErrorView error={error} what="Runs" onRetry={onRetry} />
}

function NoRuns({ project, onStart }: { project: string; onStart: () => void }) {
  const cli = command(['run', 'start', 'NAME'], { project, input: '{}' })
  return (
    <StateView kind="empty" title={`No runs in ${project} yet`} actions={<Button onClick={onStart}>Run…</Button>}>
      Start one with <code>{cli}</code> <CopyButton text={cli} label="Copy the command" />
    </StateView>
  )
}

/** What to do when no run matches: each part of the filter, with the number of runs that match without it. */
function NoMatch({
  project,
  filter,
  onChange,
}: {
  project: string
  filter: RunFilter
  onChange: (change: Partial<RunFilter>) => void
}) {
  const { zone } = usePreferences()
  const chips = filterChips(filter, zone)
  const counts = useQueries({
    queries: chips.map(({ without }) => {
      const wider = { ...filter, ...without }
      return {
        queryKey: ['run-total', project, JSON.stringify(writeFilter(wider))],
        queryFn: async ({ signal }: { signal: AbortSignal }) =>
          total(await clients.runs.countRuns(countRequest(project, wider, now()), { signal }), wider) ?? null,
        retry: false,
      }
    }),
  })
  return (
    <StateView
      kind="no-match"
      title="No run matches the filter"
      actions={
        <>
          {chips.map(({ name, text, without }, i) => {
            const found = counts[i]?.data
            return (
              <Button key={name} onClick={() => onChange(without)}>
                Without “{text}”{found ? `: ${formatCount(found.count, found.more)}` : ''}
              </Button>
            )
          })}
          <Button onClick={() => onChange({ ...noFilter, order: filter.order })}>Clear the filter</Button>
        </>
      }
    />
  )
}

/** The end of the rows: the end of the list, the next page on its way, or the most rows that are kept. */
function ListEnd({
  count,
  more,
  cut,
  last,
  order,
  onContinue,
}: {
  count: number
  more: boolean
  cut: boolean
  last: Run | undefined
  order: Order
  onContinue: (change: Partial<RunFilter>) => void
}) {
  const at = milliseconds(last?.createTime)
  if ((cut || (more && count >= mostRows)) && order === 'longest')
    return `The longest ${plural(count, 'run')}. A narrower filter shows others.`
  if ((cut || (more && count >= mostRows)) && at !== undefined) {
    // The bound is exclusive before and inclusive after a moment: a millisecond more keeps the last run in sight.
    const next = new Date(order === 'newest' ? at + 1 : at).toISOString()
    return (
      <span className={styles.cut}>
        {plural(count, 'run')} are kept here.{' '}
        <Button onClick={() => onContinue(order === 'newest' ? { to: next } : { from: next, since: '' })}>
          Go on from here
        </Button>
      </span>
    )
  }
  return more ? 'Reading more…' : `${plural(count, 'run')}, all that match`
}
