import { create, type MessageInitShape } from '@bufbuild/protobuf'
import { describe, expect, it } from 'vitest'
import { StopWorkflowResponseSchema } from '../gen/signalbox/v1/workflow_pb'
import { canceled, openRuns, stopCommands, stopped, stopRefusal } from './stop'

const answer = (given: MessageInitShape<typeof StopWorkflowResponseSchema> = {}) =>
  create(StopWorkflowResponseSchema, given)

describe('a stop of a workflow', () => {
  it('is sent once the open runs are known, with a reason', () => {
    expect(stopRefusal(undefined, 'a bug')).toBe('The open runs are not counted yet')
    expect(stopRefusal(0n, ' ')).toBe('Give a reason')
    expect(stopRefusal(0n, 'a bug')).toBeUndefined()
  })

  it('shows the open runs by status, in the order of their lives', () => {
    expect(openRuns(answer())).toBe('No run is open.')
    expect(openRuns(answer({ open: { waiting: 2n, queued: 1n, running: 0n, failed: 9n } }))).toBe(
      'Open runs: 1 queued, 2 waiting.',
    )
  })

  it('shows what it does to them, each group with its reason', () => {
    expect(canceled(answer())).toEqual([])
    expect(
      canceled(
        answer({
          eligible: 1n,
          unchanged: 2n,
          preview: [{ reason: 'RUN_IMPORTED', count: 3n }],
        }),
      ),
    ).toEqual([
      { text: '1 run will be asked to end.', code: '' },
      { text: '2 runs will not change: cancellation was requested before.', code: '' },
      { text: '3 runs cannot be canceled: run imported', code: 'RUN_IMPORTED' },
    ])
  })

  it('says what it has done', () => {
    expect(stopped(answer({ created: true, paused: true }))).toBe('The workflow is paused. No run was open.')
    expect(stopped(answer({ created: true, batch: { total: 1n } }))).toBe(
      'The workflow was paused already. 1 open run is being canceled.',
    )
    expect(stopped(answer({ paused: true, batch: { total: 2n } }))).toBe(
      'This request stopped the workflow before. 2 open runs are being canceled.',
    )
  })

  it('cancels no more runs by its commands than were shown', () => {
    expect(stopCommands('shop', 'shop/order', 'a bug', 12n)).toEqual({
      cli: "signalbox workflow stop shop/order --project shop --reason 'a bug' --expect 12",
      rest: {
        method: 'POST',
        path: '/v1/projects/shop/workflows/shop/order:stop',
        body: '{"reason":"a bug","expectedOpen":"12"}',
      },
    })
    expect(stopCommands('shop', 'shop/order', 'a bug', undefined).rest.body).toBe('{"reason":"a bug"}')
  })
})
