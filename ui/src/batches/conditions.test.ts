import { create, type MessageInitShape } from '@bufbuild/protobuf'
import { expect, it } from 'vitest'
import { type RunFilter, RunFilterSchema } from '../gen/signalbox/v1/run_pb'
import { conditions } from './conditions'

it('names every condition of a filter', () => {
  const all = create(RunFilterSchema, {
    statuses: ['failed'],
    workflow: 'shop/order',
    version: '1.4.0',
    since: { seconds: 1_700_000_000n },
    until: { seconds: 1_700_003_600n },
    stuck: ['NO_POLLER'],
    retrying: 'charge',
    waiting: 'retry',
    cause: 'DEADLOCK',
    words: 'order 4711',
    errorText: 'card declined',
    failedTask: 'charge',
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
  expect(conditions(all, 'utc')).toContain('Label: order=4711; Label: note=a; b, c; ')
  for (const { localName } of RunFilterSchema.fields) {
    const alone = { [localName]: all[localName as keyof RunFilter] } as MessageInitShape<typeof RunFilterSchema>
    expect(conditions(create(RunFilterSchema, alone), 'utc'), localName).not.toBe('all runs')
  }
  expect(conditions(create(RunFilterSchema), 'utc')).toBe('all runs')
  expect(conditions(undefined, 'utc')).toBe('runs given by ID')
})
