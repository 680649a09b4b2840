import type { ReactNode } from 'react'
import type { Pages } from '../api'
import { Button } from './Button'
import { type Column, DataTable, type DataTableProps } from './DataTable'
import { formatCount } from './format'
import { useHeldRows } from './held'
import styles from './ListView.module.css'
import { ErrorView, Skeleton, StateView } from './StateView'

/**
 * A list of the API with all its states: loading, failed, empty, no match, partly unreadable, and its rows. They keep their place while the
 * pointer or the focus is in the list.
 */
export function ListView<Row>({
  list,
  what,
  columns,
  rowKey,
  empty,
  filtered,
  onClear,
  ...table
}: {
  list: Pages<Row>
  /** What the list has, in the plural: "events". */
  what: string
  columns: Column<Row>[]
  rowKey: (row: Row) => string
  /** Shown if there is nothing at all. */
  empty: ReactNode
  filtered?: boolean
  onClear?: () => void
} & Pick<
  DataTableProps<Row>,
  'onOpen' | 'active' | 'onActive' | 'highlighted' | 'selected' | 'onSelect' | 'rowHeight'
>) {
  const held = useHeldRows(list.rows, rowKey, list.view)
  if (list.failed) return <ErrorView error={list.error} what={`The list of ${what}`} onRetry={list.retry} />
  if (list.isPending)
    return (
      <div className={styles.loading}>
        <Skeleton rows={12} />
      </div>
    )
  if (held.rows.length === 0) {
    return (
      <>
        <Unread errors={list.errors} />
        {filtered ? (
          <StateView
            kind="no-match"
            title={`No ${what} match the filters.`}
            actions={onClear === undefined ? undefined : <Button onClick={onClear}>Clear the filters</Button>}
          />
        ) : (
          empty
        )}
      </>
    )
  }
  return (
    <>
      <Unread errors={list.errors} />
      <div className={styles.held} {...held.handlers}>
        <DataTable
          label={what}
          columns={columns}
          rows={held.rows}
          rowKey={rowKey}
          onEnd={list.more}
          footer={list.hasMore ? 'Loading more' : undefined}
          faded={held.left}
          {...table}
        />
        {held.waiting === 0 ? null : (
          <div className={styles.changes} role="status">
            <Button onClick={held.settle}>Show {formatCount(held.waiting)} new</Button>
          </div>
        )}
      </div>
    </>
  )
}

/** What the server could not read: its part of the list is not known. */
export function Unread({ errors }: { errors: string[] }) {
  if (errors.length === 0) return null
  return (
    <div className={styles.unread} role="status">
      Not known: {errors.join('; ')}
    </div>
  )
}
