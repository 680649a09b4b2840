import { useState } from 'react'
import { clients, milliseconds, usePages } from '../api'
import { type Column, Cut, ListView, StateView, Time } from '../kit'
import { JsonView } from '../payload'
import type { AuditEntry } from '../gen/signalbox/v1/audit_pb'
import type { Run } from '../gen/signalbox/v1/run_pb'
import styles from './run.module.css'

const columns: Column<AuditEntry>[] = [
  { id: 'time', title: 'Time', width: 120, cell: (entry) => <Time at={milliseconds(entry.time)} /> },
  { id: 'action', title: 'Action', width: 160, cell: (entry) => entry.action },
  {
    id: 'actor',
    title: 'Actor',
    width: 160,
    cell: (entry) => `${entry.actor}${entry.actorKind === '' ? '' : ` (${entry.actorKind})`}`,
  },
  {
    id: 'reason',
    title: 'Reason',
    width: 200,
    grow: true,
    cell: (entry) => <Cut text={entry.reason} />,
  },
]

/** Who did what to the run, and why. */
export function AuditTab({ run }: { run: Run }) {
  const [open, setOpen] = useState('')
  const list = usePages(['run-audit', run.project, run.id, String(run.sequence)], async (pageToken, signal) => {
    const page = await clients.audit.listAudit(
      { project: run.project, subject: run.id, pageSize: 100, pageToken },
      { signal },
    )
    return { rows: page.entries, nextPageToken: page.nextPageToken }
  })
  const shown = list.rows.find((entry) => String(entry.id) === open)
  return (
    <div className={styles.audit}>
      <ListView
        list={list}
        what="audit entries"
        columns={columns}
        rowKey={(entry) => String(entry.id)}
        active={open}
        onActive={setOpen}
        empty={
          <StateView kind="empty" title="No entries for this run.">
            Runs that events, schedules and other runs start have no entry of their own.
          </StateView>
        }
      />
      {shown === undefined ? null : (
        <JsonView json={shown.detail?.json} label="the detail of the entry" none="The entry has no detail." />
      )}
    </div>
  )
}
