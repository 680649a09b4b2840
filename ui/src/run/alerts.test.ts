import { create, type MessageInitShape } from '@bufbuild/protobuf'
import { describe, expect, it } from 'vitest'
import { RunSchema, StepSchema } from '../gen/signalbox/v1/run_pb'
import { GetConnectionResponseSchema } from '../gen/signalbox/v1/system_pb'
import { runAlerts } from './alerts'

type Given = MessageInitShape<typeof RunSchema>

const alertsOf = (run: Given, state = 'connected', failures: { number: bigint; task: string }[] = []) =>
  runAlerts(
    create(RunSchema, { id: 'r1', project: 'shop', status: 'running', ...run } as Given),
    create(GetConnectionResponseSchema, { state, title: 'Temporal does not answer' }),
    failures.map((step) => create(StepSchema, step)),
    () => undefined,
    () => undefined,
  )
const shown = (...given: Parameters<typeof alertsOf>) => alertsOf(...given).map(({ id, tone }) => `${id} ${tone}`)
const only = (...given: Parameters<typeof alertsOf>) => {
  const list = alertsOf(...given)
  expect(list).toHaveLength(1)
  return list[0]
}

describe('the alerts of a run', () => {
  it('are none while all is well', () => {
    expect(shown({})).toEqual([])
    expect(shown({ status: 'completed' }, 'down')).toEqual([])
  })

  it('begin with what keeps it from going on, and end with what it belongs to', () => {
    expect(
      shown(
        {
          status: 'waiting',
          stuck: { code: 'NO_POLLER' },
          cancelRequested: true,
          behind: { reason: 'repair' },
          warnings: [{ code: 'INPUT_FORMAT' }],
          waits: [
            { kind: 'retry', step: 4n, retry: { step: 4n, task: 'pay', failed: 2n } },
            { kind: 'timer', what: 'a timer' },
          ],
          replayOf: 'r0',
        },
        'down',
      ),
    ).toEqual([
      'temporal red',
      'stuck amber',
      'retry-4 amber',
      'cancel amber',
      'behind amber',
      'warning-INPUT_FORMAT amber',
      'waits violet',
      'relation blue',
    ])
  })

  it('have nothing of an open run once it has ended', () => {
    expect(
      shown(
        {
          status: 'completed',
          cancelRequested: true,
          waitingKind: 'quota',
          waits: [
            { kind: 'retry', step: 4n, retry: { step: 4n, task: 'pay', failed: 2n } },
            { kind: 'timer', what: 'a timer' },
          ],
        },
        'down',
      ),
    ).toEqual([])
  })
})

describe('a queued run', () => {
  it.each<[Given, string]>([
    [
      { queuedReason: 'engine', queuePosition: 12_000n },
      'Queued until Temporal is available, position 12,000 of all projects',
    ],
    [{ queuedReason: 'engine' }, 'Queued until Temporal is available, position unknown of all projects'],
    [{ queuedReason: 'admission', queuePosition: 3n }, "Queued for one of the project's slots, position 3"],
    [{ queuedReason: 'worker' }, 'Queued, waiting for a worker'],
    [{ queuedReason: 'worker', temporal: { taskQueue: 'q' } }, 'Queued, waiting for a worker on q'],
    [{ queuedReason: 'starting' }, 'Queued: the run is being submitted to Temporal'],
  ])('%o says why', (run, title) => {
    expect(only({ status: 'queued', ...run } as Given)).toMatchObject({ id: 'queued', tone: 'violet', title })
  })

  it('says of a stuck one what is wrong instead, with the task queue', () => {
    const stuck = { code: 'NO_POLLER' }
    expect(only({ status: 'queued', queuedReason: 'worker', stuck, temporal: { taskQueue: 'q' } })?.title).toBe(
      'No worker: queued, waiting for a worker on q',
    )
    expect(only({ status: 'queued', queuedReason: 'worker', stuck: { code: 'BACKLOG' } })?.title).toBe('Backlog')
    expect(only({ status: 'running', stuck })?.title).toBe('No worker')
  })
})

