import styles from './StatusBadge.module.css'
import { cancelRequested, statusWord, type Tone, type Vocabulary } from './status'
import { toneClass } from './tone'

/** A status by icon, word and colour. `detail` follows the word after a colon, as in "Waiting: timer". */
export function StatusBadge({
  of,
  status,
  detail,
  size = 'normal',
}: {
  of: Vocabulary
  status: string
  detail?: string
  size?: 'normal' | 'large'
}) {
  const { icon: Icon, word, tone } = statusWord(of, status)
  return (
    <span className={`${styles.badge} ${toneClass(tone)} ${size === 'large' ? styles.large : ''}`}>
      <Icon size={size === 'large' ? 18 : 14} aria-hidden />
      <span>
        {word}
        {detail ? <span className={styles.detail}>: {detail}</span> : null}
      </span>
    </span>
  )
}

/** Beside the status of a run that was asked to cancel and has not ended. */
export function CancelRequestedBadge() {
  const { icon: Icon, word, tone } = cancelRequested
  return (
    <span className={`${styles.badge} ${toneClass(tone)}`}>
      <Icon size={14} aria-hidden />
      {word}
    </span>
  )
}

/** A short label on a tint. */
export function Chip({
  tone,
  children,
  title,
}: {
  tone: Tone
  children: React.ReactNode
  title?: string
}) {
  return (
    <span className={`${styles.chip} ${toneClass(tone, true)}`} title={title}>
      {children}
    </span>
  )
}
