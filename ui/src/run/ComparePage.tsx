import { useQuery } from '@tanstack/react-query'
import { Link, useParams } from '@tanstack/react-router'
import { ArrowLeftRight } from 'lucide-react'
import { useEffect, useMemo, useRef, useState } from 'react'
import { brief, clients, milliseconds, useRun } from '../api'
import { chosenTab, RunId, useFilters } from '../app'
import {
  Button,
  Checkbox,
  Elapsed,
  ErrorView,
  formatCount,
  formatDuration,
  Id,
  inWords,
  Page,
  PageHead,
  plural,
  Skeleton,
  StateView,
  StatusBadge,
  type Tab,
  Tabs,
  TextField,
  Time,
} from '../kit'
import { LabelChips } from '../labels'
import { JsonView } from '../payload'
import type { Run } from '../gen/signalbox/v1/run_pb'
import styles from './compare.module.css'
import {
  comparable,
  compareErrors,
  compareTasks,
  compareValues,
  differing,
  equalTitle,
  failedSteps,
  sealedNote,
  type TaskRow,
  type Totals,
} from './compare'
import { useLiveRuns } from './live'

/** Two runs side by side: where they went different ways, and what went in and came out. */
export function ComparePage() {
  const { project = '' }: { project?: string } = useParams({ strict: false })
  const {
    values: { a, b },
    change,
  } = useFilters(['a', 'b'])
  const [picking, setPicking] = useState(false)
  const first = useRun(project, a)
  const second = useRun(project, b)
  useLiveRuns(project, [first.data, second.data])
  return (
    <Page title="Compare runs">
      <PageHead
        title="Compare runs"
        actions={
          <>
            <Button
              icon={<ArrowLeftRight size={14} aria-hidden />}
              refused={a === '' || b === '' ? 'There are not two runs yet.' : undefined}
              onClick={() => change({ a: b, b: a })}
            >
              Swap
            </Button>
            <Button aria-expanded={picking} onClick={() => setPicking(!picking)}>
              Pick…
            </Button>
          </>
        }
      />
      <div className={styles.sides}>
        <Side name="A" project={project} id={a} run={first.data} error={first.error} />
        <Side name="B" project={project} id={b} run={second.data} error={second.error} />
      </div>
      {picking || a === '' ? (
        <Pick
          a={a}
          b={b}
          onPick={(ids) => {
            setPicking(false)
            change(ids)
          }}
        />
      ) : null}
      {a !== '' && b === '' && first.data !== undefined ? (
        <LastGood run={first.data} onPick={(id) => change({ b: id })} onOther={() => setPicking(true)} />
      ) : null}
      {first.data !== undefined && second.data !== undefined ? (
        <Comparison key={`${a} ${b}`} a={first.data} b={second.data} />
      ) : null}
    </Page>
  )
}

function Side({
  name,
  project,
  id,
  run,
  error,
}: {
  name: string
  project: string
  id: string
  run: Run | undefined
  error: unknown
}) {
  return (
    <section className={styles.side} aria-label={`Run ${name}`}>
      <strong>{name}</strong>
      {id === '' ? (
        <span className={styles.faint}>no run chosen</span>
      ) : error !== null && run === undefined ? (
        <ErrorView error={error} what={`Run ${id}`} />
      ) : run === undefined ? (
        <Skeleton />
      ) : (
        <>
          <RunId project={project} id={run.id} />
          <StatusBadge of="run" status={run.status} detail={run.queuedReason || run.waitingKind} />
          <span>
            <Elapsed from={milliseconds(run.startTime)} to={milliseconds(run.endTime)} />
          </span>
          <span>
            {run.workflow}@{run.version}
          </span>
          <span className={styles.faint}>
            <Time at={milliseconds(run.createTime)} />
          </span>
          {Object.keys(run.labels).length === 0 ? null : <LabelChips labels={run.labels} project={project} />}
        </>
      )}
    </section>
  )
}

