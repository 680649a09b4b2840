import { useCallback, useEffect, useRef, useState } from 'react'

/**
 * selectRow returns the selection after a click on a row: the row is added or removed. With `range`, the rows between it and the anchor, which
 * is the row of the click before, are added; without an anchor in the list, the row alone is added.
 */
export function selectRow(
  selected: ReadonlySet<string>,
  ids: readonly string[],
  key: string,
  range: boolean,
  anchor: string | undefined,
): Set<string> {
  const next = new Set(selected)
  const from = anchor === undefined ? -1 : ids.indexOf(anchor)
  const to = ids.indexOf(key)
  if (range && from >= 0 && to >= 0)
    for (const id of ids.slice(Math.min(from, to), Math.max(from, to) + 1)) next.add(id)
  else if (range) next.add(key)
  else if (!next.delete(key)) next.add(key)
  return next
}

/** allSelected reports whether every row of a list is selected; an empty list has none. */
export const allSelected = (selected: ReadonlySet<string>, ids: readonly string[]): boolean =>
  ids.length > 0 && ids.every((id) => selected.has(id))

/** selectAll returns the rows of the list alone, or nothing if they are all selected already. */
export const selectAll = (selected: ReadonlySet<string>, ids: readonly string[]): Set<string> =>
  ids.every((id) => selected.has(id)) ? new Set() : new Set(ids)

/** useSelection keeps which rows of a list are selected, until the list becomes another one. Its functions stay the same ones. */
export function useSelection(list: string, rows: readonly { id: string }[]) {
  const [selected, setSelected] = useState<ReadonlySet<string>>(new Set())
  const anchor = useRef<string | undefined>(undefined)
  const ids = useRef<string[]>([])
  useEffect(() => {
    setSelected(new Set())
  }, [list])
  useEffect(() => {
    ids.current = rows.map((row) => row.id)
  }, [rows])
  const select = useCallback((key: string, range: boolean) => {
    const [from, list] = [anchor.current, ids.current]
    anchor.current = key
    setSelected((before) => selectRow(before, list, key, range, from))
  }, [])
  const toggleAll = useCallback(() => {
    setSelected((before) => selectAll(before, ids.current))
  }, [])
  const clear = useCallback(() => {
    setSelected(new Set())
  }, [])
  const all = allSelected(
    selected,
    rows.map((row) => row.id),
  )
  return { selected, all, select, toggleAll, clear }
}
