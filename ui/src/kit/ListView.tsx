import type { ReactNode } from 'react'
import type { Pages } from '../api'
import { Button } from './Button'
import { type Column, DataTable, type DataTableProps } from './DataTable'
import styles from './ListView.module.css'
import { ErrorView, Skeleton, StateView } from './StateView'

/** A list of the API with all its states: loading, failed, empty, no match, partly unreadable, and its rows. */
export function ListView<Row>({ list, what, columns, rowKey, empty, filtered, onClear, ...table }: {
  list: Pages<Row>
  /** What the list has, in the plural: "events". */
  what: string
  columns: Column<Row>[]
  rowKey: (row: Row) => string
  /** Shown if there is nothing at all. */
  empty: ReactNode
  filtered?: boolean
  onClear?: () => void
} & Pick<DataTableProps<Row>, 'onOpen' | 'active' | 'onActive' | 'highlighted' | 'selected' | 'onSelect' | 'rowHeight'>) {
  if (list.failed) return <ErrorView error={list.error} what={`The list of ${what}`} onRetry={list.retry} />
  if (list.isPending) return <div className={styles.loading}><Skeleton rows={12} /></div>
  if (list.rows.length === 0) {
    return (
      <>
        <Unread errors={list.errors} />
        {filtered ? <StateView kind="no-match" title={`No ${what} match the filters.`} actions={onClear === undefined ? undefined : <Button onClick={onClear}>Clear the filters</Button>} /> : empty}
      </>
    )
  }
  return (
    <>
      <Unread errors={list.errors} />
      <DataTable label={what} columns={columns} rows={list.rows} rowKey={rowKey} onEnd={list.more} footer={list.hasMore ? 'Loading more' : undefined} {...table} />
    </>
  )
}

/** What the server could not read: its part of the list is not known. */
export function Unread({ errors }: { errors: string[] }) {
  if (errors.length === 0) return null
  return <div className={styles.unread} role="status">Not known: {errors.join('; ')}</div>
}
