import { formatCount } from '../kit'
import styles from './projects.module.css'

/** How much of a limit is used, as a bar and in words; a limit of 0 means none. */
export function Use({ used, limit }: { used: bigint; limit: bigint }) {
  if (limit === 0n) return <span>{formatCount(used)}, no limit</span>
  const share = Math.min(1, Number(used) / Number(limit))
  return (
    <span className={styles.use}>
      <span className={styles.bar} aria-hidden>
        <span className={share >= 0.9 ? styles.high : styles.low} style={{ width: `${share * 100}%` }} />
      </span>
      {formatCount(used)} of {formatCount(limit)}
    </span>
  )
}
