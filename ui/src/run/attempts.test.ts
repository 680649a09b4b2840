import { create, type MessageInitShape } from '@bufbuild/protobuf'
import { describe, expect, it } from 'vitest'
import { AttemptSchema, StepSchema } from '../gen/signalbox/v1/run_pb'
import { attemptCount, attemptRows, outcome } from './attempts'

const at = (seconds: number) => ({ seconds: BigInt(seconds), nanos: 0 })
const step = (given: MessageInitShape<typeof StepSchema>) => create(StepSchema, given)

describe('the number of attempts of a step', () => {
  it('is that of the last one: a step keeps its latest attempts alone', () => {
    expect(attemptCount(step({ attempts: [{ number: 71 }, { number: 72 }] }))).toBe(72)
    expect(attemptCount(step({ attempts: [{ number: 1 }] }))).toBe(1)
    expect(attemptCount(step({}))).toBe(0)
  })
})

describe('what became of an attempt', () => {
  it.each<[MessageInitShape<typeof AttemptSchema>, string]>([
    [{ outcome: 'timeout', endTime: at(5) }, 'timeout'],
    [{ outcome: 'status 429', retryAfter: { seconds: 90n } }, 'status 429: retry after 1m 30s'],
    [{}, 'in progress'],
    [{ error: { title: 'x' } }, 'in progress'],
    [{ endTime: at(5) }, 'completed'],
    [{ endTime: at(5), error: { title: 'x' } }, 'failed'],
  ])('of %o is %j', (attempt, text) => {
    expect(outcome(create(AttemptSchema, attempt))).toBe(text)
  })
})

describe('the list of attempts', () => {
  const rows = (given: MessageInitShape<typeof StepSchema>) =>
    attemptRows(step(given)).map(({ attempt, next }) => [attempt.number, next])

  it('has the newest first, each with the beginning of the one after it', () => {
    expect(
      rows({
        attempts: [
          { number: 1, startTime: at(1) },
          { number: 2, startTime: at(4) },
          { number: 3, startTime: at(9) },
        ],
      }),
    ).toEqual([
      [3, undefined],
      [2, 9000],
      [1, 4000],
    ])
  })

  it('has the next attempt of the newest one: its own, or the one that the step waits for', () => {
    const attempts = [
      { number: 1, startTime: at(1), nextTime: at(3) },
      { number: 2, startTime: at(4) },
    ]
    const wait = { kind: 'retry', dueTime: at(20) }
    expect(rows({ attempts, wait })).toEqual([
      [2, 20_000],
      [1, 4000],
    ])
    expect(rows({ attempts: [{ number: 1, nextTime: at(12) }], wait })).toEqual([[1, 12_000]])
  })

  it('has no next attempt where the step waits for something else', () => {
    expect(rows({ attempts: [{ number: 1 }], wait: { kind: 'timer', dueTime: at(20) } })).toEqual([[1, undefined]])
  })

  it('does not take a planned time for an attempt that began at an unknown one', () => {
    expect(rows({ attempts: [{ number: 1, nextTime: at(12) }, { number: 2 }] })).toEqual([
      [2, undefined],
      [1, undefined],
    ])
  })
})
