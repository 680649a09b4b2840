import { Link } from '@tanstack/react-router'
import { Wrench } from 'lucide-react'
import { milliseconds, useMaintenance } from '../api'
import { Since } from '../kit'
import styles from './AppShell.module.css'

/** On every page while the platform is in maintenance: why, since when, and by whom. It begins by itself only for a restored database. */
export function MaintenanceNote() {
  const state = useMaintenance().data
  if (!state?.active) return null
  return (
    <div className={styles.maintenance} role="status" aria-label="Maintenance">
      <Wrench size={14} aria-hidden />
      <span>
        Maintenance: no new runs start. {state.reason}{' '}
        <span className={styles.aside}>
          By {state.actor} <Since at={milliseconds(state.since)} />
        </span>
        {state.actor === 'signalbox' ? (
          <>
            {' '}
            <Link to="/system/restore">Restore check</Link>
          </>
        ) : null}
      </span>
    </div>
  )
}
