import { escapePointer, isObject, type Json, readJson } from '../api/json'
import { durationMilliseconds } from '../api/time'
import { diffJson, hasMark, type Operation } from '../api/patch'
import type { Run, TaskTotals } from '../gen/signalbox/v1/run_pb'

/** What the steps of one task of one run amount to. */
export interface Totals {
  /** Numbers of steps by status. */
  statuses: Map<string, number>
  steps: number
  /** Undefined if it is not known. */
  attempts: number | undefined
  /** Sum of the durations of ended steps, in milliseconds; undefined if none has ended. */
  duration: number | undefined
  /** Number of the first failed step; 0 if none failed. */
  failed: bigint
}

export interface TaskRow {
  key: string
  task: string
  kind: string
  /** Number of tasks around it. */
  depth: number
  a: Totals | undefined
  b: Totals | undefined
  /** What differs; durations differ always and are not counted. */
  differs: ('presence' | 'steps' | 'status' | 'attempts')[]
}

/** keyOf returns what a task is found by in the other run: its pointer, or in another document, the names without positions. */
export const keyOf = (pointer: string, sameDocument: boolean): string =>
  sameDocument
    ? pointer
    : pointer
        .split('/')
        .filter((part) => !/^\d+$/.test(part))
        .join('/')

const words = new Set(['do', 'for', 'foreach', 'fork', 'branches', 'try', 'catch'])

const depthOf = (pointer: string): number => {
  const names = pointer
    .split('/')
    .slice(1)
    .filter((part, i, all) => !/^\d+$/.test(part) && (/^\d+$/.test(all[i - 1] ?? '') || !words.has(part)))
  return Math.max(0, names.length - 1)
}

interface Task {
  task: string
  kind: string
  pointer: string
  totals: Totals
}

function totals(tasks: TaskTotals[], sameDocument: boolean): Map<string, Task> {
  const found = new Map<string, Task>()
  for (const { pointer, task, kind, statuses, attempts, total, firstFailed } of tasks) {
    const key = keyOf(pointer, sameDocument)
    const known = found.get(key) ?? {
      task,
      kind,
      pointer,
      totals: { statuses: new Map(), steps: 0, attempts: 0, duration: undefined, failed: 0n },
    }
    found.set(key, known)
    const t = known.totals
    for (const [status, n] of Object.entries(statuses)) {
      t.statuses.set(status, (t.statuses.get(status) ?? 0) + Number(n))
      t.steps += Number(n)
    }
    t.attempts = t.attempts === undefined || attempts === undefined ? undefined : t.attempts + Number(attempts)
    if (total !== undefined) t.duration = (t.duration ?? 0) + (durationMilliseconds(total) ?? 0)
    if (t.failed === 0n) t.failed = firstFailed
  }
  return found
}

/** compareTasks puts the tasks of two runs side by side, in the order of the first; those of the second alone follow the task before them. */
export function compareTasks(a: TaskTotals[], b: TaskTotals[], sameDocument: boolean): TaskRow[] {
  const left = totals(a, sameDocument)
  const right = totals(b, sameDocument)
  const order = [...left.keys()]
  let previous = ''
  for (const key of right.keys()) {
    if (!left.has(key)) order.splice(order.indexOf(previous) + 1, 0, key)
    previous = key
  }
  return order.map((key) => {
    const one = left.get(key)
    const two = right.get(key)
    const either = one ?? two
    return {
      key,
      task: either?.task ?? '',
      kind: either?.kind ?? '',
      depth: depthOf(either?.pointer ?? ''),
      a: one?.totals,
      b: two?.totals,
      differs: one === undefined || two === undefined ? ['presence'] : difference(one.totals, two.totals),
    }
  })
}

function difference(a: Totals, b: Totals): TaskRow['differs'] {
  const out: TaskRow['differs'] = []
  if (a.steps !== b.steps) out.push('steps')
  const names = new Set([...a.statuses.keys(), ...b.statuses.keys()])
  // Where the numbers of steps differ, only statuses that one run does not have at all are a difference of their own.
  if (
    [...names].some((name) =>
      a.steps === b.steps
        ? a.statuses.get(name) !== b.statuses.get(name)
        : a.statuses.has(name) !== b.statuses.has(name),
    )
  )
    out.push('status')
  if (a.steps === b.steps && a.attempts !== undefined && b.attempts !== undefined && a.attempts !== b.attempts)
    out.push('attempts')
  return out
}

