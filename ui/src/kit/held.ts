import { type FocusEvent, useEffect, useRef, useState } from 'react'

/** The rows of a list as they are shown. */
export interface Shown<Row> {
  rows: Row[]
  /** The keys of rows that are no longer in the list. */
  left: ReadonlySet<string>
  /** How many rows of the list are not shown yet. */
  waiting: number
}

/** inPlace returns the rows that are shown in place of `shown` when the list is `next`: none moves, none is taken away, new ones come only at the end. */
export function inPlace<Row>(shown: Row[], next: Row[], key: (row: Row) => string): Shown<Row> {
  const latest = new Map(next.map((row) => [key(row), row]))
  const before = new Set(shown.map(key))
  const last = next.findLastIndex((row) => before.has(key(row)))
  const appended = next.slice(last + 1)
  return {
    rows: [...shown.map((row) => latest.get(key(row)) ?? row), ...appended],
    left: new Set(shown.map(key).filter((k) => !latest.has(k))),
    waiting: next.slice(0, last + 1).filter((row) => !before.has(key(row))).length,
  }
}

const nothing: ReadonlySet<string> = new Set()

/**
 * useHeldRows keeps the rows of a list in their place while a person is at work with them: while the pointer or the focus is in the list, or
 * in what was opened from it. `view` names what the list shows: with another filter, the rows are other ones.
 */
export function useHeldRows<Row>(list: Row[], rowKey: (row: Row) => string, view: string) {
  const [pointer, setPointer] = useState(false)
  const [focus, setFocus] = useState(false)
  const held = pointer || focus
  const leaving = useRef(0)
  useEffect(
    () => () => {
      window.clearTimeout(leaving.current)
    },
    [],
  )
  const [state, setState] = useState<Shown<Row> & { list: Row[]; view: string; held: boolean }>({
    rows: list,
    left: nothing,
    waiting: 0,
    list,
    view,
    held,
  })
  const settle = () => {
    setState({ rows: list, left: nothing, waiting: 0, list, view, held })
  }
  if (state.list !== list || state.view !== view || state.held !== held) {
    if (held && state.view === view) setState({ ...inPlace(state.rows, list, rowKey), list, view, held })
    else settle()
  }
  // An empty list has no element that the pointer could leave.
  if (held && state.rows.length === 0) {
    setPointer(false)
    setFocus(false)
  }
  return {
    ...state,
    /** Shows the list as it is now. */
    settle,
    /** For the element around the list. React passes it also the events of dialogs and menus that were opened from a row. */
    handlers: {
      onPointerEnter: () => setPointer(true),
      onPointerLeave: () => setPointer(false),
      onFocus: ({ currentTarget, target }: FocusEvent) => {
        window.clearTimeout(leaving.current)
        // A row that was only clicked keeps the focus when the pointer is elsewhere.
        setFocus(!currentTarget.contains(target) || target.matches(':focus-visible'))
      },
      onBlur: ({ target }: FocusEvent) => {
        window.clearTimeout(leaving.current)
        // The focus may go on within the list, or the window has lost it.
        leaving.current = window.setTimeout(() => {
          if (document.activeElement !== target) setFocus(false)
        })
      },
    },
  }
}
