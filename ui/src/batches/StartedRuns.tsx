import { Link } from '@tanstack/react-router'
import type { Batch } from '../gen/signalbox/v1/batch_pb'
import { formatCount, plural } from '../kit'
import { failedRuns } from './outcomes'
import styles from './batches.module.css'

/** The runs that a batch started, as lists: all of them, and those that are open or failed. */
export function StartedRuns({ batch: b }: { batch: Batch }) {
  const o = b.outcomes
  if (o === undefined || o.started === 0n) return <>none</>
  const runs = (text: string, ...status: string[]) => (
    <Link
      to="/p/$project/runs"
      params={{ project: b.project }}
      search={{ 'started-by-batch': b.id, ...(status.length === 0 ? {} : { status }) } as never}
    >
      {text}
    </Link>
  )
  return (
    <span className={styles.outcomes}>
      {runs(plural(o.started, 'run'))}
      {o.open > 0n ? runs(`${formatCount(o.open)} open`, 'queued', 'running', 'waiting') : null}
      {failedRuns(b) > 0n ? runs(`${formatCount(failedRuns(b))} failed`, 'failed', 'timed_out') : null}
    </span>
  )
}
