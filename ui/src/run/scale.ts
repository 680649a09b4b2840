import type { Step } from '../gen/signalbox/v1/run_pb'

/** A part of a step's time. `around` is the time of a task that contains others. */
export interface Span {
  from: number
  to: number
  kind: 'executing' | 'waiting' | 'around'
}

const waits = new Set(['wait', 'listen', 'run'])
const contains = new Set(['do', 'for', 'fork'])

const time = (at: { seconds: bigint; nanos: number } | undefined) => (at === undefined ? undefined : Number(at.seconds) * 1000 + at.nanos / 1e6)

/** spansOf splits a step's time: its attempts execute, the rest of it waits. A step without recorded attempts does one of the two. */
export function spansOf(step: Step, now: number): Span[] {
  const from = time(step.startTime)
  if (from === undefined) return []
  const to = Math.max(from, time(step.endTime) ?? now)
  if (contains.has(step.kind)) return [{ from, to, kind: 'around' }]
  const attempts = step.attempts
    .map((attempt) => ({ from: time(attempt.startTime), to: time(attempt.endTime) ?? to }))
    .filter((attempt): attempt is { from: number; to: number } => attempt.from !== undefined)
    .map((attempt) => ({ from: Math.min(to, Math.max(from, attempt.from)), to: Math.min(to, Math.max(from, attempt.to)) }))
    .sort((a, b) => a.from - b.from)
  if (attempts.length === 0) return [{ from, to, kind: waits.has(step.kind) || step.status === 'waiting' ? 'waiting' : 'executing' }]
  const spans: Span[] = []
  let at = from
  for (const attempt of attempts) {
    if (attempt.from > at) spans.push({ from: at, to: attempt.from, kind: 'waiting' })
    if (attempt.to > at || attempt.to === attempt.from) spans.push({ from: Math.max(at, attempt.from), to: attempt.to, kind: 'executing' })
    at = Math.max(at, attempt.to)
  }
  if (to > at) spans.push({ from: at, to, kind: 'waiting' })
  return spans
}

/** A stretch of time on the axis, with its share of the width, from 0 to 1. A folded one has the same width however long it is. */
export interface Piece {
  from: number
  to: number
  left: number
  right: number
  folded: boolean
}

/** The width of a folded stretch. */
const foldWidth = 0.05

/**
 * pieces returns the axis of a run: stretches in which nothing executes and nothing begins or ends are folded when they are long, compared
 * with the whole and in seconds.
 */
export function pieces(spans: Span[], from: number, to: number): Piece[] {
  const total = Math.max(1, to - from)
  const least = Math.max(5000, total * 0.12)
  const edges = [...new Set([from, to, ...spans.filter((s) => s.kind !== 'around').flatMap((s) => [s.from, s.to])])].filter((t) => t >= from && t <= to).sort((a, b) => a - b)
  const busy = merge(spans.filter((s) => s.kind === 'executing'))
  const found: [number, number][] = []
  let b = 0
  for (let i = 1; i < edges.length; i++) {
    const [start = 0, end = 0] = [edges[i - 1], edges[i]]
    while (b < busy.length && (busy[b]?.to ?? 0) <= start) b++
    const covered = b < busy.length && (busy[b]?.from ?? Infinity) < end
    if (!covered && end - start >= least && found.length < 8) found.push([start, end])
  }
  const foldedTime = found.reduce((sum, [start, end]) => sum + end - start, 0)
  const shown = total - foldedTime
  const room = shown <= 0 ? 0 : 1 - found.length * foldWidth
  const widthOfFold = shown <= 0 ? 1 / Math.max(1, found.length) : foldWidth
  const out: Piece[] = []
  let left = 0
  const add = (start: number, end: number, folded: boolean) => {
    if (end <= start) return
    const right = left + (folded ? widthOfFold : ((end - start) / shown) * room)
    out.push({ from: start, to: end, left, right, folded })
    left = right
  }
  let at = from
  for (const [start, end] of found) {
    add(at, start, false)
    add(start, end, true)
    at = end
  }
  add(at, to, false)
  return out.length > 0 ? out : [{ from, to: from + total, left: 0, right: 1, folded: false }]
}

function merge(spans: Span[]): { from: number; to: number }[] {
  const out: { from: number; to: number }[] = []
  for (const { from, to } of [...spans].sort((a, b) => a.from - b.from)) {
    const last = out.at(-1)
    if (last !== undefined && from <= last.to) last.to = Math.max(last.to, to)
    else out.push({ from, to })
  }
  return out
}

/** position returns where a time is on the axis, from 0 to 1. */
export function position(axis: Piece[], at: number): number {
  const first = axis[0]
  if (first === undefined || at <= first.from) return 0
  const piece = axis.find((p) => at <= p.to)
  if (piece === undefined) return 1
  return piece.left + ((at - piece.from) / (piece.to - piece.from)) * (piece.right - piece.left)
}

/** timeAt is the inverse of position; undefined inside of a folded stretch. */
export function timeAt(axis: Piece[], share: number): number | undefined {
  const piece = axis.find((p) => share >= p.left && share <= p.right)
  if (piece === undefined || piece.folded) return undefined
  return piece.from + ((share - piece.left) / (piece.right - piece.left)) * (piece.to - piece.from)
}
