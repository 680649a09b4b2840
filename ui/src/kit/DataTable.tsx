import { useVirtualizer } from '@tanstack/react-virtual'
import { ArrowDown, ArrowUp } from 'lucide-react'
import {
  memo,
  useEffect,
  useLayoutEffect,
  useMemo,
  useRef,
  useState,
  type KeyboardEvent,
  type ReactElement,
  type ReactNode,
  type RefObject,
} from 'react'
import { cardLines, gridTemplate, leastWidth } from './columns'
import styles from './DataTable.module.css'
import { moved } from './move'
import { cardHeight, usePhone } from './narrow'

export interface Column<Row> {
  id: string
  title: ReactNode
  /** Width in pixels; `grow` columns share what is left, by their number (`true` is 1) and the width of their content. */
  width: number
  grow?: boolean | number
  align?: 'end'
  cell: (row: Row) => ReactNode
  /** Sorts by this column; the value names the order that a click asks for. */
  sort?: { active: 'ascending' | 'descending' | undefined; onSort: () => void } | undefined
}

export interface DataTableProps<Row> {
  label: string
  columns: Column<Row>[]
  rows: Row[]
  rowKey: (row: Row) => string
  /** Opens a row: Enter or a click that hits no other control. */
  onOpen?: (row: Row) => void
  /** Space on the focused row. */
  onPeek?: (row: Row) => void
  selected?: ReadonlySet<string>
  onSelect?: (key: string, range: boolean) => void
  /** Called when the end of the rows comes near. */
  onEnd?: () => void
  /** Called with the rows in view, by index. */
  onView?: (first: number, last: number) => void
  footer?: ReactNode
  /** Rows that are shown weaker, with the reason, such as runs that no longer match. */
  faded?: ReadonlySet<string>
  highlighted?: string | undefined
  /** The row that has the keyboard, by key; kept by the caller so that it survives a change of the rows. */
  active?: string | undefined
  onActive?: (key: string) => void
  /** The height of all rows, or of each; 32 if absent. */
  rowHeight?: number | ((row: Row) => number)
}

/**
 * A table of which only the rows in view exist in the page. The heights of rows are known before they are drawn, so nothing moves while it scrolls. The keyboard moves
 * with j, k and the arrows, opens with Enter, peeks with Space, selects with x.
 */
