import type { Batch } from '../gen/signalbox/v1/batch_pb'
import { formatCount } from '../kit'
import styles from './batches.module.css'

/** How far a batch is: a bar, and the same in words. */
export function Progress({ batch: b }: { batch: Batch }) {
  const total = Number(b.total)
  const share = (n: bigint) => (total === 0 ? 0 : (Number(n) / total) * 100)
  const words = [`${formatCount(b.succeeded)} succeeded`, b.refused > 0n ? `${formatCount(b.refused)} refused` : '', b.failed > 0n ? `${formatCount(b.failed)} failed` : '', b.pending > 0n ? `${formatCount(b.pending)} pending` : '']
  return (
    <span className={styles.progress}>
      <span className={styles.bar} aria-hidden>
        <span className={styles.succeeded} style={{ width: `${share(b.succeeded)}%` }} />
        <span className={styles.refused} style={{ width: `${share(b.refused)}%` }} />
        <span className={styles.failed} style={{ width: `${share(b.failed)}%` }} />
      </span>
      <span>{words.filter(Boolean).join(', ')}</span>
    </span>
  )
}
