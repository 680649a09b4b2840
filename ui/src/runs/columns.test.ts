import { create, type MessageInitShape } from '@bufbuild/protobuf'
import { describe, expect, it } from 'vitest'
import { CountRunsResponseSchema, RunSchema } from '../gen/signalbox/v1/run_pb'
import { shareOf } from '../kit/Histogram'
import { statusDetail } from './columns'
import { total } from './Counts'
import { noFilter } from './filter'

describe('the detail of a status', () => {
  it.each<[MessageInitShape<typeof RunSchema>, string]>([
    [{ status: 'waiting', waitingKind: 'timer', queuedReason: 'engine' }, 'timer'],
    [{ status: 'queued', queuedReason: 'engine' }, 'engine'],
    [{ status: 'queued', queuedReason: 'admission' }, 'no slot'],
    [{ status: 'queued', queuedReason: 'admission', queuePosition: 1200n }, 'no slot #1,200'],
    [{ status: 'running', waitingKind: 'timer', queuedReason: 'engine' }, ''],
  ])('of %o is %j', (run, text) => {
    expect(statusDetail(create(RunSchema, run))).toBe(text)
  })
})

describe('the number of runs of a filter', () => {
  const counts = create(CountRunsResponseSchema, {
    statuses: { failed: 3n, running: 2n, completed: 10_000n },
    more: ['completed'],
  })

  it('is that of its statuses, or of all', () => {
    expect(total(counts, { ...noFilter, statuses: ['failed', 'running'] })).toEqual({ count: 5n, more: false })
    expect(total(counts, noFilter)).toEqual({ count: 10_005n, more: true })
    expect(total(counts, { ...noFilter, statuses: ['canceled'] })).toEqual({ count: 0n, more: false })
    expect(total(undefined, noFilter)).toBeUndefined()
  })
})

describe('the place of a time on bars', () => {
  const bars = [
    { start: 0, end: 10, counts: [] },
    { start: 10, end: 30, counts: [] },
  ]

  it.each([
    [-5, 0],
    [0, 0],
    [5, 0.25],
    [10, 0.5],
    [20, 0.75],
    [30, 1],
    [99, 1],
  ])('%d is at %d', (at, share) => {
    expect(shareOf(bars, at)).toBe(share)
  })

  it('is at the beginning of none', () => {
    expect(shareOf([], 5)).toBe(0)
  })
})