export function DataTable<Row>(props: DataTableProps<Row>) {
  const phone = usePhone()
  // A page may have cards of its own: a column named so.
  const cards = phone && props.columns.length > 1 && !props.columns.some((column) => column.id === 'card')
  const columns = useMemo(() => (cards ? [cardOf(props.columns)] : props.columns), [cards, props.columns])
  const { rows, rowKey, onOpen, onPeek, onSelect, selected, onEnd, onView, active, onActive, faded, highlighted } =
    props
  const scroller = useRef<HTMLDivElement>(null)
  const rowHeight = cards ? cardHeight(cardLines(props.columns.length)) : (props.rowHeight ?? 32)
  const heightOf = (row: Row | undefined) =>
    typeof rowHeight === 'number' ? rowHeight : row === undefined ? 0 : rowHeight(row)
  const virtual = useVirtualizer({
    count: rows.length,
    getScrollElement: () => scroller.current,
    estimateSize: (index) => heightOf(rows[index]),
    overscan: 4,
  })
  const heights = typeof rowHeight === 'number' ? String(rowHeight) : rows.map(heightOf).join(' ')
  // The positions of rows are kept until they are measured again.
  useLayoutEffect(() => {
    virtual.measure()
  }, [virtual, heights])
  const items = virtual.getVirtualItems()
  const last = items.at(-1)?.index ?? -1
  useEffect(() => {
    if (onEnd !== undefined && last >= rows.length - 20 && rows.length > 0) onEnd()
  }, [last, rows.length, onEnd])
  const first = items[0]?.index ?? 0
  useEffect(() => {
    if (last >= 0) onView?.(first, last)
  }, [first, last, onView])

  const wanted = useWidths(scroller, columns, rows.length > 0)
  const template = gridTemplate(columns, wanted)
  const least = leastWidth(columns)
  const current = active === undefined ? -1 : rows.findIndex((row) => rowKey(row) === active)

  const move = (to: number) => {
    const row = rows[to]
    if (row === undefined) return
    onActive?.(rowKey(row))
    virtual.scrollToIndex(to)
  }
  const extend = (from: Row, to: number) => {
    if (selected?.has(rowKey(from)) !== true) onSelect?.(rowKey(from), false)
    const row = rows[to]
    if (row !== undefined) onSelect?.(rowKey(row), true)
    move(to)
  }
  const keys = (event: KeyboardEvent) => {
    // React passes the events of menus and dialogs of a row, which are elsewhere in the page.
    if (!event.currentTarget.contains(event.target as Node)) return
    if (
      event.ctrlKey ||
      event.metaKey ||
      event.altKey ||
      (event.target as HTMLElement).closest('input, select, textarea, [role=menu]') !== null
    )
      return
    const row = rows[current]
    const to = moved(event.key, current, rows.length)
    const onControl = (event.target as HTMLElement).closest('a, button') !== null
    if (to !== undefined) move(to)
    else if (row === undefined) return
    else if (event.key === 'Enter' && onOpen !== undefined && !onControl) onOpen(row)
    else if (event.key === ' ' && onPeek !== undefined && !onControl) onPeek(row)
    else if (event.key === 'x' && onSelect !== undefined) onSelect(rowKey(row), false)
    else if ((event.key === 'J' || event.key === 'K') && onSelect !== undefined)
      extend(row, current + (event.key === 'J' ? 1 : -1))
    else return
    event.preventDefault()
  }

  return (
    <div
      ref={scroller}
      className={styles.scroller}
      role="grid"
      aria-label={props.label}
      aria-rowcount={rows.length + 1}
      aria-colcount={columns.length}
      aria-multiselectable={onSelect === undefined ? undefined : true}
      aria-activedescendant={current >= 0 ? `row-${active ?? ''}` : undefined}
      tabIndex={0}
      onKeyDown={keys}
      onFocus={(event) => {
        // Only for the keyboard: a press of the mouse must not scroll the row away from under it.
        if (current < 0 && event.target === event.currentTarget && event.currentTarget.matches(':focus-visible'))
          move(items.find((item) => item.end > (scroller.current?.scrollTop ?? 0))?.index ?? 0)
      }}
    >
      <div
        role="row"
        aria-rowindex={1}
        className={styles.head}
        style={{ gridTemplateColumns: template, minWidth: least }}
      >
        {columns.map((column) => (
          <div
            key={column.id}
            role="columnheader"
            className={column.align === 'end' ? styles.end : undefined}
            aria-sort={column.sort?.active ?? (column.sort === undefined ? undefined : 'none')}
          >
            {column.sort === undefined ? (
              column.title
            ) : (
              <button type="button" className={styles.sort} onClick={column.sort.onSort}>
                {column.title}
                {column.sort.active === 'ascending' ? (
                  <ArrowUp size={12} aria-hidden />
                ) : column.sort.active === 'descending' ? (
                  <ArrowDown size={12} aria-hidden />
                ) : null}
              </button>
            )}
          </div>
        ))}
      </div>
      <div role="rowgroup" className={styles.rows} style={{ height: virtual.getTotalSize(), minWidth: least }}>
        {items.map((item) => {
          const row = rows[item.index]
          if (row === undefined) return null
          const key = rowKey(row)
          return (
            <RowView
              key={key}
              row={row}
              id={key}
              index={item.index}
              start={item.start}
              height={heightOf(row)}
              template={template}
              columns={columns}
              selected={onSelect === undefined ? undefined : (selected?.has(key) ?? false)}
              faded={faded?.has(key) ?? false}
              active={key === active}
              highlighted={key === highlighted}
              onActive={onActive}
              onOpen={onOpen}
            />
          )
        })}
      </div>
      {props.footer === undefined ? null : <div className={styles.foot}>{props.footer}</div>}
    </div>
  )
}

