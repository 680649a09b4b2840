import { create, type MessageInitShape } from '@bufbuild/protobuf'
import { expect, it } from 'vitest'
import { type BatchFilter, BatchFilterSchema } from '../gen/signalbox/v1/batch_pb'
import { conditions } from './conditions'

it('names every condition of a filter', () => {
  const all = create(BatchFilterSchema, {
    statuses: ['failed'],
    workflow: 'shop/order',
    version: '1.4.0',
    since: { seconds: 1_700_000_000n },
    until: { seconds: 1_700_003_600n },
    problems: ['NO_POLLER'],
    trigger: 'api',
    notReplayed: true,
    failureGroup: 'abc',
    text: 'order-4',
    parentRunId: 'p1',
    replayOf: 'r1',
    batchId: 'b1',
    startedByBatchId: 'b2',
    labels: ['order=4711', 'note=a; b, c'],
    endedSince: { seconds: 1_700_000_000n },
    endedUntil: { seconds: 1_700_003_600n },
    errorType: 'execution_missing',
  })
  expect(conditions(all, 'utc')).toContain('label order=4711; label note=a; b, c; ')
  // Each alone, except the version, which has its workflow before it.
  for (const { localName } of BatchFilterSchema.fields) {
    if (localName === 'version') continue
    const alone = { [localName]: all[localName as keyof BatchFilter] } as MessageInitShape<typeof BatchFilterSchema>
    expect(conditions(create(BatchFilterSchema, alone), 'utc'), localName).not.toBe('all runs')
  }
  expect(conditions(create(BatchFilterSchema), 'utc')).toBe('all runs')
  expect(conditions(undefined, 'utc')).toBe('runs given by ID')
})