export interface ValueDifference {
  operations: Operation[]
  /** Pointers at which both runs have a sealed value: whether these are equal is not known. */
  sealed: string[]
}

/** compareValues compares two payloads; undefined stands for no value. */
export function compareValues(a: string | undefined, b: string | undefined): ValueDifference {
  if (a === undefined && b === undefined) return { operations: [], sealed: [] }
  if (a === undefined) return { operations: [{ op: 'add', path: '', value: readJson(b ?? 'null') }], sealed: [] }
  if (b === undefined) return { operations: [{ op: 'remove', path: '', before: readJson(a) }], sealed: [] }
  const [one, two] = [readJson(a), readJson(b)]
  const operations = diffJson(one, two)
  const sealed: string[] = []
  const visit = (x: Json, y: Json | undefined, path: string) => {
    if (y === undefined) return
    if (typeof x === 'string') {
      if (hasMark(x) && x === y) sealed.push(path)
    } else if (Array.isArray(x)) {
      if (Array.isArray(y))
        x.forEach((item, i) => {
          visit(item, y[i], `${path}/${i}`)
        })
    } else if (isObject(x) && isObject(y)) {
      for (const [name, item] of x) visit(item, y.get(name), `${path}/${escapePointer(name)}`)
    }
  }
  visit(one, two, '')
  return { operations, sealed }
}

/** The parts of the errors of two runs that differ, with both texts. */
export function compareErrors(a: Run, b: Run): { name: string; a: string; b: string; differs: boolean }[] {
  const parts = (run: Run): [string, string][] => [
    ['Title', run.error?.title ?? ''],
    ['Detail', run.error?.detail ?? ''],
    ['Status', run.error === undefined ? '' : String(run.error.status)],
    ['Type', run.error?.type ?? ''],
    ['Task', run.error?.instance ?? ''],
  ]
  const other = new Map(parts(b))
  return parts(a).map(([name, text]) => ({
    name,
    a: text,
    b: other.get(name) ?? '',
    differs: text !== other.get(name),
  }))
}

/** differing returns the rows of tasks that differ. */
export const differing = (rows: TaskRow[]): TaskRow[] => rows.filter((row) => row.differs.length > 0)

/** failedSteps returns the number of failed steps of one run, those included that a catch handled. */
export const failedSteps = (rows: TaskRow[], side: 'a' | 'b'): number =>
  rows.reduce((sum, row) => sum + (row[side]?.statuses.get('failed') ?? 0), 0)

/** How many pointers of sealed values are named. */
const namedPointers = 20

/** sealedNote says which values are sealed in both runs, so that they may differ; empty for none. */
export function sealedNote({ sealed }: ValueDifference): { text: string; pointers: string[] } | undefined {
  if (sealed.length === 0) return undefined
  const text =
    sealed.length === 1
      ? 'One value is sealed in both runs and may differ'
      : `${sealed.length} values are sealed in both runs and may differ`
  const pointers = sealed.slice(0, namedPointers).map((path) => (path === '' ? 'the whole value' : path))
  return { text, pointers: sealed.length > namedPointers ? [...pointers, '…'] : pointers }
}

/** equalTitle says that two values without a difference are equal, as far as that is known. */
export function equalTitle(what: string, value: string | undefined, { sealed }: ValueDifference): string {
  if (value === undefined) return `Neither run has an ${what}.`
  return sealed.length === 0 ? `The ${what}s are equal.` : `The ${what}s are equal where they are shown.`
}

/** comparable returns the runs that a run can be compared with: the one that it replays, and the newest other one that completed. */
export function comparable<R extends { id: string }>(
  run: Run,
  replayed: R | undefined,
  completed: R[],
): { offered: R | undefined; other: R | undefined } {
  const good = completed.find(({ id }) => id !== run.id && id !== run.replayOf)
  return replayed === undefined ? { offered: good, other: undefined } : { offered: replayed, other: good }
}
