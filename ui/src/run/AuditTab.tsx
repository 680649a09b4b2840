import { useInfiniteQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { clients, milliseconds } from '../api'
import { type Column, DataTable, ErrorView, Skeleton, StateView, Time } from '../kit'
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
    cell: (entry) => <span title={entry.reason}>{entry.reason === '' ? '–' : entry.reason}</span>,
  },
]

/** Who did what to the run, and why. */
export function AuditTab({ run }: { run: Run }) {
  const [open, setOpen] = useState('')
  const audit = useInfiniteQuery({
    queryKey: ['run-audit', run.project, run.id, String(run.sequence)],
    queryFn: ({ signal, pageParam }) =>
      clients.audit.listAudit(
        { project: run.project, subject: run.id, pageSize: 100, pageToken: pageParam },
        { signal },
      ),
    initialPageParam: '',
    getNextPageParam: (page) => (page.nextPageToken === '' ? undefined : page.nextPageToken),
    placeholderData: (before) => before,
  })
  if (audit.isError) return <ErrorView error={audit.error} what="The audit log" onRetry={() => void audit.refetch()} />
  if (audit.data === undefined) return <Skeleton rows={4} height={20} />
  const entries = audit.data.pages.flatMap((page) => page.entries)
  if (entries.length === 0)
    return (
      <StateView kind="empty" title="No entries for this run.">
        Runs that events, schedules and other runs start have no entry of their own.
      </StateView>
    )
  const shown = entries.find((entry) => String(entry.id) === open)
  return (
    <div className={styles.audit}>
      <DataTable
        label="Audit entries of the run"
        columns={columns}
        rows={entries}
        rowKey={(entry) => String(entry.id)}
        active={open}
        onActive={setOpen}
        onEnd={() => {
          if (audit.hasNextPage && !audit.isFetching) void audit.fetchNextPage()
        }}
      />
      {shown === undefined ? null : (
        <JsonView json={shown.detail?.json} label="the detail of the entry" none="The entry has no detail." />
      )}
    </div>
  )
}
