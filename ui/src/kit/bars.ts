import { formatCount, formatFullTime, type Zone } from './format'

/** A period of a histogram. */
export interface Bar {
  /** Milliseconds since the epoch. */
  start: number
  end: number
  /** Numbers in the order of the series. */
  counts: number[]
}

/** The bars that a person chooses: where the choice began, and where it is now. */
export interface Choice {
  from: number
  to: number
}

/** total returns the number of a bar in all series. */
export const total = (bar: Bar): number => bar.counts.reduce((a, b) => a + b, 0)

/** shareOf returns the place of a time on bars of equal width, from 0 to 1. */
export function shareOf(bars: Bar[], at: number): number {
  const index = bars.findIndex((bar) => at < bar.end)
  const bar = bars[index]
  if (bar === undefined) return bars.length === 0 ? 0 : 1
  return (index + Math.max(0, (at - bar.start) / Math.max(1, bar.end - bar.start))) / bars.length
}

/** chosenBars returns the bars of a choice in the order of time. */
export const chosenBars = (bars: Bar[], choice: Choice | undefined): Bar[] =>
  choice === undefined ? [] : bars.slice(Math.min(choice.from, choice.to), Math.max(choice.from, choice.to) + 1)

/** choose returns the choice after an arrow key, which Shift extends; undefined for other keys. The first one begins at the end it comes from. */
export function choose(key: string, shift: boolean, before: Choice | undefined, count: number): Choice | undefined {
  if (key !== 'ArrowLeft' && key !== 'ArrowRight') return undefined
  const step = key === 'ArrowLeft' ? -1 : 1
  const to = Math.min(count - 1, Math.max(0, (before?.to ?? (step < 0 ? count : -1)) + step))
  return { from: shift && before !== undefined ? before.from : to, to }
}

/** stack returns top and height of each number of a bar, from the baseline up. A number that is not zero has a height of at least 1. */
export function stack(counts: number[], most: number, height: number): ({ top: number; size: number } | undefined)[] {
  let top = height
  return counts.map((count) => {
    if (count === 0) return undefined
    const size = Math.max(1, (count / most) * height)
    top -= size
    return { top, size }
  })
}

/** describe prints the period of some bars with the numbers of their series. */
export function describe(bars: Bar[], series: { name: string }[], zone: Zone): string {
  const [first] = bars
  const last = bars.at(-1)
  if (first === undefined || last === undefined) return ''
  const counts = series
    .map(({ name }, i) => ({ name, count: bars.reduce((sum, bar) => sum + (bar.counts[i] ?? 0), 0) }))
    .filter(({ count }) => count > 0)
    .map(({ name, count }) => `${formatCount(count)} ${name.toLowerCase()}`)
    .join(', ')
  return `${formatFullTime(first.start, zone)} to ${formatFullTime(last.end, zone)}: ${counts || 'no runs'}`
}
