import type { Batch } from '../gen/signalbox/v1/batch_pb'
import { barParts, outcomeWords, progressWords } from './outcomes'
import styles from './batches.module.css'

/** How far a batch is and what became of the runs that it started: a bar, and the same in words. A run that is started is no success yet. */
export function Progress({ batch: b }: { batch: Batch }) {
  const became = outcomeWords(b)
  return (
    <span className={styles.progress}>
      <span className={styles.bar} aria-hidden>
        {barParts(b).map(({ part, share }) => (
          <span key={part} className={styles[part]} style={{ width: `${share * 100}%` }} />
        ))}
      </span>
      <span>
        {progressWords(b)}
        {became === '' ? '' : `: ${became}`}
      </span>
    </span>
  )
}
