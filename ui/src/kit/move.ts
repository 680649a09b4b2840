/** How far the keys of a page go. */
const page = 15

/** moved returns the row of a list that a key leads to from the row `at`; undefined for other keys. */
export function moved(key: string, at: number, count: number): number | undefined {
  const targets: Record<string, number | undefined> = {
    j: at + 1,
    ArrowDown: at + 1,
    k: at - 1,
    ArrowUp: at - 1,
    Home: 0,
    End: count - 1,
    PageDown: at + page,
    PageUp: at - page,
  }
  const to = Object.hasOwn(targets, key) ? targets[key] : undefined
  return to === undefined ? undefined : Math.max(0, Math.min(count - 1, to))
}

/** A row of a tree as the keyboard sees it. */
export interface TreeRow {
  depth: number
  /** Whether it can be opened and closed. */
  branch: boolean
  open: boolean
}

/** What a key does in a tree: it moves to a row, opens or closes the row, or activates it. */
export type TreeAction = { kind: 'move'; to: number } | { kind: 'toggle' } | { kind: 'activate' }

/** treeAction returns what a key does at the row `at` of a tree; undefined for other keys. */
export function treeAction(key: string, rows: readonly TreeRow[], at: number): TreeAction | undefined {
  const row = rows[at]
  if (row === undefined) return undefined
  if (key === 'Enter' || key === ' ') return { kind: 'activate' }
  if (key === 'ArrowRight' || key === 'ArrowLeft') {
    if (row.branch && row.open === (key === 'ArrowLeft')) return { kind: 'toggle' }
    if (key === 'ArrowRight') return { kind: 'move', to: Math.min(rows.length - 1, at + 1) }
    const above = rows.slice(0, at).findLastIndex((other) => other.depth < row.depth)
    return { kind: 'move', to: above < 0 ? at : above }
  }
  const to = moved(key, at, rows.length)
  return to === undefined ? undefined : { kind: 'move', to }
}

/** flipped returns a set with the key added, or removed if it was there. */
export function flipped<T>(set: ReadonlySet<T>, key: T): Set<T> {
  const next = new Set(set)
  if (!next.delete(key)) next.add(key)
  return next
}
