import { describe as group, expect, it } from 'vitest'
import { type Bar, choose, chosenBars, describe, shareOf, stack, total } from './bars'

const bars: Bar[] = [
  { start: 0, end: 10_000, counts: [1, 0] },
  { start: 10_000, end: 30_000, counts: [1200, 3] },
  { start: 30_000, end: 40_000, counts: [0, 0] },
]

group('the place of a time on bars', () => {
  it.each([
    [-5, 0],
    [0, 0],
    [5000, 1 / 6],
    [10_000, 1 / 3],
    [20_000, 0.5],
    [40_000, 1],
    [99_000, 1],
  ])('%d is at %d', (at, share) => {
    expect(shareOf(bars, at)).toBeCloseTo(share)
  })

  it('is at the beginning of none', () => {
    expect(shareOf([], 5)).toBe(0)
  })

  it('is at the beginning of a bar that has no length', () => {
    expect(
      shareOf(
        [
          { start: 5, end: 5, counts: [] },
          { start: 5, end: 9, counts: [] },
        ],
        4,
      ),
    ).toBe(0)
  })
})

group('the period that is chosen', () => {
  it('has the bars between its ends, whichever came first', () => {
    expect(chosenBars(bars, { from: 2, to: 1 })).toEqual(bars.slice(1))
    expect(chosenBars(bars, { from: 0, to: 0 })).toEqual([bars[0]])
    expect(chosenBars(bars, { from: 1, to: 9 })).toEqual(bars.slice(1))
    expect(chosenBars(bars, undefined)).toEqual([])
  })

  it('begins with the arrow keys at the end that they come from', () => {
    expect(choose('ArrowRight', false, undefined, 3)).toEqual({ from: 0, to: 0 })
    expect(choose('ArrowLeft', false, undefined, 3)).toEqual({ from: 2, to: 2 })
    expect(choose('ArrowRight', true, undefined, 3)).toEqual({ from: 0, to: 0 })
  })

  it('moves, or grows with Shift, within the bars', () => {
    expect(choose('ArrowRight', false, { from: 0, to: 1 }, 3)).toEqual({ from: 2, to: 2 })
    expect(choose('ArrowRight', true, { from: 0, to: 1 }, 3)).toEqual({ from: 0, to: 2 })
    expect(choose('ArrowRight', true, { from: 0, to: 2 }, 3)).toEqual({ from: 0, to: 2 })
    expect(choose('ArrowLeft', true, { from: 1, to: 0 }, 3)).toEqual({ from: 1, to: 0 })
  })

  it('is not changed by other keys', () => {
    expect(choose('Enter', false, { from: 0, to: 1 }, 3)).toBeUndefined()
  })

  it('is described with its numbers', () => {
    const series = [{ name: 'Failed' }, { name: 'Open' }]
    expect(describe(bars, series, 'utc')).toBe(
      '1970-01-01 00:00:00 UTC to 1970-01-01 00:00:40 UTC: 1,201 failed, 3 open',
    )
    expect(describe(bars.slice(0, 1), series, 'utc')).toContain(': 1 failed')
    expect(describe(bars.slice(2), series, 'utc')).toContain(': no runs')
    expect(describe([], series, 'utc')).toBe('')
  })
})

group('a stacked bar', () => {
  it('grows from the baseline up, in the order of the series', () => {
    expect(stack([30, 10], 40, 40)).toEqual([
      { top: 10, size: 30 },
      { top: 0, size: 10 },
    ])
  })

  it('shows every number that is not zero, and nothing for zero', () => {
    expect(stack([0, 1, 1000], 1000, 40)).toEqual([undefined, { top: 39, size: 1 }, { top: -1, size: 40 }])
  })

  it('has the sum of its series', () => {
    expect(bars.map(total)).toEqual([1, 1203, 0])
    expect(total({ start: 0, end: 0, counts: [] })).toBe(0)
  })
})
