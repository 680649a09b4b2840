import { useVirtualizer } from '@tanstack/react-virtual'
import { ChevronDown, ChevronRight, ChevronUp } from 'lucide-react'
import { Link } from '@tanstack/react-router'
import { useDeferredValue, useEffect, useMemo, useRef, useState, type KeyboardEvent } from 'react'
import { callError, milliseconds } from '../api'
import { useFilters } from '../app'
import {
  Button,
  durationText,
  Elapsed,
  flipped,
  formatCount,
  plural,
  StateView,
  StatusBadge,
  treeAction,
  useDelayed,
  usePreferences,
} from '../kit'
import type { Run, Step, StepSummary } from '../gen/signalbox/v1/run_pb'
import type { Search } from '../app/search'
import { attemptCount } from './attempts'
import { useStepSearch } from './live'
import styles from './run.module.css'
import { listedSteps, noneFound } from './search'
import { countsBelow, groupLabel, noSteps } from './steps'
import {
  countMatches,
  countsText,
  flatten,
  type Matches,
  type Node,
  type Row,
  stepMatches,
  sumCounts,
  textMatches,
  total,
} from './tree'

interface Props {
  run: Run
  root: Node
  failed: Step[]
  summary: StepSummary | undefined
  complete: boolean
  selected: Step | undefined
  onSelect: (number: string, pane?: string) => void
  onFailure: (by: 1 | -1) => void
}

/** The steps as a tree by their paths; many repeated ones are folded, the failed first. */
export function StepsTab({ run, root, failed, summary, complete, selected, onSelect, onFailure }: Props) {
  const { values, change, clear } = useFilters(['only', 'q'])
  const { only, q: typed } = values
  // While a text is typed, the 10,000 rows of a long run follow when there is time; the server is asked once it stays.
  const text = useDeferredValue(typed)
  const asked = useDelayed(typed, 300)
  const search = useStepSearch(run, asked)
  const found = typed.trim() === asked.trim() && search.data !== undefined ? search.data : noneFound
  const [toggled, setToggled] = useState<ReadonlySet<string>>(new Set())
  const [unfolded, setUnfolded] = useState<ReadonlySet<string>>(new Set())
  const matches = useMemo(() => stepMatches(only, text, found.numbers), [only, text, found.numbers])
  const inPayload = (step: Step) =>
    text !== '' && found.numbers.has(step.number) && !textMatches(step, text.trim().toLowerCase())
  const rows = useMemo(
    () => flatten(root, { toggled, unfolded, matches, reveal: selected?.path ?? '' }),
    [root, toggled, unfolded, matches, selected],
  )
  const act = (row: Row) => {
    if (row.kind === 'fold') setUnfolded(flipped(unfolded, row.of.key))
    else if (row.step === undefined) setToggled(flipped(toggled, row.key))
    else onSelect(row.step.number === selected?.number ? '' : String(row.step.number), '')
  }
  const failure = failed.findIndex((step) => step.number === selected?.number)
  const none = noSteps(run, {
    counted: summary?.steps ?? 0n,
    filtered: matches !== undefined,
    text: typed.trim(),
    complete: complete && (typed.trim() === '' || found.complete || search.isError),
  })
  return (
    <>
      <div className={styles.tools}>
        <span className={styles.choices} role="group" aria-label="Which steps">
          {(
            [
              ['', 'All'],
              ['failed', `Failed ${root.counts.failed}`],
              ['open', `Open ${root.counts.open}`],
              ...(root.counts.caught > 0 || only === 'caught'
                ? [['caught', `Caught ${root.counts.caught}`] as const]
                : []),
            ] as const
          ).map(([value, label]) => (
            <Button
              key={value}
              kind="quiet"
              aria-pressed={only === value}
              className={only === value ? styles.chosen : ''}
              onClick={() => change({ only: value })}
            >
              {label}
            </Button>
          ))}
        </span>
        <input
          type="search"
          className={styles.find}
          placeholder="Find in steps"
          aria-label="Find in steps"
          title="A text in the name, path or error of a step, or in its input or output"
          value={typed}
          onChange={(event) => change({ q: event.target.value })}
        />
        {typed.trim() === '' || matches === undefined ? null : (
          <SearchState
            count={countMatches(root, matches)}
            searched={found.searched}
            of={listedSteps(run, summary)}
            done={found.complete}
            problem={search.isError && asked === typed ? callError(search.error).message : ''}
            onRetry={() => void search.refetch()}
          />
        )}
        {complete ? null : (
          <span className={styles.faint} role="status">
            reading, {formatCount(total(root.counts))} of {formatCount(run.stepsTotal)} so far
          </span>
        )}
        {failed.length === 0 ? null : (
          <span className={styles.failures}>
            <Button
              kind="quiet"
              onClick={() => onFailure(-1)}
              aria-label="Previous failure"
              title="Previous failure (N)"
              icon={<ChevronUp size={14} aria-hidden />}
            />
            {failure < 0 ? plural(failed.length, 'failure') : `failure ${failure + 1} of ${failed.length}`}
            <Button
              kind="quiet"
              onClick={() => onFailure(1)}
              aria-label="Next failure"
              title="Next failure (n)"
              icon={<ChevronDown size={14} aria-hidden />}
            />
          </span>
        )}
      </div>
      {rows.length === 0 ? (
        <StateView
          kind={none.kind}
          title={none.title}
          actions={none.kind === 'no-match' ? <Button onClick={clear}>Clear filters</Button> : undefined}
        >
          {none.text}
        </StateView>
      ) : (
        <Rows
          rows={rows}
          matches={matches}
          inPayload={inPayload}
          selected={selected}
          onAct={act}
          onToggle={(row) => setToggled(flipped(toggled, row.key))}
        />
      )}
      {summary === undefined || summary.steps === 0n ? null : <Summary summary={summary} />}
    </>
  )
}

