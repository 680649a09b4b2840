import { create } from '@bufbuild/protobuf'
import { describe, expect, it } from 'vitest'
import { type Step, StepSchema, StepSummarySchema } from '../gen/signalbox/v1/run_pb'
import { addPage, noneFound } from './search'

const steps = (...numbers: number[]): Step[] => numbers.map((number) => create(StepSchema, { number: BigInt(number) }))
const page = (nextPageToken: string, ...numbers: number[]) => ({ steps: steps(...numbers), nextPageToken })

describe('a search of steps by the server', () => {
  it('has read 2000 steps with each page that is not full, though it found nothing', () => {
    const first = addPage(noneFound, page('a'), 5000, undefined)
    expect(first).toEqual({ numbers: new Set(), searched: 2000, complete: false })
    const second = addPage(first, page('b', 2500), 5000, undefined)
    expect(second).toEqual({ numbers: new Set([2500n]), searched: 4000, complete: false })
    expect(addPage(second, page('', 4999), 5000, undefined)).toEqual({ numbers: new Set([2500n, 4999n]), searched: 5000, complete: true })
  })

  it('has read up to the last step of a full page', () => {
    expect(addPage(noneFound, page('a', 3, 7), 5000, undefined, 2).searched).toBe(7)
  })

  it('leaves out the steps that are counted, not listed', () => {
    const summary = create(StepSummarySchema, { from: 5001n, to: 20000n, steps: 15000n })
    expect(addPage(noneFound, page('a', 3, 20007), 10000, summary, 2).searched).toBe(5007)
  })

  it('has never read more steps than there are', () => {
    expect(addPage(noneFound, page('a'), 1500, undefined).searched).toBe(1500)
  })
})