/** useWidths measures how wide the content of each column is in the rows that are there first. */
function useWidths<Row>(
  scroller: RefObject<HTMLElement | null>,
  columns: Column<Row>[],
  any: boolean,
): (number | undefined)[] {
  const [widths, setWidths] = useState<(number | undefined)[]>([])
  const ids = columns.map((column) => column.id).join(' ')
  useLayoutEffect(() => {
    if (!any) return
    const most: number[] = []
    const range = document.createRange()
    for (const row of scroller.current?.querySelectorAll('[role=rowgroup] > [role=row]') ?? []) {
      ;[...row.children].forEach((cell, i) => {
        range.selectNodeContents(cell)
        most[i] = Math.max(most[i] ?? 40, Math.min(600, range.getBoundingClientRect().width))
      })
    }
    setWidths(most)
  }, [scroller, ids, any])
  return widths
}

/** cardOf returns the one column of a table on a phone, with all of a row. */
const cardOf = <Row,>(columns: Column<Row>[]): Column<Row> => ({
  id: 'card',
  title: columns[0]?.title,
  width: 200,
  grow: true,
  cell: (row) => (
    <span className={styles.card}>
      {columns.map((column, i) => (
        <span key={column.id} className={styles.fact}>
          {i < 2 || typeof column.title !== 'string' ? null : <span className={styles.label}>{column.title} </span>}
          {column.cell(row)}
        </span>
      ))}
    </span>
  ),
})

interface RowViewProps<Row> {
  row: Row
  id: string
  index: number
  start: number
  height: number
  template: string
  columns: Column<Row>[]
  /** Undefined where rows cannot be selected. */
  selected: boolean | undefined
  faded: boolean
  active: boolean
  highlighted: boolean
  onActive: ((key: string) => void) | undefined
  onOpen: ((row: Row) => void) | undefined
}

/** One row. It is drawn again only when something of it has changed: scrolling and changes of other rows leave it as it is. */
const RowView = memo(function RowView<Row>({
  row,
  id,
  index,
  start,
  height,
  template,
  columns,
  selected,
  faded,
  active,
  highlighted,
  onActive,
  onOpen,
}: RowViewProps<Row>) {
  const classes = [
    styles.row,
    selected ? styles.selected : '',
    faded ? styles.faded : '',
    active ? styles.active : '',
    highlighted ? styles.highlighted : '',
  ]
  return (
    <div
      id={`row-${id}`}
      role="row"
      aria-rowindex={index + 2}
      aria-selected={selected}
      className={classes.join(' ')}
      style={{ gridTemplateColumns: template, height, transform: `translateY(${start}px)` }}
      onClick={(event) => {
        if (!event.currentTarget.contains(event.target as Node)) return
        onActive?.(id)
        if (
          onOpen !== undefined &&
          (event.target as HTMLElement).closest('a, button, input, label') === null &&
          window.getSelection()?.isCollapsed !== false
        )
          onOpen(row)
      }}
    >
      <Cells columns={columns} row={row} />
    </div>
  )
}) as <Row>(props: RowViewProps<Row>) => ReactElement

/** The cells of a row. A row that only moves, because others are above it now, keeps them. */
const Cells = memo(function Cells<Row>({ columns, row }: { columns: Column<Row>[]; row: Row }) {
  return columns.map((column) => (
    <div
      key={column.id}
      role="gridcell"
      className={column.align === 'end' ? `${styles.cell} ${styles.end}` : styles.cell}
    >
      {column.cell(row)}
    </div>
  ))
}) as <Row>(props: { columns: Column<Row>[]; row: Row }) => ReactNode