function Pick({ a, b, onPick }: { a: string; b: string; onPick: (ids: { a: string; b: string }) => void }) {
  const [one, setOne] = useState(a)
  const [two, setTwo] = useState(b)
  return (
    <form
      className={styles.pick}
      onSubmit={(event) => {
        event.preventDefault()
        onPick({ a: one.trim(), b: two.trim() })
      }}
    >
      <TextField label="ID of run A" value={one} onChange={(event) => setOne(event.target.value)} />
      <TextField label="ID of run B" value={two} onChange={(event) => setTwo(event.target.value)} />
      <Button type="submit" kind="primary">
        Compare
      </Button>
    </form>
  )
}

/** Offers the run that this one replays, or the newest completed run of the same workflow. */
function LastGood({ run, onPick, onOther }: { run: Run; onPick: (id: string) => void; onOther: () => void }) {
  const replayed = useRun(run.project, run.replayOf)
  const good = useQuery({
    queryKey: ['last-good', run.project, run.workflow],
    queryFn: ({ signal }) =>
      clients.runs.listRuns(
        { project: run.project, filter: { workflow: run.workflow, statuses: ['completed'] }, pageSize: 5 },
        { signal },
      ),
  })
  if (good.isError)
    return (
      <ErrorView error={good.error} what="The completed runs of this workflow" onRetry={() => void good.refetch()} />
    )
  if (good.data === undefined || (run.replayOf !== '' && replayed.isPending)) return <Skeleton rows={2} />
  const { offered, other } = comparable(run, replayed.data, good.data.runs)
  if (offered === undefined)
    return (
      <StateView kind="empty" title="Pick a run" actions={<Button onClick={onOther}>Pick…</Button>}>
        No other run of {run.workflow} has completed.
      </StateView>
    )
  return (
    <StateView
      kind="empty"
      title={replayed.data === undefined ? 'Compare with the last good run?' : 'Compare with the run that it replays?'}
      actions={
        <>
          <Button kind="primary" onClick={() => onPick(offered.id)}>
            Compare with it
          </Button>
          {other === undefined ? null : <Button onClick={() => onPick(other.id)}>With the last good run</Button>}
          <Button onClick={onOther}>Pick another…</Button>
        </>
      }
    >
      <span className={styles.good}>
        <Id id={offered.id} /> <StatusBadge of="run" status={offered.status} /> {offered.workflow}@{offered.version}{' '}
        <Time at={milliseconds(offered.createTime)} />
      </span>
    </StateView>
  )
}

function Comparison({ a, b }: { a: Run; b: Run }) {
  const { values, change } = useFilters(['tab', 'all'])
  const tasksA = useTotals(a)
  const tasksB = useTotals(b)
  const sameDocument = a.documentHash === b.documentHash && a.workflow === b.workflow
  const rows = useMemo(
    () => compareTasks(tasksA.data ?? [], tasksB.data ?? [], sameDocument),
    [tasksA.data, tasksB.data, sameDocument],
  )
  const input = useMemo(() => compareValues(a.input?.json, b.input?.json), [a.input, b.input])
  const output = useMemo(() => compareValues(a.output?.json, b.output?.json), [a.output, b.output])
  const errors = compareErrors(a, b)
  const all = values.all === '1'
  const count = (n: number) => (n === 0 ? 'equal' : String(n))
  const tabs: Tab[] = [
    {
      id: 'path',
      label: 'Path',
      count: tasksA.data === undefined || tasksB.data === undefined ? undefined : count(differing(rows).length),
    },
    { id: 'input', label: 'Input', count: count(input.operations.length) },
    { id: 'output', label: 'Output', count: count(output.operations.length) },
    { id: 'errors', label: 'Errors', count: count(errors.filter((e) => e.differs).length) },
  ]
  const tab = chosenTab(tabs, values.tab, 'path')
  const failure = tasksA.error ?? tasksB.error
  return (
    <div>
      {a.workflow === b.workflow ? null : (
        <p className={styles.note}>
          These are runs of two workflows: {a.workflow} and {b.workflow}. Tasks are compared by their names.
        </p>
      )}
      {a.workflow === b.workflow && !sameDocument ? (
        <p className={styles.note}>The versions differ: tasks are compared by their names.</p>
      ) : null}
      <div className={styles.only}>
        <Checkbox
          label="Only differences"
          checked={!all}
          onChange={(event) => change({ all: event.target.checked ? '' : '1' })}
        />
      </div>
      <Tabs tabs={tabs} value={tab} onChange={(id) => change({ tab: id })} label="Parts of the comparison">
        {tab === 'path' ? (
          failure !== null ? (
            <ErrorView error={failure} what="The steps" />
          ) : tasksA.data === undefined || tasksB.data === undefined ? (
            <Skeleton rows={8} height={24} />
          ) : (
            <PathTable rows={rows} all={all} a={a} b={b} />
          )
        ) : null}
        {tab === 'input' ? <Values what="input" a={a.input?.json} b={b.input?.json} found={input} all={all} /> : null}
        {tab === 'output' ? (
          <Values what="output" a={a.output?.json} b={b.output?.json} found={output} all={all} />
        ) : null}
        {tab === 'errors' ? <Errors a={a} b={b} parts={errors} all={all} rows={rows} /> : null}
      </Tabs>
    </div>
  )
}

