import type { Problem, ProblemSeries } from '../gen/signalbox/v1/problem_pb'
import { Chip, formatCount, inWords, statusWord } from '../kit'
import styles from './problems.module.css'

const kinds: Record<string, { word: string; tone: 'amber' | 'red' }> = {
  stuck: { word: 'Stuck', tone: 'amber' },
  retrying: { word: 'Retrying', tone: 'amber' },
  failure: { word: 'Failure', tone: 'red' },
  platform: { word: 'Platform', tone: 'amber' },
}

export function KindBadge({ problem }: { problem: Problem }) {
  const { word, tone } = kinds[problem.kind] ?? { word: inWords(problem.kind), tone: 'amber' as const }
  return <Chip tone={tone}>{word}</Chip>
}

/** The line that names a problem. */
export const title = (p: Problem): string =>
  p.kind === 'stuck' ? `${statusWord('stuck', p.code).word}: ${p.title}` : p.title

/** Where a problem is: the workflow with its task, or the task queue, and the project. */
export function where(p: Problem): string {
  const parts = [
    p.workflow,
    p.task,
    p.workflow === '' ? p.taskQueue : '',
    p.project === '' ? 'all projects' : p.project,
  ]
  return parts.filter(Boolean).join(' · ')
}

/** The versions of the failed runs, each with its number of runs. */
export const versions = (p: Problem): string =>
  p.versions.map((v) => `${v.version} (${formatCount(v.count)})`).join(', ')

/** Failed runs over time, one bar each interval. */
export function Series({ series }: { series: ProblemSeries | undefined }) {
  if (series === undefined || series.counts.length === 0) return <>–</>
  const counts = series.counts.map(Number)
  const most = Math.max(...counts, 1)
  return (
    <svg
      className={styles.series}
      viewBox={`0 0 ${counts.length * 5} 20`}
      preserveAspectRatio="none"
      role="img"
      aria-label={`Failed runs over time: ${counts.map((n) => formatCount(n)).join(', ')}`}
    >
      {counts.map((n, i) => (
        <rect key={i} x={i * 5} width={4} y={20 - (n / most) * 20} height={(n / most) * 20} />
      ))}
    </svg>
  )
}

/** The runs of a problem, as a path and filters of the page of runs; undefined if it has none. */
export function runsOf(p: Problem): { to: string; search: Record<string, string> } | undefined {
  const to = `/p/${encodeURIComponent(p.project)}/runs`
  if (p.kind === 'failure' && p.failureGroup !== '')
    return {
      to,
      search: { 'failure-group': p.failureGroup, ...(p.state === 'resolved' ? {} : { 'not-replayed': 'true' }) },
    }
  if (p.kind === 'stuck') return { to, search: { stuck: p.code } }
  if (p.kind === 'retrying') return { to, search: { retrying: p.pointer, workflow: p.workflow } }
  return undefined
}
