import { create, type MessageInitShape } from '@bufbuild/protobuf'
import { describe, expect, it } from 'vitest'
import { CountRunsResponseSchema, RunSchema } from '../gen/signalbox/v1/run_pb'
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
