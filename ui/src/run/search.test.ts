import { create } from '@bufbuild/protobuf'
import { describe, expect, it } from 'vitest'
import { type Step, StepSchema } from '../gen/signalbox/v1/run_pb'
import { addPage, noneFound } from './search'

const steps = (...numbers: number[]): Step[] => numbers.map((number) => create(StepSchema, { number: BigInt(number) }))
const page = (nextPageToken: string, searched: bigint, ...numbers: number[]) => ({
  steps: steps(...numbers),
  nextPageToken,
  searched,
})

describe('a search of steps by the server', () => {
  it('adds up what each page has found and searched, until there is no further page', () => {
    const first = addPage(noneFound, page('a', 2000n))
    expect(first).toEqual({ numbers: new Set(), searched: 2000, complete: false })
    const second = addPage(first, page('b', 500n, 2500))
    expect(second).toEqual({ numbers: new Set([2500n]), searched: 2500, complete: false })
    expect(addPage(second, page('', 7n, 4999))).toEqual({
      numbers: new Set([2500n, 4999n]),
      searched: 2507,
      complete: true,
    })
  })
})
