import { create } from '@bufbuild/protobuf'
import { describe, expect, it } from 'vitest'
import { RunSchema, StepSchema } from '../gen/signalbox/v1/run_pb'
import { incident } from './incident'

describe('an incident as Markdown', () => {
  const run = create(RunSchema, {
    id: '01a2',
    project: 'shop',
    workflow: 'shop/order',
    version: '1.4.0',
    status: 'timed_out',
    trigger: 'api',
    actor: 'a`b',
    createTime: { seconds: 1_700_000_000n },
    stepsDone: 3n,
    stepsTotal: 4n,
    error: { type: 'https://example.com/x', status: 503, title: 'stock did not answer', detail: 'line 1\nline 2' },
    labels: { order: '4711', note: 'a`b' },
    input: { json: '{"card":"4111"}' },
  })
  const text = incident(
    run,
    create(StepSchema, {
      number: 4n,
      task: 'reserve',
      path: '/do/3/reserve',
      attempts: [{ number: 1 }, { number: 2 }],
    }),
    'https://box/p/shop/runs/01a2',
  )

  it('says what failed, where and when, and marks quotations', () => {
    expect(text).toContain('**shop/order@1.4.0** run `01a2` in project `shop`: **timed out**')
    expect(text).toContain('> stock did not answer\n> line 1\n> line 2')
    expect(text).toContain('Step 4 `reserve` at `/do/3/reserve`, 2 attempts')
    expect(text).toContain('- Started: not yet')
    expect(text).toContain('`` a`b ``')
    expect(text).toContain('- Labels: `` note=a`b ``, `order=4711`\n')
  })

  it('contains no payload', () => {
    expect(text).not.toContain('4111')
  })

  it('counts all attempts of a step, not those alone that it keeps', () => {
    const failed = (...numbers: number[]) =>
      incident(
        run,
        create(StepSchema, {
          number: 4n,
          task: 'reserve',
          path: '/do/3',
          attempts: numbers.map((number) => ({ number })),
        }),
        '',
      )
    expect(failed(71, 72)).toContain('Step 4 `reserve` at `/do/3`, 72 attempts')
    expect(failed(1)).toContain(', 1 attempt\n')
  })

  it('says what a stuck run waits for, and what to do', () => {
    const stuck = create(RunSchema, {
      status: 'queued',
      queuedReason: 'worker',
      stuck: {
        code: 'NO_POLLER',
        since: { seconds: 1_700_000_000n },
        detail: 'no worker\npolls',
        advice: 'Start one.',
      },
      temporal: { taskQueue: 'q', workflowId: 'w' },
    })
    const text = incident(stuck, undefined, '')
    expect(text).toContain('**queued** (worker)')
    expect(text).toContain(
      'Stuck since 2023-11-14T22:13:20.000Z: `NO_POLLER`\n> no worker\n> polls\n\nWhat to do: Start one.',
    )
    expect(text).toContain('- Task queue: `q`, Temporal workflow `w`')
    expect(text).toContain('- Queued: unknown')
    expect(text).not.toContain('Error')
  })
})
