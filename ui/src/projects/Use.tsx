import { formatCount } from '../kit'
import { isHigh, usedShare } from './limits'
import styles from './projects.module.css'

/** How much of a limit is used, as a bar and in words; a limit of 0 means none. */
export function Use({ used, limit }: { used: bigint; limit: bigint }) {
  const share = usedShare(used, limit)
  if (share === undefined) return <span>{formatCount(used)}, no limit</span>
  return (
    <span className={styles.use}>
      <span className={styles.bar} aria-hidden>
        <span className={isHigh(share) ? styles.high : styles.low} style={{ width: `${share * 100}%` }} />
      </span>
      {formatCount(used)} of {formatCount(limit)}
    </span>
  )
}
