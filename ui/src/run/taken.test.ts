import { create } from '@bufbuild/protobuf'
import { describe, expect, it } from 'vitest'
import { StepSchema, StepSummarySchema } from '../gen/signalbox/v1/run_pb'
import { takenEdges, taskStates } from './taken'
import { buildTree } from './tree'

const step = (number: number, path: string, status = 'completed', pointer = path) =>
  create(StepSchema, { number: BigInt(number), path, pointer, task: '', status })

describe('the path that a run took', () => {
  it('follows the order of entry in each list, with jumps back', () => {
    const steps = [
      step(1, '/do/0/ask'),
      step(2, '/do/1/decide'),
      step(3, '/do/0/ask#2', 'completed', '/do/0/ask'),
      step(4, '/do/2/end'),
    ]
    expect([...takenEdges(buildTree(steps), true)]).toEqual([
      '/do/0/ask /do/1/decide',
      '/do/1/decide /do/0/ask',
      '/do/0/ask /do/2/end',
      'start /do/0/ask',
      '/do/2/end end',
    ])
  })

  it('does not join branches, iterations and attempts, and passes a catch', () => {
    const branches = [step(1, '/do/0/f'), step(2, '/do/0/f/fork/branches/0/a'), step(3, '/do/0/f/fork/branches/1/b')]
    expect([...takenEdges(buildTree(branches), false)]).toEqual(['start /do/0/f'])
    const caught = [step(1, '/do/0/t'), step(2, '/do/0/t/try/0/a', 'failed'), step(3, '/do/0/t/catch/do/0/b')]
    expect([...takenEdges(buildTree(caught), false)]).toEqual(['/do/0/t /do/0/t/catch', 'start /do/0/t'])
  })
})

describe('the states of tasks', () => {
  it('show an open step first, then how the last one ended, with counts', () => {
    const states = taskStates(
      buildTree([
        step(1, '/a', 'failed'),
        step(2, '/a#2', 'completed', '/a'),
        step(3, '/b'),
        step(4, '/b#2', 'waiting', '/b'),
        step(5, '/b#3', 'completed', '/b'),
      ]),
      undefined,
    )
    expect(states.get('/a')).toEqual({ status: 'completed', counts: '1 failed, 1 completed', inside: '', steps: 2 })
    expect(states.get('/b')).toEqual({ status: 'waiting', counts: '1 open, 2 completed', inside: '', steps: 3 })
    expect(taskStates(buildTree([step(1, '/c', 'skipped')]), undefined).get('/c')).toEqual({
      status: 'skipped',
      counts: '',
      inside: '',
      steps: 1,
    })
  })

  it('count the steps of a long run that are not listed', () => {
    const summary = create(StepSummarySchema, { tasks: [{ pointer: '/a', count: 60n, completed: 57n, failed: 3n }] })
    expect(taskStates(buildTree([]), summary).get('/a')).toEqual({
      status: 'completed',
      counts: '3 failed, 57 completed',
      inside: '',
      steps: 60,
    })
  })

  it('count what a loop and a fork contain', () => {
    const loop = [
      step(1, '/do/0/l'),
      step(2, '/do/0/l/for/0/do/0/a', 'failed', '/do/0/l/do/0/a'),
      step(3, '/do/0/l/for/1/do/0/a', 'completed', '/do/0/l/do/0/a'),
    ]
    expect(taskStates(buildTree(loop), undefined).get('/do/0/l')?.inside).toBe('2 iterations: 1 failed, 1 completed')
    const fork = [step(1, '/do/0/f'), step(2, '/do/0/f/fork/branches/0/a'), step(3, '/do/0/f/fork/branches/1/b')]
    expect(taskStates(buildTree(fork), undefined).get('/do/0/f')?.inside).toBe('2 branches: 2 completed')
  })
})
