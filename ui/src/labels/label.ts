import { byteLength } from '../kit/format'

// The rules are those of the server, in its words. The server checks them, too.

/** A label of a run. */
export interface Label {
  key: string
  value: string
}

/** The limits of the labels of a run; those of keys and values are in bytes. */
export const mostLabels = 16
const longestKey = 63
const longestValue = 256

/** keyProblem returns what is wrong with the key of a label; empty if it is valid. */
export function keyProblem(key: string): string {
  if (key === '') return 'is empty'
  if (byteLength(key) > longestKey) return `has ${byteLength(key)} characters, more than ${longestKey}`
  return /^[A-Za-z0-9._/-]+$/.test(key) ? '' : 'has other characters than letters, digits and . _ - /'
}

/** valueProblem returns what is wrong with the value of a label; empty if it is valid. */
export function valueProblem(value: string): string {
  if (value === '') return 'is empty'
  if (byteLength(value) > longestValue) return `has ${byteLength(value)} bytes, more than ${longestValue}`
  const found = /[^\p{L}\p{M}\p{N}\p{P}\p{S} ]/u.exec(value)?.[0].codePointAt(0)
  return found === undefined
    ? ''
    : `has the character U+${found.toString(16).toUpperCase().padStart(4, '0')}, which is not printable`
}

/** labelProblem returns what is wrong with a label; empty if it is valid. */
export function labelProblem({ key, value }: Label): string {
  const ofKey = keyProblem(key)
  if (ofKey !== '') return `the key ${ofKey}`
  const ofValue = valueProblem(value)
  return ofValue === '' ? '' : `the value ${ofValue}`
}

/** labelText writes a label as the API and the CLI do. */
export const labelText = ({ key, value }: Label): string => `${key}=${value}`

const cut = (text: string, sign: string): Label | undefined => {
  const at = text.indexOf(sign)
  return at < 0 ? undefined : { key: text.slice(0, at), value: text.slice(at + 1) }
}

/** readLabel reads a label of the form key=value; undefined if the text has none. A value may contain the sign. */
export const readLabel = (text: string): Label | undefined => cut(text, '=')

/** labelParameter writes a label for the URL of the list of runs. No key contains a colon. */
export const labelParameter = ({ key, value }: Label): string => `${key}:${value}`

/** readParameter reads a label from the URL; undefined if the text has none. */
export const readParameter = (text: string): Label | undefined => cut(text, ':')

/** labelList returns labels as a list, by key. */
export const labelList = (labels: Record<string, string>): Label[] =>
  Object.keys(labels)
    .sort()
    .map((key) => ({ key, value: labels[key] ?? '' }))

/** A row of the editor. */
export interface LabelRow {
  id: number
  key: string
  value: string
}

/** Rows that are empty are no labels; spaces at the ends are not part of any. */
const typed = (rows: readonly LabelRow[]) =>
  rows
    .map(({ id, key, value }) => ({ id, key: key.trim(), value: value.trim() }))
    .filter(({ key, value }) => key !== '' || value !== '')

/** givenLabels returns the labels that rows give. */
export const givenLabels = (rows: readonly LabelRow[]): Record<string, string> =>
  Object.fromEntries(typed(rows).map(({ key, value }) => [key, value]))

/** What is wrong with the parts of a row. */
export interface RowProblem {
  key?: string
  value?: string
}

/** rowProblems returns what is wrong with rows, by the ID of the row. */
export function rowProblems(rows: readonly LabelRow[]): Map<number, RowProblem> {
  const problems = new Map<number, RowProblem>()
  const seen = new Set<string>()
  for (const { id, key, value } of typed(rows)) {
    const [ofKey, ofValue] = [seen.has(key) ? 'is in an earlier row' : keyProblem(key), valueProblem(value)]
    if (ofKey !== '') problems.set(id, { key: `The key ${ofKey}` })
    else if (ofValue !== '') problems.set(id, { value: `The value ${ofValue}` })
    seen.add(key)
  }
  return problems
}

/** labelsRefusal returns why a run cannot have the labels of the rows together with those that it has anyway; undefined if it can. */
export function labelsRefusal(rows: readonly LabelRow[], inherited: Record<string, string> = {}): string | undefined {
  for (const [id, problem] of rowProblems(rows)) {
    const key = rows.find((row) => row.id === id)?.key.trim() ?? ''
    const text = problem.key ?? problem.value ?? ''
    return key === '' ? 'A label has no key' : `Label ${key}: ${text.charAt(0).toLowerCase()}${text.slice(1)}`
  }
  const count = Object.keys({ ...inherited, ...givenLabels(rows) }).length
  return count > mostLabels ? `${count} labels: a run can have at most ${mostLabels}` : undefined
}

/** nextID returns the ID of a new row: no row that is there has it. */
export const nextID = (rows: readonly LabelRow[]): number => Math.max(0, ...rows.map((row) => row.id)) + 1

/** serverProblems sorts what the server says about labels: at the keys of rows, and what no row can show. */
export function serverProblems(
  fields: readonly { path: string; message: string }[],
  keys: ReadonlySet<string>,
): { at: Map<string, string>; elsewhere: string[] } {
  const prefix = 'labels.'
  const at = new Map<string, string>()
  const elsewhere: string[] = []
  for (const { path, message } of fields) {
    const key = path.startsWith(prefix) ? path.slice(prefix.length) : undefined
    if (path === 'labels') elsewhere.push(message)
    else if (key !== undefined && keys.has(key)) at.set(key, message)
    else if (key !== undefined) elsewhere.push(`${key}: ${message}`)
  }
  return { at, elsewhere }
}
