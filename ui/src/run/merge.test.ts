import { create } from '@bufbuild/protobuf'
import { describe, expect, it } from 'vitest'
import { RunSchema, StepSchema, StepSummarySchema } from '../gen/signalbox/v1/run_pb'
import { markCaught, mergeRun, mergeSteps, mergeSummary } from './merge'

const step = (number: number, sequence: number, status = 'running') =>
  create(StepSchema, { number: BigInt(number), sequence: BigInt(sequence), status })

describe('changes of a watch', () => {
  it('appends new steps and replaces changed ones', () => {
    const merged = mergeSteps([step(1, 1), step(2, 2)], [step(1, 5, 'completed'), step(3, 5)])
    expect(merged.map((s) => `${s.number} ${s.status}`)).toEqual(['1 completed', '2 running', '3 running'])
  })

  it('keeps the later state of a step, whichever arrives first', () => {
    expect(mergeSteps([step(1, 7, 'completed')], [step(1, 3, 'running')])[0]?.status).toBe('completed')
  })

  it('marks the failed steps that a completed try has caught', () => {
    const steps = [step(1, 1, 'failed'), step(2, 1, 'failed')]
    expect(markCaught(steps, [2n, 9n]).map((s) => s.caught)).toEqual([undefined, true])
    expect(markCaught(steps, [])).toBe(steps)
  })

  it('keeps the same list when nothing changed', () => {
    const steps = [step(1, 1)]
    expect(mergeSteps(steps, [])).toBe(steps)
  })

  it('keeps what only GetRun returns, and never goes back', () => {
    const known = create(RunSchema, {
      id: 'r',
      sequence: 5n,
      status: 'running',
      input: { json: '{"a":1}' },
      children: ['c'],
    })
    const next = mergeRun(known, create(RunSchema, { id: 'r', sequence: 6n, status: 'completed' }))
    expect([next.status, next.input?.json, next.children]).toEqual(['completed', '{"a":1}', ['c']])
    expect(mergeRun(known, create(RunSchema, { id: 'r', sequence: 4n, status: 'queued' })).status).toBe('running')
  })

  it('does not show waits that have ended', () => {
    const known = create(RunSchema, { id: 'r', sequence: 5n, waits: [{ what: 'timer' }] })
    expect(mergeRun(known, create(RunSchema, { id: 'r', sequence: 6n })).waits).toEqual([])
    expect(mergeRun(known, create(RunSchema, { id: 'r', sequence: 5n })).waits).toHaveLength(1)
  })

  it('replaces the counts of changed tasks alone', () => {
    const summary = (tasks: [string, number][]) =>
      create(StepSummarySchema, { tasks: tasks.map(([pointer, count]) => ({ pointer, count: BigInt(count) })) })
    const merged = mergeSummary(
      summary([
        ['/do/0', 1],
        ['/do/1', 2],
      ]),
      summary([['/do/1', 9]]),
    )
    expect(merged?.tasks.map((t) => `${t.pointer} ${t.count}`)).toEqual(['/do/0 1', '/do/1 9'])
  })
})

describe('a run that a watch sends again', () => {
  const known = create(RunSchema, {
    id: 'r',
    sequence: 5n,
    status: 'waiting',
    waitingKind: 'quota',
    output: { json: '1' },
    replays: ['x'],
    replayOf: 'o',
    parentRunId: 'p',
    parentPath: '/do/0/run',
    depth: 2,
    quota: {},
    controlStates: [{ control: 'cancel', effect: 'yes' }],
    failedStep: { number: 3n },
    stepSummary: { steps: 9n },
  })

  it('keeps every part that a watch does not send', () => {
    const next = mergeRun(known, create(RunSchema, { id: 'r', sequence: 6n, waitingKind: 'quota' }))
    expect(next).toMatchObject({
      output: { json: '1' },
      replays: ['x'],
      replayOf: 'o',
      parentRunId: 'p',
      parentPath: '/do/0/run',
      depth: 2,
      controlStates: [{ control: 'cancel', effect: 'yes' }],
      failedStep: { number: 3n },
      stepSummary: { steps: 9n },
    })
    expect(next.quota).toBeDefined()
  })

  it('has the parts that it sends', () => {
    const next = mergeRun(
      known,
      create(RunSchema, {
        id: 'r',
        sequence: 6n,
        output: { json: '2' },
        replays: ['x', 'y'],
        depth: 3,
        waits: [{ what: 'event' }],
        failedStep: { number: 4n },
      }),
    )
    expect(next).toMatchObject({ output: { json: '2' }, replays: ['x', 'y'], depth: 3, failedStep: { number: 4n } })
    expect(next.waits.map(({ what }) => what)).toEqual(['event'])
  })

  it('has no quota once it does not wait for it', () => {
    expect(mergeRun(known, create(RunSchema, { id: 'r', sequence: 6n, waitingKind: 'timer' })).quota).toBeUndefined()
  })

  it('is not mixed with another run', () => {
    const other = create(RunSchema, { id: 's', sequence: 1n })
    expect(mergeRun(known, other)).toBe(other)
    expect(mergeRun(undefined, known)).toBe(known)
  })
})

describe('a summary that a watch sends', () => {
  it('is the first one, and stays without a change', () => {
    const summary = create(StepSummarySchema, { steps: 2n })
    expect(mergeSummary(undefined, summary)).toBe(summary)
    expect(mergeSummary(summary, undefined)).toBe(summary)
    expect(mergeSummary(undefined, undefined)).toBeUndefined()
  })
})
