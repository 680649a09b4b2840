import { create } from '@bufbuild/protobuf'
import { expect, it } from 'vitest'
import { BatchSchema } from '../gen/signalbox/v1/batch_pb'
import { outcomeWords, progressWords, shownStatus } from './outcomes'

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