/** Totals by task, of all steps, also of those that a long run does not list. */
const useTotals = (run: Run) =>
  useQuery({
    queryKey: ['run-totals', run.project, run.id, String(run.sequence)],
    queryFn: async ({ signal }) =>
      (await clients.runs.summarizeSteps({ project: run.project, id: run.id }, { signal })).tasks,
    placeholderData: (before) => before,
  })

const differences = { presence: 'only in one run', steps: 'number of steps', status: 'outcome', attempts: 'attempts' }

/** The tasks of both runs; the first difference has the focus. */
function PathTable({ rows, all, a, b }: { rows: TaskRow[]; all: boolean; a: Run; b: Run }) {
  const first = differing(rows)[0]?.key
  const focused = useRef<HTMLTableRowElement>(null)
  const done = useRef(false)
  useEffect(() => {
    // Once: while an open run changes, the focus stays where it is.
    if (done.current || focused.current === null) return
    done.current = true
    focused.current.focus({ preventScroll: true })
    focused.current.scrollIntoView({ block: 'nearest' })
  }, [first])
  const shown = all ? rows : differing(rows)
  if (shown.length === 0)
    return (
      <StateView kind="empty" title={rows.length === 0 ? 'Neither run has steps.' : 'The runs took the same path.'}>
        {rows.length === 0
          ? null
          : `${plural(rows.length, 'task')} ended the same way, with the same number of attempts.`}
      </StateView>
    )
  return (
    <div className={styles.frame}>
      <table className={styles.table}>
        <thead>
          <tr>
            <th>Task</th>
            <th>A</th>
            <th>B</th>
            <th>Difference</th>
          </tr>
        </thead>
        <tbody>
          {shown.map((row) => (
            <tr
              key={row.key}
              ref={row.key === first ? focused : undefined}
              tabIndex={row.key === first ? 0 : undefined}
              className={row.differs.length > 0 ? styles.differs : undefined}
            >
              <td style={{ paddingLeft: 8 + Math.min(row.depth, 8) * 16 }} title={row.key}>
                <strong>{row.task}</strong> <span className={styles.faint}>{row.kind}</span>
              </td>
              <td>
                <Cell totals={row.a} run={a} task={row.task} />
              </td>
              <td>
                <Cell totals={row.b} run={b} task={row.task} />
              </td>
              <td>
                {row.differs.map((d) => differences[d]).join(', ')}
                {row.key === first ? <span className={styles.first}> ‹ first difference</span> : null}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  )
}

function Cell({ totals, run, task }: { totals: Totals | undefined; run: Run; task: string }) {
  if (totals === undefined)
    return (
      <span className={styles.faint}>
        <StatusBadge of="step" status="not_reached" />
      </span>
    )
  return (
    <span className={styles.cell}>
      {[...totals.statuses].map(([status, n]) => (
        <span key={status} className={styles.cell}>
          {totals.steps === 1 ? null : formatCount(n)} <StatusBadge of="step" status={status} />
        </span>
      ))}
      {totals.attempts === undefined ? (
        <span className={styles.faint}>attempts unknown</span>
      ) : totals.attempts > 1 ? (
        <span>{formatCount(totals.attempts)} attempts</span>
      ) : null}
      <span>{totals.duration === undefined ? '–' : formatDuration(totals.duration)}</span>
      <Link
        to="/p/$project/runs/$id"
        params={{ project: run.project, id: run.id }}
        search={totals.failed > 0n ? { tab: 'steps', step: String(totals.failed) } : { tab: 'steps', q: task }}
      >
        {totals.failed > 0n ? `step ${totals.failed}` : totals.steps === 1 ? 'step' : 'steps'}
      </Link>
    </span>
  )
}

function Values({
  what,
  a,
  b,
  found,
  all,
}: {
  what: string
  a: string | undefined
  b: string | undefined
  found: ReturnType<typeof compareValues>
  all: boolean
}) {
  const sealed = sealedNote(found)
  return (
    <div className={styles.values}>
      {found.operations.length === 0 ? (
        <StateView kind="empty" title={equalTitle(what, a, found)} />
      ) : (
        <div className={styles.frame}>
          <table className={styles.table}>
            <thead>
              <tr>
                <th>Pointer</th>
                <th>A</th>
                <th>B</th>
              </tr>
            </thead>
            <tbody>
              {found.operations.slice(0, 500).map((operation, i) => (
                <tr key={`${operation.path} ${i}`} className={styles.differs}>
                  <td>
                    <code>{operation.path === '' ? 'the whole value' : operation.path}</code>
                  </td>
                  <td className={styles.value}>
                    {operation.before === undefined ? (
                      <span className={styles.faint}>absent</span>
                    ) : (
                      brief(operation.before, 300)
                    )}
                  </td>
                  <td className={styles.value}>
                    {operation.value === undefined ? (
                      <span className={styles.faint}>absent</span>
                    ) : (
                      brief(operation.value, 300)
                    )}
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
          {found.operations.length > 500 ? (
            <p className={styles.note}>The first 500 of {formatCount(found.operations.length)} differences.</p>
          ) : null}
        </div>
      )}
      {sealed === undefined ? null : (
        <p className={styles.note}>
          {sealed.text}:{' '}
          {sealed.pointers.map((pointer) => (
            <code key={pointer}>{pointer} </code>
          ))}
        </p>
      )}
      {all ? (
        <div className={styles.both}>
          <section aria-label={`A: ${what}`}>
            <h2>A</h2>
            <JsonView json={a} label={`the ${what} of A`} none={`The run has no ${what}.`} />
          </section>
          <section aria-label={`B: ${what}`}>
            <h2>B</h2>
            <JsonView json={b} label={`the ${what} of B`} none={`The run has no ${what}.`} />
          </section>
        </div>
      ) : null}
    </div>
  )
}

function Errors({
  a,
  b,
  parts,
  all,
  rows,
}: {
  a: Run
  b: Run
  parts: ReturnType<typeof compareErrors>
  all: boolean
  rows: TaskRow[]
}) {
  const shown = all ? parts.filter((p) => p.a !== '' || p.b !== '') : parts.filter((p) => p.differs)
  return (
    <div className={styles.values}>
      {shown.length === 0 ? (
        <StateView
          kind="empty"
          title={a.error === undefined && b.error === undefined ? 'Neither run has an error.' : 'The errors are equal.'}
        />
      ) : (
        <div className={styles.frame}>
          <table className={styles.table}>
            <thead>
              <tr>
                <th>Part</th>
                <th>A: {inWords(a.status)}</th>
                <th>B: {inWords(b.status)}</th>
              </tr>
            </thead>
            <tbody>
              {shown.map((part) => (
                <tr key={part.name} className={part.differs ? styles.differs : undefined}>
                  <td>{part.name}</td>
                  <td className={styles.value}>
                    {part.a === '' ? <span className={styles.faint}>none</span> : part.a}
                  </td>
                  <td className={styles.value}>
                    {part.b === '' ? <span className={styles.faint}>none</span> : part.b}
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
      <p className={styles.faint}>
        Failed steps, those that a catch handled included: {formatCount(failedSteps(rows, 'a'))} in A,{' '}
        {formatCount(failedSteps(rows, 'b'))} in B.
      </p>
    </div>
  )
}
