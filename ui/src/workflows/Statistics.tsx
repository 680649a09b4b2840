import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { clients, milliseconds } from '../api'
import type { GetWorkflowGridResponse, RecentRun, WorkflowStats } from '../gen/signalbox/v1/workflow_pb'
import {
  durationText,
  ErrorView,
  Facts,
  formatCount,
  formatPercent,
  Panel,
  Skeleton,
  StateView,
  statusWord,
  Time,
  toneClass,
  vocabularies,
} from '../kit'
import { cellText } from './workflow'
import styles from './workflows.module.css'

/** The newest runs, oldest first, one mark each; a failed one is taller, so that it is seen without colour. */
export function LastRuns({ project, runs }: { project: string; runs: RecentRun[] }) {
  if (runs.length === 0) return <>no runs</>
  return (
    <span className={styles.marks}>
      {[...runs].reverse().map((r) => {
        const { word, tone } = statusWord('run', r.status)
        return (
          <Link
            key={r.id}
            to="/p/$project/runs/$id"
            params={{ project, id: r.id }}
            className={`${styles.mark} ${toneClass(tone)} ${tone === 'red' ? styles.tall : ''}`}
            title={`${word}, ${durationText(r.duration)}`}
            aria-label={`${word}, run ${r.id}`}
          />
        )
      })}
    </span>
  )
}

/** What the runs of a workflow did in the window of its statistics. */
export function Statistics({
  project,
  name,
  stats,
}: {
  project: string
  name: string
  stats: WorkflowStats | undefined
}) {
  if (stats === undefined) return <Panel title="Runs">Not known.</Panel>
  const count = (status: string) => formatCount(stats.statuses[status] ?? 0n, stats.more.includes(status))
  return (
    <Panel
      title="Runs"
      actions={
        <Link to="/p/$project/runs" params={{ project }} search={{ workflow: name } as never}>
          All runs
        </Link>
      }
    >
      <Facts
        facts={[
          [
            'Window',
            <span key="w">
              <Time at={milliseconds(stats.since)} /> to <Time at={milliseconds(stats.until)} />
            </span>,
          ],
          ['Last runs', <LastRuns key="l" project={project} runs={stats.lastRuns} />],
          [
            'Success rate',
            stats.successRate === undefined
              ? 'unknown: no run has ended'
              : `${formatPercent(stats.successRate)} of the newest ${formatCount(stats.sample)}`,
          ],
          ['Median duration', durationText(stats.p50)],
          ['95th percentile of durations', durationText(stats.p95)],
          ['Open', formatCount(stats.open, stats.more.includes('open'))],
          ['Stuck', formatCount(stats.stuck, stats.more.includes('stuck'))],
          ...Object.entries(vocabularies.run)
            .filter(([status]) => (stats.statuses[status] ?? 0n) > 0n)
            .map(([status, { word }]): [string, string] => [word, count(status)]),
        ]}
      />
    </Panel>
  )
}

/** The last runs of a workflow × its tasks: where runs fail, at a glance. */
export function Grid({ project, name, version }: { project: string; name: string; version: string }) {
  const query = useQuery({
    queryKey: ['grid', project, name, version],
    queryFn: ({ signal }) => clients.workflows.getWorkflowGrid({ project, workflow: name, version }, { signal }),
    refetchInterval: 15_000,
  })
  if (query.isError && query.data === undefined)
    return <ErrorView error={query.error} what="The grid" onRetry={() => void query.refetch()} />
  if (query.data === undefined) return <Skeleton rows={6} />
  if (query.data.runs.length === 0) return <StateView kind="empty" title="No run yet." />
  return (
    <Panel title="Last runs by task" flush>
      <Cells project={project} grid={query.data} />
    </Panel>
  )
}

function Cells({ project, grid }: { project: string; grid: GetWorkflowGridResponse }) {
  const cells = new Map(grid.cells.map((c) => [`${c.run} ${c.task}`, c]))
  // Oldest at the left, as time goes.
  const runs = grid.runs.map((run, index) => ({ run, index })).reverse()
  return (
    <div className={styles.gridScroll} tabIndex={0} role="region" aria-label="Last runs by task">
      <table className={styles.grid}>
        <thead>
          <tr>
            <th scope="col">Task</th>
            {runs.map(({ run }) => {
              const { icon: Icon, word, tone } = statusWord('run', run.status)
              return (
                <th key={run.id} scope="col">
                  <Link
                    to="/p/$project/runs/$id"
                    params={{ project, id: run.id }}
                    className={toneClass(tone)}
                    title={`${word}, ${run.version}, ${durationText(run.duration)}${run.partial ? ', only its first and last 1,000 steps' : ''}`}
                  >
                    <Icon size={14} aria-hidden />
                    <span className="hidden">
                      {word}, run {run.id}
                    </span>
                  </Link>
                </th>
              )
            })}
          </tr>
        </thead>
        <tbody>
          {grid.tasks.map((task, t) => (
            <tr key={`${task.pointer} ${t}`}>
              <th scope="row" title={task.pointer}>
                {task.task} <span className={styles.kind}>{task.kind}</span>
              </th>
              {runs.map(({ run, index }) => {
                const cell = cells.get(`${index} ${t}`)
                if (cell === undefined)
                  return (
                    <td key={run.id}>
                      <span className="hidden">not reached</span>
                    </td>
                  )
                const { icon: Icon, tone } = statusWord('step', cell.status)
                const text = cellText(cell)
                return (
                  <td key={run.id} className={toneClass(tone, true)} title={text}>
                    <Icon size={12} aria-hidden />
                    <span className="hidden">{text}</span>
                  </td>
                )
              })}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  )
}
