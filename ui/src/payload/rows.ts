import { escapePointer, isObject, type Json, JsonNumber, printJson } from '../api/json'
import { mark } from '../api/patch'

/** A line of the tree of a value. */
export interface Line {
  pointer: string
  depth: number
  /** The name of a member or the position in a list; empty for the whole value. */
  name: string
  value: Json
  /** Number of entries of an object or list. */
  size: number | undefined
  /** Whether it can be opened. */
  branch: boolean
  open: boolean
}

/** Values with at most this many lines are shown open. */
const openLines = 400

/** countLines returns the number of lines that a value has when all is open, or a number beyond the limit. */
export function countLines(value: Json, limit = openLines): number {
  let lines = 0
  const visit = (v: Json) => {
    lines++
    if (lines > limit) return
    if (Array.isArray(v)) for (const item of v) visit(item)
    else if (isObject(v)) for (const item of v.values()) visit(item)
  }
  visit(value)
  return lines
}

/**
 * lines returns the lines of a value. `toggled` has the pointers that a person opened or closed against the default: all is open in a small
 * value, the first level in a large one. `reveal` is shown in any case.
 */
export function lines(value: Json, toggled: ReadonlySet<string>, reveal = ''): Line[] {
  const small = countLines(value) <= openLines
  const out: Line[] = []
  const visit = (v: Json, pointer: string, name: string, depth: number) => {
    const entries: [string, Json][] | undefined = Array.isArray(v)
      ? v.map((item, i) => [String(i), item])
      : isObject(v)
        ? [...v]
        : undefined
    const inside = reveal.startsWith(`${pointer}/`)
    const branch = entries !== undefined && entries.length > 0
    const open = branch && (inside || (small || depth < 1) !== toggled.has(pointer))
    out.push({ pointer, depth, name, value: v, size: entries?.length, branch, open })
    if (open) for (const [key, item] of entries) visit(item, `${pointer}/${escapePointer(key)}`, key, depth + 1)
  }
  visit(value, '', '', 0)
  return out
}

/** search returns the pointers of the names and plain values that contain a text. */
export function search(value: Json, text: string, most = 1000): string[] {
  const wanted = text.toLowerCase()
  const found: string[] = []
  if (wanted === '') return found
  const visit = (v: Json, pointer: string, name: string) => {
    if (found.length >= most) return
    const plain =
      typeof v === 'string'
        ? v
        : v instanceof JsonNumber
          ? v.text
          : v === null || typeof v === 'boolean'
            ? String(v)
            : ''
    if (name.toLowerCase().includes(wanted) || plain.toLowerCase().includes(wanted)) found.push(pointer)
    if (Array.isArray(v))
      v.forEach((item, i) => {
        visit(item, `${pointer}/${i}`, '')
      })
    else if (isObject(v)) for (const [key, item] of v) visit(item, `${pointer}/${escapePointer(key)}`, key)
  }
  visit(value, '', '')
  return found
}

/** copyOf returns what is copied of a value: a text as it is, anything else as JSON. */
export const copyOf = (value: Json): string => (typeof value === 'string' ? value : printJson(value, 2))

/** stepped returns the position in a list of matches after a step; it goes round at both ends. The list may have become shorter. */
export const stepped = (position: number, by: number, count: number): number =>
  count === 0 ? 0 : (Math.min(position, count - 1) + by + count) % count

/** Long lines are cut in the page, not in what is copied: a line of megabytes would make the browser slow. */
const longestLine = 2000
const pieces = new RegExp(`.{1,${longestLine}}`, 'gsu')

/** textLines returns the lines of a text as they are drawn. */
export const textLines = (text: string): string[] => text.split('\n').flatMap((line) => line.match(pieces) ?? [''])

/** The longest text that is drawn in a line of the tree. */
const longestText = 500

/**
 * textParts returns a text as JSON writes it, so that line ends and quotes are visible, cut where it is long. Between two parts is a sealed
 * value.
 */
export const textParts = (text: string): string[] =>
  JSON.stringify(text.length > longestText ? `${text.slice(0, longestText)}…` : text).split(mark)