/** How far the server has read for a text, and what was found. */
function SearchState({
  count,
  searched,
  of,
  done,
  problem,
  onRetry,
}: {
  count: number
  searched: number
  of: number
  done: boolean
  problem: string
  onRetry: () => void
}) {
  if (problem !== '')
    return (
      <span className={styles.searchProblem} role="alert">
        <span>Inputs and outputs were not searched: {problem}</span>
        <Button kind="quiet" onClick={onRetry}>
          Retry
        </Button>
      </span>
    )
  return (
    <span className={styles.faint} role="status">
      {done ? '' : `searched ${formatCount(searched)} of ${plural(of, 'step')}: `}
      {formatCount(count)} found
    </span>
  )
}

function Rows({
  rows,
  matches,
  inPayload,
  selected,
  onAct,
  onToggle,
}: {
  rows: Row[]
  matches: Matches | undefined
  inPayload: (step: Step) => boolean
  selected: Step | undefined
  onAct: (row: Row) => void
  onToggle: (row: Row) => void
}) {
  const scroller = useRef<HTMLDivElement>(null)
  const { density } = usePreferences()
  const height = density === 'compact' ? 28 : 32
  const virtual = useVirtualizer({
    count: rows.length,
    getScrollElement: () => scroller.current,
    estimateSize: () => height,
    overscan: 16,
  })
  const [active, setActive] = useState('')
  const tree = useMemo(
    () => rows.map((row) => ({ ...row, branch: row.kind === 'node' && row.children.length > 0 })),
    [rows],
  )
  const at = Math.max(
    0,
    rows.findIndex((row) => row.key === active),
  )
  const chosen = selected?.number
  // A step that was selected elsewhere, such as by its failure, comes into view; scrolling by hand is left alone.
  useEffect(() => {
    if (chosen === undefined) return
    const index = rows.findIndex((row) => row.kind === 'node' && row.step?.number === chosen)
    const row = rows[index]
    if (row === undefined) return
    setActive(row.key)
    virtual.scrollToIndex(index, { align: 'auto' })
    // eslint-disable-next-line react-hooks/exhaustive-deps -- not when rows change: new steps must not move the view
  }, [chosen])
  const keys = (event: KeyboardEvent) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return
    const row = rows[at]
    const action = treeAction(event.key, tree, at)
    if (row === undefined || action === undefined || (event.target as HTMLElement).closest('button') !== null) return
    event.preventDefault()
    if (action.kind === 'activate') onAct(row)
    else if (action.kind === 'toggle') onToggle(row)
    else {
      setActive(rows[action.to]?.key ?? '')
      virtual.scrollToIndex(action.to)
    }
  }
  return (
    <div
      ref={scroller}
      className={styles.tree}
      role="tree"
      aria-label="Steps"
      tabIndex={0}
      onKeyDown={keys}
      aria-activedescendant={rows[at] === undefined ? undefined : `step-${rows[at].key}`}
    >
      <div className={styles.rows} role="presentation" style={{ height: virtual.getTotalSize() }}>
        {virtual.getVirtualItems().map((item) => {
          const row = rows[item.index]
          if (row === undefined) return null
          const isSelected = row.kind === 'node' && row.step !== undefined && row.step.number === chosen
          return (
            <div
              key={row.key}
              id={`step-${row.key}`}
              role="treeitem"
              aria-level={row.depth + 1}
              aria-expanded={row.kind === 'fold' ? row.open : row.children.length > 0 ? row.open : undefined}
              aria-selected={isSelected}
              className={`${styles.row} ${isSelected ? styles.selected : ''} ${item.index === at ? styles.active : ''}`}
              style={{
                height,
                transform: `translateY(${item.start}px)`,
                paddingLeft: 8 + Math.min(row.depth, 16) * 16,
              }}
              onClick={(event) => {
                setActive(row.key)
                if ((event.target as HTMLElement).closest('button') === null) onAct(row)
              }}
            >
              {row.kind === 'fold' ? (
                <FoldRow row={row} />
              ) : (
                <NodeRow
                  row={row}
                  around={row.step !== undefined && matches !== undefined && !matches(row.step, row.caught)}
                  inPayload={row.step !== undefined && inPayload(row.step)}
                  onToggle={() => onToggle(row)}
                />
              )}
            </div>
          )
        })}
      </div>
    </div>
  )
}

