import { milliseconds } from '../api/time'
import type { Annotation } from '../gen/signalbox/v1/project_pb'

/** The kinds that a chart shows, in the order of the legend. */
export const kinds = ['outage', 'publish', 'owner'] as const
export type Kind = (typeof kinds)[number]

export const words: Record<Kind, [one: string, many: string]> = {
  outage: ['outage of Temporal', 'outages of Temporal'],
  publish: ['publication', 'publications'],
  owner: ['change of owner', 'changes of owner'],
}

/** A period on a chart, with its share of the width, from 0 to 1. */
export interface Band {
  annotation: Annotation
  left: number
  width: number
}

/** Moments that are too near to each other for marks of their own, by kind. */
export interface Group {
  left: number
  parts: { kind: Kind; annotations: Annotation[] }[]
}

/** bands returns the outages; one that lasts goes on until now. `share` is the place of a time on the chart. */
export const bands = (list: Annotation[], share: (at: number) => number, now: number): Band[] =>
  list
    .filter((a) => a.kind === 'outage')
    .map((annotation) => {
      const left = share(milliseconds(annotation.start) ?? now)
      return { annotation, left, width: Math.max(0, share(milliseconds(annotation.end) ?? now) - left) }
    })

/** groups returns the marks of moments, at most one in each of the slots of equal width. */
export function groups(list: Annotation[], share: (at: number) => number, slots: number): Group[] {
  const bySlot = new Map<number, Group>()
  for (const annotation of list) {
    const kind = kinds.find((k) => k === annotation.kind && k !== 'outage')
    const at = milliseconds(annotation.start)
    if (kind === undefined || at === undefined) continue
    const left = share(at)
    const slot = Math.min(slots - 1, Math.floor(left * slots))
    const group = bySlot.get(slot) ?? { left, parts: [] }
    bySlot.set(slot, group)
    const part = group.parts.find((p) => p.kind === kind)
    if (part === undefined) group.parts.push({ kind, annotations: [annotation] })
    else part.annotations.push(annotation)
  }
  return [...bySlot.values()]
}

/** annotationsIn returns what overlaps a period: its end is exclusive. */
export const annotationsIn = (list: Annotation[], from: number, to: number): Annotation[] =>
  list.filter(
    (a) =>
      (milliseconds(a.start) ?? 0) < to &&
      (a.kind === 'outage' ? (milliseconds(a.end) ?? Infinity) >= from : (milliseconds(a.start) ?? 0) >= from),
  )

/** when prints the time of an annotation; that of an outage with its end. */
export function when(annotation: Annotation, print: (at: number) => string): string {
  const start = milliseconds(annotation.start)
  const text = start === undefined ? 'at an unknown time' : print(start)
  if (annotation.kind !== 'outage') return text
  const end = milliseconds(annotation.end)
  return end === undefined ? `since ${text}` : `${text} to ${print(end)}`
}

/** describe prints some annotations, one a line, as the title of a mark. */
export function describe(list: Annotation[], print: (at: number) => string, most = 8): string {
  const lines = list.slice(0, most).map((a) => `${a.title}, ${when(a, print)}`)
  return [...lines, ...(list.length > most ? [`and ${list.length - most} more`] : [])].join('\n')
}
