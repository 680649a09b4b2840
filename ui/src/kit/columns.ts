/** What the geometry of a table needs to know of a column. */
interface Width {
  /** Width in pixels; `grow` columns share what is left, by their number (`true` is 1) and the width of their content. */
  width: number
  grow?: boolean | number
}

/** gridTemplate returns the CSS widths of columns; `content` has the widths of what is in them, as far as they are known. */
export const gridTemplate = (columns: readonly Width[], content: readonly (number | undefined)[]): string =>
  columns
    .map(({ width, grow }, i) =>
      grow ? `minmax(${width}px, ${Number(grow) * (content[i] ?? width)}fr)` : `${width}px`,
    )
    .join(' ')

/** leastWidth returns the width below which a table scrolls: its columns, gaps of 8 px between them and 12 px at both ends. */
export const leastWidth = (columns: readonly Width[]): number =>
  columns.reduce((sum, column) => sum + column.width, 0) + 8 * (columns.length - 1) + 24

/** cardLines returns how many lines a row has as a card: its first two columns, then two of the others on each line. */
export const cardLines = (columns: number): number => 1 + Math.ceil((columns - 2) / 2)
