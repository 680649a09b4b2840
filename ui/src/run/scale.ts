import { milliseconds } from '../api/time'
import type { Step } from '../gen/signalbox/v1/run_pb'
import type { Node, Row } from './tree'

/** A part of a step's time. `around` is the time of a task that contains others. */
export interface Span {
  from: number
  to: number
  kind: 'executing' | 'waiting' | 'around'
}

const waits = new Set(['wait', 'listen', 'run'])
const contains = new Set(['do', 'for', 'fork'])

/**
 * spansOf splits a step's time: its attempts execute, the rest of it waits. A step without recorded attempts does one of the two. The times of
 * attempts are those of the process that made the call, so they may lie outside of the time that Temporal recorded of the step.
 */
export function spansOf(step: Step, now: number): Span[] {
  const start = milliseconds(step.startTime)
  if (start === undefined) return []
  const end = Math.max(start, milliseconds(step.endTime) ?? now)
  if (contains.has(step.kind)) return [{ from: start, to: end, kind: 'around' }]
  const attempts = step.attempts
    .map((attempt) => ({ from: milliseconds(attempt.startTime), to: milliseconds(attempt.endTime) ?? end }))
    .filter((attempt): attempt is { from: number; to: number } => attempt.from !== undefined)
    .map((attempt) => ({ from: attempt.from, to: Math.max(attempt.from, attempt.to) }))
    .sort((a, b) => a.from - b.from)
  const from = attempts.reduce((least, attempt) => Math.min(least, attempt.from), start)
  const to = attempts.reduce((most, attempt) => Math.max(most, attempt.to), end)
  if (attempts.length === 0)
    return [{ from, to, kind: waits.has(step.kind) || step.status === 'waiting' ? 'waiting' : 'executing' }]
  const spans: Span[] = []
  let at = from
  for (const attempt of attempts) {
    if (attempt.from > at) spans.push({ from: at, to: attempt.from, kind: 'waiting' })
    if (attempt.to > at || attempt.to === attempt.from)
      spans.push({ from: Math.max(at, attempt.from), to: attempt.to, kind: 'executing' })
    at = Math.max(at, attempt.to)
  }
  if (to > at) spans.push({ from: at, to, kind: 'waiting' })
  return spans
}

/** spansBelow returns the spans of all steps of a tree. A task that contains listed steps is around them: what they do counts. */
export function spansBelow(node: Node, now: number): Span[] {
  const own = node.step === undefined ? [] : spansOf(node.step, now)
  return [
    ...own.map((span): Span => (node.children.length > 0 ? { ...span, kind: 'around' } : span)),
    ...node.children.flatMap((child) => spansBelow(child, now)),
  ]
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
  const edges = [...new Set([from, to, ...spans.filter((s) => s.kind !== 'around').flatMap((s) => [s.from, s.to])])]
    .filter((t) => t >= from && t <= to)
    .sort((a, b) => a - b)
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

const second = 1000
const minute = 60 * second
const hour = 60 * minute
const day = 24 * hour
/** Distances of ticks that a person can count in; shorter ones are 1, 2 or 5 with zeros, and longer ones so many days. */
const distances = [1, 2, 5, 10, 15, 30]
  .flatMap((n) => [n * second, n * minute])
  .concat(
    [1, 2, 3, 6, 12].map((n) => n * hour),
    day,
  )
  .sort((a, b) => a - b)

function distanceOf(least: number): number {
  const found = least < second ? undefined : distances.find((d) => d >= least)
  if (found !== undefined) return found
  const unit = least < second ? 1 : day
  const power = 10 ** Math.floor(Math.log10(Math.max(1, least / unit)))
  return unit * power * ([1, 2, 5].find((n) => n * power * unit >= least) ?? 10)
}

/** ticks returns about so many times on the axis that are round, counted from `origin`, and apart from each other. */
export function ticks(axis: Piece[], origin: number, count: number): { time: number; share: number }[] {
  const shown = axis.filter((piece) => !piece.folded)
  const distance = distanceOf(shown.reduce((sum, { from, to }) => sum + to - from, 0) / count)
  const found: { time: number; share: number }[] = []
  for (const { from, to } of shown) {
    for (let time = origin + Math.ceil((from - origin) / distance) * distance; time <= to; time += distance) {
      const share = position(axis, time)
      const last = found.at(-1)
      if (last === undefined || share - last.share >= 0.6 / count) found.push({ time, share })
    }
  }
  return found
}

/** tickOrigin returns what ticks count from: the start of a short run, else midnight in the zone. */
export const tickOrigin = (from: number, short: boolean, zone: 'local' | 'utc'): number =>
  short ? from : zone === 'utc' ? 0 : new Date(from).getTimezoneOffset() * 60_000

/** A bar of a row: a span of one of its steps, with its place and width on the axis, from 0 to 1. */
export interface StepBar {
  step: Step
  span: Span
  /** Whether the row contains others, so that the bar only frames them. */
  around: boolean
  left: number
  width: number
}

/** barsOf returns the bars of a row: those of its step, or of the steps in a group. */
export function barsOf(row: Row & { kind: 'node' }, axis: Piece[], now: number): StepBar[] {
  const steps = row.step === undefined ? row.children.flatMap(({ step }) => step ?? []) : [row.step]
  const around = row.step === undefined || row.children.length > 0
  return steps.flatMap((step) =>
    spansOf(step, now).map((span) => {
      const left = position(axis, span.from)
      return { step, span, around, left, width: position(axis, span.to) - left }
    }),
  )
}