describe('a failed run', () => {
  const error = { title: 'Card declined', status: 402, type: 'https://example.com/declined' }

  it('is red, and amber where a person ended it', () => {
    expect(shown({ status: 'failed', error })).toEqual(['error red'])
    expect(shown({ status: 'terminated', error })).toEqual(['error amber'])
    expect(shown({ status: 'running', error })).toEqual([])
  })

  it('leads to the step that failed it, or to the last that is known', () => {
    expect(only({ status: 'failed', error })?.actions).toBeUndefined()
    expect(only({ status: 'failed', error }, 'connected', [{ number: 3n, task: 'pay' }])?.actions).toBeDefined()
    expect(only({ status: 'failed', error, failedStep: { number: 4n } })?.actions).toBeDefined()
  })
})

describe('what an open run waits for', () => {
  it('is not said of what has an alert of its own, or none', () => {
    for (const kind of ['quota', 'worker', 'engine', 'starting', 'call', 'program', 'publication'])
      expect(shown({ status: 'waiting', waits: [{ kind, what: kind }] }), kind).toEqual([])
  })

  it('has at most three retries', () => {
    const waits = [1n, 2n, 3n, 4n].map((step) => ({ kind: 'retry', step, retry: { step } }))
    expect(shown({ waits })).toEqual(['retry-1 amber', 'retry-2 amber', 'retry-3 amber'])
  })

  it('has one retry for the steps in the same try, and says how often it failed', () => {
    const retry = { step: 1n, task: 'pay', failed: 2n, limit: 5n }
    const waits = [2n, 3n].map((step) => ({ kind: 'call', step, retry }))
    expect(only({ waits })?.title).toBe('Task pay fails and is attempted again: 2 of at most 5 attempts failed')
    expect(only({ waits: [{ kind: 'retry', retry: { ...retry, limit: 0n } }] })?.title).toBe(
      'Task pay fails and is attempted again: 2 attempts failed',
    )
  })

  it('is the quota of the project', () => {
    expect(only({ status: 'waiting', waitingKind: 'quota' })).toMatchObject({
      id: 'quota',
      tone: 'violet',
      detail: 'The usage is unknown.',
    })
  })
})

describe('what else is said of a run', () => {
  it('is that a cancel was requested, with the reason', () => {
    expect(only({ cancelRequested: true, cancelReason: 'a mistake' })?.detail).toBe('Reason: a mistake')
    expect(only({ cancelRequested: true })?.detail).toBeUndefined()
    expect(only({ status: 'canceled', cancelRequested: true, cancelReason: 'a mistake' })).toMatchObject({
      id: 'canceled',
      title: 'Canceled: a mistake',
    })
    expect(shown({ status: 'canceled', cancelRequested: true })).toEqual([])
  })

  it('is what becomes of rows that are behind', () => {
    expect(only({ behind: { reason: 'lost' } })).toMatchObject({
      title: 'The rows of the run are behind Temporal: lost',
      detail: 'A worker repairs them.',
    })
    expect(only({ behind: { reason: 'lost', failure: 'no history' } })?.detail).toBe(
      'The last repair failed: no history. It is tried again at growing intervals.',
    )
  })

  it.each([
    ['INPUT_MISSING', 'The input is lost: the database was restored from a backup that is older than the run'],
    ['INPUT_FORMAT', 'Texts of the input are not of the formats that the schema names'],
    ['NEW_WARNING', 'NEW_WARNING'],
  ])('is the warning %s', (code, title) => {
    expect(only({ warnings: [{ code, detail: 'more' }] })).toMatchObject({ title, detail: 'more', tone: 'amber' })
  })
})

describe('the number of attempts of a failed run', () => {
  const error = { title: 'Card declined' }
  const title = (attempts: number[]) => {
    const list = runAlerts(
      create(RunSchema, { status: 'failed', error }),
      undefined,
      [create(StepSchema, { number: 3n, task: 'pay', attempts: attempts.map((number) => ({ number })) })],
      () => undefined,
      () => undefined,
    )
    return JSON.stringify(list[0]?.title)
  }

  it('is that of all attempts, not of those that the step keeps', () => {
    expect(title([71, 72])).toContain('attempt 72')
    expect(title([1])).not.toContain('attempt')
    expect(title([])).not.toContain('attempt')
  })
})
