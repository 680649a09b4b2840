import type { Batch } from '../gen/signalbox/v1/batch_pb'
import { failedRuns, outcomeWords, progressWords } from './outcomes'
import styles from './batches.module.css'

/** How far a batch is and what became of the runs that it started: a bar, and the same in words. A run that is started is no success yet. */
export function Progress({ batch: b }: { batch: Batch }) {
  const total = Number(b.total)
  const share = (n: bigint) => `${total === 0 ? 0 : (Number(n) / total) * 100}%`
  const o = b.outcomes
  const became = outcomeWords(b)
  return (
    <span className={styles.progress}>
      <span className={styles.bar} aria-hidden>
        <span className={styles.succeeded} style={{ width: share(o === undefined ? b.succeeded : o.completed) }} />
        <span className={styles.open} style={{ width: share(o === undefined ? 0n : o.open) }} />
        <span
          className={styles.ended}
          style={{ width: share(o === undefined ? 0n : o.canceled + o.terminated + o.unknown) }}
        />
        <span className={styles.refused} style={{ width: share(b.refused) }} />
        <span className={styles.failed} style={{ width: share(b.failed + failedRuns(b)) }} />
      </span>
      <span>
        {progressWords(b)}
        {became === '' ? '' : `: ${became}`}
      </span>
    </span>
  )
}
