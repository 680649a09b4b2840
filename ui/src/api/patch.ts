import { escapePointer, isObject, type Json, jsonEqual, printJson } from './json'

/** What the server shows in place of a sensitive value. */
export const mark = '⟦redacted⟧'

/** An operation of a JSON patch (RFC 6902), with the value that was there before. */
export interface Operation {
  op: 'add' | 'remove' | 'replace'
  /** JSON pointer; where operations before it have shifted a list, as they left it. It is also the position in the changed value. */
  path: string
  before?: Json
  value?: Json
}

const seal = /⟦redacted(?::(\d+))?⟧/
const numberedSeal = /⟦redacted:(\d+)⟧/

/** hasMark reports whether a value is or contains the mark of a sensitive value. */
export function hasMark(value: Json): boolean {
  if (typeof value === 'string') return seal.test(value)
  if (Array.isArray(value)) return value.some(hasMark)
  return isObject(value) && [...value.values()].some(hasMark)
}

/** isSealed reports whether a text is one mark and nothing else. */
export const isSealed = (text: string): boolean => text.replace(seal, '') === '' && text !== ''

/**
 * numberMarks gives each text with marks a number of its own, so that an editor's text shows which of them a sealed value is. The pointers
 * are those of the sealed texts, by number.
 */
export function numberMarks(value: Json): { value: Json; pointers: Map<number, string> } {
  const pointers = new Map<number, string>()
  const visit = (v: Json, at: string): Json => {
    if (typeof v === 'string') {
      if (!v.includes(mark)) return v
      const id = pointers.size + 1
      pointers.set(id, at)
      return v.replaceAll(mark, `⟦redacted:${id}⟧`)
    }
    if (Array.isArray(v)) return v.map((item, i) => visit(item, `${at}/${i}`))
    return isObject(v) ? new Map([...v].map(([name, item]) => [name, visit(item, `${at}/${escapePointer(name)}`)])) : v
  }
  return { value: visit(value, ''), pointers }
}

/** plainMarks removes the numbers from marks, for what a person reads. */
export const plainMarks = (text: string): string => text.replace(/⟦redacted:\d+⟧/g, mark)

/** seals returns the numbers of the marks in a value, as texts. */
export function seals(value: Json, found: string[] = []): string[] {
  if (typeof value === 'string') {
    const id = numberedSeal.exec(value)?.[1]
    if (id !== undefined) found.push(id)
  } else if (Array.isArray(value)) {
    for (const item of value) seals(item, found)
  } else if (isObject(value)) {
    for (const item of value.values()) seals(item, found)
  }
  return found
}

/** diffJson returns the operations that turn one value into another. Applied in order they give exactly the second value. */
export function diffJson(before: Json, after: Json): Operation[] {
  const operations: Operation[] = []
  diff(before, after, '', operations)
  return operations
}

function diff(before: Json, after: Json, path: string, out: Operation[]): void {
  if (isObject(before) && isObject(after)) {
    for (const [name, value] of before) {
      if (!after.has(name)) out.push({ op: 'remove', path: `${path}/${escapePointer(name)}`, before: value })
    }
    for (const [name, value] of after) {
      const at = `${path}/${escapePointer(name)}`
      const old = before.get(name)
      if (old === undefined) out.push({ op: 'add', path: at, value })
      else diff(old, value, at, out)
    }
    return
  }
  if (Array.isArray(before) && Array.isArray(after)) {
    lists(before, after, path, out)
    return
  }
  if (!jsonEqual(before, after)) out.push({ op: 'replace', path, before, value: after })
}

/** lists compares two lists item by item. From the left, each operation leaves the list as it will be, so a position is that of the result. */
function lists(before: Json[], after: Json[], path: string, out: Operation[]): void {
  const partners = align(before, after)
  let old = 0
  let position = 0
  const remove = (until: number) => {
    for (; old < until; old++) out.push({ op: 'remove', path: `${path}/${position}`, before: before[old] ?? null })
  }
  for (; position < after.length; position++) {
    const partner = partners[position]
    const value = after[position] ?? null
    if (partner === undefined) {
      out.push({ op: 'add', path: `${path}/${position}`, value })
      continue
    }
    remove(partner)
    diff(before[partner] ?? null, value, `${path}/${position}`, out)
    old = partner + 1
  }
  remove(before.length)
}

