import { CircleHelp, Inbox, Lock, TriangleAlert, type LucideIcon } from 'lucide-react'
import type { ReactNode } from 'react'
import { callError, useLink } from '../api'
import { Button } from './Button'
import { Elapsed } from './Time'
import styles from './StateView.module.css'

const icons: Record<string, LucideIcon> = { empty: Inbox, 'no-match': CircleHelp, denied: Lock, error: TriangleAlert }

/** What a page or panel shows in place of its content: what is the case, and what to do. */
export function StateView({
  kind,
  title,
  children,
  actions,
}: {
  kind: 'empty' | 'no-match' | 'denied' | 'error'
  title: ReactNode
  children?: ReactNode
  actions?: ReactNode
}) {
  const Icon = icons[kind] ?? Inbox
  return (
    <div
      className={`${styles.state} ${kind === 'error' ? styles.error : ''}`}
      role={kind === 'error' ? 'alert' : 'status'}
      data-state={kind}
    >
      <Icon size={20} aria-hidden />
      <div className={styles.title}>{title}</div>
      {children === undefined ? null : <div className={styles.text}>{children}</div>}
      {actions === undefined ? null : <div className={styles.actions}>{actions}</div>}
    </div>
  )
}

/** The failure of a query, in words with the way out. */
export function ErrorView({ error, what, onRetry }: { error: unknown; what: string; onRetry?: () => void }) {
  const e = callError(error)
  if (e.kind === 'denied' || e.kind === 'missing') {
    return (
      <StateView kind="denied" title={`${what}: not found, or no role for it`}>
        {e.message}
      </StateView>
    )
  }
  return (
    <StateView
      kind="error"
      title={`${what}: ${e.message}`}
      actions={onRetry === undefined ? undefined : <Button onClick={onRetry}>Retry</Button>}
    >
      {e.reason === '' ? null : <code>{e.reason}</code>}
      {e.fields.map((field) => (
        <div key={field.path}>
          <code>{field.path}</code> {field.message}
        </div>
      ))}
    </StateView>
  )
}

/** Grey bars in the final geometry while data is on its way. */
export function Skeleton({ rows = 1, height = 16, gap = 16 }: { rows?: number; height?: number; gap?: number }) {
  return (
    <div role="status" aria-label="Loading" className={styles.skeleton} style={{ gap }}>
      {Array.from({ length: rows }, (_, i) => (
        <div key={i} className={styles.bar} style={{ height, width: `${100 - ((i * 7) % 30)}%` }} />
      ))}
    </div>
  )
}

/** "Data from 14:02:11, 0:42 old" while no server answers. `at` is the time (of performance.now) of the data. */
export function StaleNote() {
  const link = useLink()
  if (link.state === 'live' || link.lastAnswer === undefined) return null
  const offset = Date.now() - performance.now()
  return (
    <div className={styles.stale} role="status">
      <TriangleAlert size={14} aria-hidden /> No connection to the server. The data is{' '}
      <Elapsed from={offset + link.lastAnswer} /> old; controls are off until the connection is back.
    </div>
  )
}
