import { ChevronDown, CircleX, Info, TriangleAlert } from 'lucide-react'
import { useState, type ReactNode } from 'react'
import styles from './AlertSlot.module.css'

export interface Alert {
  id: string
  tone: 'red' | 'amber' | 'blue' | 'violet'
  /** What is the case, in one line. */
  title: ReactNode
  /** Since when. */
  since?: ReactNode
  /** Why, and what to do. */
  detail?: ReactNode
  actions?: ReactNode
}

const icons = { red: CircleX, amber: TriangleAlert, blue: Info, violet: Info }

/** The one alert of a page: the most important first, the others folded behind a count. */
export function AlertSlot({ alerts }: { alerts: Alert[] }) {
  const [all, setAll] = useState(false)
  if (alerts.length === 0) return null
  const shown = all ? alerts : alerts.slice(0, 1)
  return (
    <div className={styles.slot} role="status" aria-label="Alerts">
      {shown.map((alert, index) => {
        const Icon = icons[alert.tone]
        return (
          <div key={alert.id} className={`${styles.alert} ${styles[alert.tone] ?? ''}`} data-alert={alert.id}>
            <Icon size={16} aria-hidden />
            <div className={styles.text}>
              <div className={styles.title}>
                {alert.title}
                {alert.since === undefined ? null : <span className={styles.since}>{alert.since}</span>}
              </div>
              {alert.detail === undefined ? null : <div className={styles.detail}>{alert.detail}</div>}
            </div>
            <div className={styles.actions}>
              {alert.actions}
              {index === 0 && alerts.length > 1 ? (
                <button type="button" className={styles.more} aria-expanded={all} onClick={() => setAll(!all)}>
                  {all ? 'Less' : `${alerts.length - 1} more`} <ChevronDown size={14} aria-hidden />
                </button>
              ) : null}
            </div>
          </div>
        )
      })}
    </div>
  )
}
