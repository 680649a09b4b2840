import { create, type MessageInitShape } from '@bufbuild/protobuf'
import { describe, expect, it } from 'vitest'
import { RunSchema, type Step, StepSchema } from '../gen/signalbox/v1/run_pb'
import { countsBelow, groupLabel, nextFailure, noSteps, ofTask } from './steps'
import { buildTree, flatten } from './tree'

const step = (number: number, status = 'completed', path = `/do/${number}/t`, pointer = path): Step =>
  create(StepSchema, { number: BigInt(number), status, path, pointer })

describe('the name of a group of steps', () => {
  it('has its kind and number; a catch has none', () => {
    const root = buildTree([
      step(1, 'completed', '/do/0/each'),
      step(2, 'completed', '/do/0/each/for/1199/do/0/a'),
      step(3, 'completed', '/do/1/pay'),
      step(4, 'failed', '/do/1/pay/try/0/charge'),
      step(5, 'failed', '/do/1/pay/retry/2/try/0/charge'),
      step(6, 'completed', '/do/1/pay/catch/do/0/refund'),
    ])
    const groups = flatten(root, { toggled: new Set(), unfolded: new Set(), matches: undefined, reveal: '' })
      .flatMap((row) => (row.kind === 'node' ? [row.node] : []))
      .filter(({ kind }) => kind !== 'step')
    expect(groups.map(groupLabel)).toEqual(['iteration 1,200', 'attempt 1', 'attempt 2', 'catch'])
  })
})

describe('the counts below a closed step', () => {
  const counts = { failed: 2, caught: 1, open: 1, completed: 3, skipped: 0, canceled: 0 }

  it.each([
    ['failed', false, '1 failed, 1 open, 1 caught, 3 completed'],
    ['failed', true, '2 failed, 1 open, 3 completed'],
    ['running', false, '2 failed, 1 caught, 3 completed'],
    ['completed', false, '2 failed, 1 open, 1 caught, 2 completed'],
  ])('that is %s, caught %s, are without it: %s', (status, caught, text) => {
    expect(countsBelow(counts, step(1, status), caught)).toBe(text)
  })

  it('are not changed by being printed', () => {
    countsBelow(counts, step(1, 'failed'), false)
    expect(counts.failed).toBe(2)
  })
})

describe('the steps of a task', () => {
  it('begin with the failed ones, then the open ones, each in order of entry', () => {
    const steps = [
      step(1, 'completed', '/a', '/a'),
      step(2, 'running', '/a#2', '/a'),
      step(3, 'failed', '/a#3', '/a'),
      step(4, 'completed', '/b', '/b'),
      step(5, 'failed', '/a#5', '/a'),
      step(6, 'waiting', '/a#6', '/a'),
      step(7, 'skipped', '/a#7', '/a'),
    ]
    expect(ofTask(steps, '/a').map((s) => Number(s.number))).toEqual([3, 5, 2, 6, 1, 7])
    expect(steps.map((s) => Number(s.number))).toEqual([1, 2, 3, 4, 5, 6, 7])
  })

  it('are none of no task', () => {
    expect(ofTask([step(1)], undefined)).toEqual([])
  })
})

describe('the way from failure to failure', () => {
  const failed = [step(3, 'failed'), step(8, 'failed'), step(9, 'failed')]
  const next = (selected: bigint | undefined, by: 1 | -1) => nextFailure(failed, selected, by)?.number

  it('begins at the first, or backwards at the last', () => {
    expect(next(undefined, 1)).toBe(3n)
    expect(next(undefined, -1)).toBe(9n)
    expect(next(5n, 1)).toBe(3n)
  })

  it('goes on, and round at both ends', () => {
    expect(next(3n, 1)).toBe(8n)
    expect(next(9n, 1)).toBe(3n)
    expect(next(3n, -1)).toBe(9n)
    expect(next(9n, -1)).toBe(8n)
  })

  it('leads nowhere where nothing failed', () => {
    expect(nextFailure([], undefined, 1)).toBeUndefined()
    expect(nextFailure([], 3n, -1)).toBeUndefined()
  })
})

describe('why no step is shown', () => {
  const run = (given: MessageInitShape<typeof RunSchema> = {}) => create(RunSchema, { status: 'running', ...given })
  const all = { counted: 0n, filtered: false, text: '', complete: true }

  it('is that they are being read, or searched for a text', () => {
    expect(noSteps(run(), { ...all, complete: false }).title).toBe('The steps are being read.')
    expect(noSteps(run(), { ...all, complete: false, filtered: true, text: 'lamp' })).toMatchObject({
      kind: 'empty',
      title: 'The steps are being searched.',
    })
  })

  it('is that none matches the filter', () => {
    expect(noSteps(run(), { ...all, filtered: true })).toEqual({
      kind: 'no-match',
      title: 'No step matches.',
      text: undefined,
    })
  })

  it('is that none has the text, and what was searched', () => {
    expect(noSteps(run(), { ...all, filtered: true, text: 'lamp' })).toEqual({
      kind: 'no-match',
      title: 'No step contains “lamp”.',
      text: 'Names, paths, errors, inputs and outputs were searched.',
    })
  })

  it('is not said of values that nothing can search', () => {
    expect(noSteps(run({ redacted: true }), { ...all, filtered: true, text: 'lamp' }).text).toBe(
      'Names, paths, errors, inputs and outputs were searched, sealed values not.',
    )
    expect(noSteps(run(), { ...all, filtered: true, text: 'lamp', counted: 12_000n })).toMatchObject({
      title: 'No listed step contains “lamp”.',
      text: 'Names, paths, errors, inputs and outputs were searched; 12,000 steps are not listed, so what they contain is unknown.',
    })
  })

  it('is that the run has none yet, with what it waits for, or never had one', () => {
    expect(noSteps(run(), all)).toMatchObject({ title: 'Nothing has run yet.', text: 'The run is running.' })
    expect(noSteps(run({ status: 'queued', queuedReason: 'engine', queuePosition: 1200n }), all).text).toBe(
      'The run is queued (engine). Its position in the queue is 1,200.',
    )
    expect(noSteps(run({ status: 'canceled', queuedReason: 'engine' }), all)).toEqual({
      kind: 'empty',
      title: 'The run ended before its first step.',
      text: undefined,
    })
  })
})
