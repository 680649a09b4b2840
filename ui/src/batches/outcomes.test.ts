import { create, type MessageInitShape } from '@bufbuild/protobuf'
import { describe, expect, it } from 'vitest'
import { BatchSchema } from '../gen/signalbox/v1/batch_pb'
import { barParts, isOpen, outcomeWords, pauseRefusal, progressWords, retryRefusal, shownStatus } from './outcomes'

it('says what became of the runs that a batch started', () => {
  const open = create(BatchSchema, {
    action: 'replay',
    status: 'started',
    total: 100n,
    outcomes: { started: 99n, open: 4n, completed: 5n, failedSameCause: 90n },
    failed: 1n,
  })
  expect(progressWords(open)).toBe('99 started, 1 not started')
  expect(outcomeWords(open)).toBe('4 open, 5 completed, 90 failed with the same cause')
  expect(shownStatus(open)).toBe('started')
})

it('does not show failures as a success', () => {
  expect(
    shownStatus(create(BatchSchema, { status: 'completed', outcomes: { started: 100n, failedSameCause: 100n } })),
  ).toBe('failures')
  expect(shownStatus(create(BatchSchema, { status: 'completed', total: 2n, succeeded: 1n, failed: 1n }))).toBe(
    'failures',
  )
  expect(
    shownStatus(create(BatchSchema, { status: 'completed', outcomes: { started: 2n, completed: 1n, canceled: 1n } })),
  ).toBe('completed')
  expect(shownStatus(create(BatchSchema, { status: 'completed', total: 2n, succeeded: 2n }))).toBe('completed')
  expect(outcomeWords(create(BatchSchema, { action: 'cancel', succeeded: 2n }))).toBe('')
})

describe('what can be done with a batch', () => {
  const batch = (given: MessageInitShape<typeof BatchSchema>) => create(BatchSchema, given)

  it.each([
    ['selecting', true, true],
    ['running', true, true],
    ['paused', true, true],
    ['started', true, false],
    ['completed', false, false],
  ])('that is %s: open %s, may be paused %s', (status, open, pausable) => {
    expect(isOpen(batch({ status }))).toBe(open)
    expect(pauseRefusal(batch({ status })) === undefined).toBe(pausable)
  })

  it('is nothing before it is known', () => {
    expect(isOpen(undefined)).toBe(false)
    expect(pauseRefusal(undefined)).toBe('The batch has ended.')
    expect(retryRefusal(undefined)).toBe('Nothing failed.')
  })

  it('is to try again what failed: the start of a run, or the run itself', () => {
    expect(retryRefusal(batch({}))).toBe('Nothing failed.')
    expect(retryRefusal(batch({ failed: 1n }))).toBeUndefined()
    expect(retryRefusal(batch({ outcomes: { failedSameCause: 1n } }))).toBeUndefined()
    expect(retryRefusal(batch({ outcomes: { failedOtherCause: 1n } }))).toBeUndefined()
    expect(retryRefusal(batch({ refused: 3n, outcomes: { open: 2n } }))).toBe('Nothing failed.')
  })
})

describe('the bar of a batch', () => {
  const shares = (given: MessageInitShape<typeof BatchSchema>) =>
    Object.fromEntries(barParts(create(BatchSchema, given)).map(({ part, share }) => [part, share]))

  it('has the results of its actions', () => {
    expect(shares({ total: 10n, succeeded: 5n, refused: 2n, failed: 1n })).toEqual({
      succeeded: 0.5,
      open: 0,
      ended: 0,
      refused: 0.2,
      failed: 0.1,
    })
  })

  it('has what became of the runs that it started: a started one is no success yet', () => {
    expect(
      shares({
        total: 10n,
        succeeded: 9n,
        failed: 1n,
        outcomes: {
          open: 3n,
          completed: 1n,
          failedSameCause: 1n,
          failedOtherCause: 1n,
          canceled: 1n,
          unknown: 1n,
          terminated: 1n,
        },
      }),
    ).toEqual({ succeeded: 0.1, open: 0.3, ended: 0.3, refused: 0, failed: 0.3 })
  })

  it('is empty while nothing is selected', () => {
    expect(Object.values(shares({ total: 0n, failed: 1n }))).toEqual([0, 0, 0, 0, 0])
  })
})