/** The longest lists whose items are compared pairwise: beyond it only equal beginnings and ends are found. */
const mostPairs = 250_000

/** align returns, for each item after, the item before that it continues; undefined for a new one. Partners are in ascending order. */
function align(before: Json[], after: Json[]): (number | undefined)[] {
  const partners = new Array<number | undefined>(after.length).fill(undefined)
  const oldTexts = before.map((v) => printJson(v))
  const newTexts = after.map((v) => printJson(v))
  let head = 0
  while (head < before.length && head < after.length && oldTexts[head] === newTexts[head]) {
    partners[head] = head
    head++
  }
  let tail = 0
  while (
    tail < before.length - head &&
    tail < after.length - head &&
    oldTexts[before.length - 1 - tail] === newTexts[after.length - 1 - tail]
  ) {
    tail++
    partners[after.length - tail] = before.length - tail
  }
  const oldEnd = before.length - tail
  const newEnd = after.length - tail
  let from = head
  let newFrom = head
  for (const [o, n] of (oldEnd - head) * (newEnd - head) <= mostPairs
    ? common(before, after, oldTexts, newTexts, head, oldEnd, newEnd)
    : []) {
    between(before, after, partners, from, o, newFrom, n)
    partners[n] = o
    from = o + 1
    newFrom = n + 1
  }
  between(before, after, partners, from, oldEnd, newFrom, newEnd)
  return partners
}

/** common returns the longest common subsequence of the middle; items with the same sealed value are the same item. */
function common(
  before: Json[],
  after: Json[],
  oldTexts: string[],
  newTexts: string[],
  head: number,
  oldEnd: number,
  newEnd: number,
): [number, number][] {
  const rows = oldEnd - head
  const columns = newEnd - head
  const oldSeals = before.map((v, i) => (i >= head && i < oldEnd ? new Set(seals(v)) : new Set<string>()))
  const newSeals = after.map((v, i) => (i >= head && i < newEnd ? seals(v) : []))
  const same = (o: number, n: number) =>
    oldTexts[o] === newTexts[n] || (newSeals[n] ?? []).some((id) => oldSeals[o]?.has(id))
  const width = columns + 1
  const length = new Uint32Array((rows + 1) * width)
  const at = (r: number, c: number) => length[r * width + c] ?? 0
  for (let r = rows - 1; r >= 0; r--) {
    for (let c = columns - 1; c >= 0; c--) {
      length[r * width + c] = same(head + r, head + c) ? at(r + 1, c + 1) + 1 : Math.max(at(r + 1, c), at(r, c + 1))
    }
  }
  const pairs: [number, number][] = []
  for (let r = 0, c = 0; r < rows && c < columns;) {
    if (same(head + r, head + c)) {
      pairs.push([head + r, head + c])
      r++
      c++
    } else if (at(r + 1, c) >= at(r, c + 1)) r++
    else c++
  }
  return pairs
}

/** between pairs the items between two equal ones in their order. Items with sealed values are never paired with others: they would be mixed up. */
function between(
  before: Json[],
  after: Json[],
  partners: (number | undefined)[],
  from: number,
  to: number,
  newFrom: number,
  newTo: number,
): void {
  let old = from
  for (let n = newFrom; n < newTo; n++) {
    if (seals(after[n] ?? null).length > 0) continue
    while (old < to && seals(before[old] ?? null).length > 0 && to - old > newTo - n) old++
    if (old >= to) return
    partners[n] = old++
  }
}

/** A problem of an edited value, at a JSON pointer of it. */
export interface EditProblem {
  path: string
  message: string
}