function FoldRow({ row }: { row: Row & { kind: 'fold' } }) {
  return (
    <>
      <span className={styles.fold} aria-hidden>
        {row.open ? <ChevronDown size={14} /> : <ChevronRight size={14} />}
      </span>
      <span className={styles.faint}>
        {row.open
          ? `Show fewer: fold ${formatCount(row.hidden.length)}`
          : `${formatCount(row.hidden.length)} more: ${countsText(sumCounts(row.hidden))}`}
      </span>
    </>
  )
}

/** A row of a step, or of a group. A filter also shows the steps around those that match. */
function NodeRow({
  row,
  around,
  inPayload,
  onToggle,
}: {
  row: Row & { kind: 'node' }
  around: boolean
  inPayload: boolean
  onToggle: () => void
}) {
  const { node, step, caught, children, open } = row
  return (
    <>
      {children.length === 0 ? (
        <span className={styles.fold} />
      ) : (
        <button
          type="button"
          tabIndex={-1}
          className={styles.fold}
          aria-label={open ? 'Close' : 'Open'}
          onClick={onToggle}
        >
          {open ? <ChevronDown size={14} aria-hidden /> : <ChevronRight size={14} aria-hidden />}
        </button>
      )}
      {node.kind === 'step' ? null : <span className={styles.group}>{groupLabel(node)}</span>}
      {step === undefined ? (
        <span className={styles.faint}>{countsText(node.counts)}</span>
      ) : (
        <>
          <span className={styles.number}>{String(step.number)}</span>
          <Link
            to="."
            search={((before: Search) => ({ ...before, step: String(step.number) })) as never}
            tabIndex={-1}
            className={`${styles.task} ${around ? styles.around : ''}`}
            onClick={(event) => {
              // The row selects the step; the link opens it in another tab.
              if (event.ctrlKey || event.metaKey || event.shiftKey) event.stopPropagation()
              else event.preventDefault()
            }}
          >
            {step.task}
          </Link>
          <span className={styles.kind}>{step.kind}</span>
          {children.length === 0 || open ? null : (
            <span className={styles.faint}>{countsBelow(node.counts, step, caught)}</span>
          )}
          {attemptCount(step) > 1 ? <span className={styles.faint}>{attemptCount(step)} attempts</span> : null}
          {inPayload ? <span className={styles.faint}>in input or output</span> : null}
          <span className={styles.problem} title={step.error?.title}>
            {step.status === 'failed' ? step.error?.title : ''}
          </span>
          <span className={styles.state}>
            <StatusBadge of="step" status={caught ? 'caught' : step.status} detail={step.waitingKind} />
          </span>
          <span className={styles.duration}>
            <Elapsed from={milliseconds(step.startTime)} to={milliseconds(step.endTime)} />
          </span>
        </>
      )}
    </>
  )
}

/** The counts of the steps of a long run that are not listed. */
function Summary({ summary }: { summary: StepSummary }) {
  return (
    <details className={styles.summary}>
      <summary>
        {formatCount(summary.steps)} steps between {formatCount(summary.from)} and {formatCount(summary.to)} are
        counted, not listed
      </summary>
      <div className={styles.summaryTable}>
        <table>
          <thead>
            <tr>
              <th>Task</th>
              <th>Steps</th>
              <th>Completed</th>
              <th>Failed</th>
              <th>Skipped</th>
              <th>Canceled</th>
              <th>Shortest</th>
              <th>Longest</th>
              <th>Total</th>
            </tr>
          </thead>
          <tbody>
            {summary.tasks.map((task) => (
              <tr key={task.pointer}>
                <td title={task.pointer}>{task.task}</td>
                {[task.count, task.completed, task.failed, task.skipped, task.canceled].map((n, i) => (
                  <td key={i}>{formatCount(n)}</td>
                ))}
                {[task.shortest, task.longest, task.total].map((d, i) => (
                  <td key={i}>{d === undefined ? '–' : durationText(d)}</td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </details>
  )
}