/** markProblems returns why operations cannot be sent: they contain marks, which stand for values that are not known here. */
export function markProblems(operations: Operation[], pointers: Map<number, string>): EditProblem[] {
  const problems: EditProblem[] = []
  const visit = (value: Json, path: string) => {
    if (typeof value === 'string') {
      const found = seal.exec(value)
      if (found === null) return
      const origin = found[1] === undefined ? undefined : pointers.get(Number(found[1]))
      problems.push({
        path,
        message:
          origin === undefined
            ? 'A mark cannot be typed: it stands for a value that is not shown here. Type the value itself, or remove the entry.'
            : `The sealed value of ${origin === '' ? 'the input' : origin} can be kept where it is, replaced or removed. It cannot be moved, copied or changed in part.`,
      })
    } else if (Array.isArray(value))
      value.forEach((item, i) => {
        visit(item, `${path}/${i}`)
      })
    else if (isObject(value)) for (const [name, item] of value) visit(item, `${path}/${escapePointer(name)}`)
  }
  for (const operation of operations) if (operation.value !== undefined) visit(operation.value, operation.path)
  return problems
}

/** printPatch prints operations as a JSON patch. */
export const printPatch = (operations: Operation[], indent = 0): string =>
  printJson(
    operations.map(
      ({ op, path, value }) =>
        new Map<string, Json>([
          ['op', op],
          ['path', path],
          ...(value === undefined ? [] : [['value', value] as [string, Json]]),
        ]),
    ),
    indent,
  )

const unescape = (part: string) => part.replaceAll('~1', '/').replaceAll('~0', '~')

/** splitPointer returns the names and positions of a JSON pointer. */
export const splitPointer = (path: string): string[] => (path === '' ? [] : path.slice(1).split('/').map(unescape))

/** edit returns a value in which the one at a position is replaced by what `change` returns; undefined removes it. */
function edit(value: Json, parts: string[], change: (old: Json | undefined) => Json | undefined): Json {
  const [part, ...rest] = parts
  if (part === undefined) return change(value) ?? null
  const deeper = (old: Json | undefined) => (rest.length === 0 ? change(old) : edit(old ?? null, rest, change))
  if (Array.isArray(value)) {
    const index = Number(part)
    const next = deeper(value[index])
    return [...value.slice(0, index), ...(next === undefined ? [] : [next]), ...value.slice(index + 1)]
  }
  if (!isObject(value)) return value
  const copy = new Map(value)
  const next = deeper(copy.get(part))
  if (next === undefined) copy.delete(part)
  else copy.set(part, next)
  return copy
}

/** undo takes one operation back in the changed value and leaves the others. */
export function undo(after: Json, operation: Operation): Json {
  const parts = splitPointer(operation.path)
  if (operation.op === 'add') return edit(after, parts, () => undefined)
  if (operation.op === 'replace') return edit(after, parts, () => operation.before)
  return insert(after, parts, operation.before ?? null)
}

/** insert puts a value at a pointer: a list grows there. */
export function insert(value: Json, parts: string[], item: Json): Json {
  const last = parts.at(-1)
  if (last === undefined) return item
  return edit(value, parts.slice(0, -1), (parent) => {
    if (Array.isArray(parent)) return [...parent.slice(0, Number(last)), item, ...parent.slice(Number(last))]
    return isObject(parent) ? new Map([...parent, [last, item]]) : parent
  })
}

/** find returns the value at a pointer; undefined if there is none. */
export function find(value: Json, path: string): Json | undefined {
  let at: Json | undefined = value
  for (const part of splitPointer(path)) {
    if (Array.isArray(at)) at = at[Number(part)]
    else if (isObject(at)) at = at.get(part)
    else return undefined
  }
  return at
}

/** brief prints a value in one short line. */
export function brief(value: Json, longest = 60): string {
  const text = plainMarks(printJson(value))
  return text.length <= longest ? text : `${text.slice(0, longest)}…`
}
