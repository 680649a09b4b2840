import { create } from '@bufbuild/protobuf'
import { describe, expect, it } from 'vitest'
import { type Step, StepSchema } from '../gen/signalbox/v1/run_pb'
import { buildTree, countMatches, countsText, failures, flatten, stepMatches, sumCounts, type View } from './tree'

const step = (number: number, path: string, status = 'completed', more: Partial<Step> = {}): Step =>
  create(StepSchema, {
    number: BigInt(number),
    path,
    pointer: path,
    task: (path.split('/').at(-1) ?? '').replace(/#.*/, ''),
    status,
    ...more,
  } as never)

const plain: View = { toggled: new Set(), unfolded: new Set(), matches: undefined, reveal: '' }

const shown = (steps: Step[], view: Partial<View> = {}) =>
  flatten(buildTree(steps), { ...plain, ...view }).map((row) => {
    const pad = '  '.repeat(row.depth)
    if (row.kind === 'fold') return `${pad}… ${countsText(sumCounts(row.hidden))}`
    return `${pad}${row.node.kind === 'step' ? '' : `${row.node.kind} ${row.node.number} `}${row.step?.task ?? ''}`.trimEnd()
  })

const loop = (count: number, status: (i: number) => string, tasks = ['a', 'b']) => {
  const steps = [step(1, '/do/0/each')]
  for (let i = 0; i < count; i++)
    tasks.forEach((task, t) =>
      steps.push(step(steps.length + 1, `/do/0/each/for/${i}/do/${t}/${task}`, t === 0 ? status(i) : 'completed')),
    )
  return steps
}

describe('the tree of steps', () => {
  it('has tasks below the tasks that contain them, with attempts and catch', () => {
    const steps = [
      step(1, '/do/0/pay'),
      step(2, '/do/0/pay/try/0/charge', 'failed'),
      step(3, '/do/0/pay/retry/2/try/0/charge', 'failed'),
      step(4, '/do/0/pay/catch/do/0/refund'),
      step(5, '/do/1/done'),
    ]
    expect(shown(steps)).toEqual(['pay', '  attempt 1 charge', '  attempt 2 charge', '  catch 0', '    refund', 'done'])
  })

  it('keeps a try without a second attempt plain', () => {
    expect(shown([step(1, '/do/0/pay'), step(2, '/do/0/pay/try/0/charge')])).toEqual(['pay', '  charge'])
  })

  it('lists a task that was entered again by a jump as a step of its own, with what is below it', () => {
    const steps = [
      step(1, '/do/0/ask'),
      step(2, '/do/1/wait'),
      step(3, '/do/0/ask#2'),
      step(4, '/do/0/ask#2/try/0/inner'),
    ]
    expect(shown(steps)).toEqual(['ask', 'wait', 'ask', '  inner'])
  })

  it('puts a step whose parent is not listed below the nearest one that is', () => {
    expect(shown([step(1, '/do/0/a'), step(9, '/do/0/a/do/3/x/do/0/y')])).toEqual(['a', '  y'])
    expect(shown([step(9, '/do/0/a/do/3/x')])).toEqual(['x'])
  })

  it('folds more than five iterations, the failed and open ones first', () => {
    expect(shown(loop(9, (i) => (i === 7 ? 'failed' : i === 8 ? 'running' : 'completed')))).toEqual([
      'each',
      '  iteration 8',
      '    a',
      '    b',
      '  iteration 9',
      '    a',
      '    b',
      '  iteration 1',
      '  iteration 2',
      '  iteration 3',
      '  … 4 completed',
    ])
    expect(shown(loop(5, () => 'completed', ['a']))).toEqual([
      'each',
      ...[1, 2, 3, 4, 5].map((n) => `  iteration ${n} a`),
    ])
  })

  it('shows all in order when they are unfolded, and the revealed one in any case', () => {
    const steps = loop(8, (i) => (i === 6 ? 'failed' : 'completed'), ['a'])
    expect(shown(steps, { unfolded: new Set(['/do/0/each']) })).toEqual([
      'each',
      ...[1, 2, 3, 4, 5, 6, 7, 8].map((n) => `  iteration ${n} a`),
      '  … 3 completed',
    ])
    expect(shown(steps, { reveal: '/do/0/each/for/5/do/0/a' })).toContain('  iteration 6 a')
  })

  it('folds branches, not the tasks of a list', () => {
    const branches = [
      step(1, '/do/0/f'),
      ...Array.from({ length: 8 }, (_, i) => step(i + 2, `/do/0/f/fork/branches/${i}/b${i}`)),
    ]
    expect(shown(branches)).toEqual(['f', '  b0', '  b1', '  b2', '  b3', '  b4', '  … 3 completed'])
    expect(shown(Array.from({ length: 8 }, (_, i) => step(i + 1, `/do/${i}/t${i}`)))).toHaveLength(8)
  })

  it('closes and opens nodes', () => {
    expect(
      shown(
        loop(1, () => 'completed', ['a']),
        { toggled: new Set(['/do/0/each']) },
      ),
    ).toEqual(['each'])
  })

  it('shows what a filter matches, with what is around it', () => {
    const steps = loop(30, (i) => (i % 10 === 3 ? 'failed' : 'completed'))
    expect(shown(steps, { matches: stepMatches('failed', '') })).toEqual([
      'each',
      '  iteration 4',
      '    a',
      '  iteration 14',
      '    a',
      '  iteration 24',
      '    a',
    ])
    expect(stepMatches('', '')).toBeUndefined()
    expect(shown(steps, { matches: stepMatches('open', '') })).toEqual([])
    expect(shown(steps, { matches: stepMatches('', 'FOR/12/do/1') })).toEqual(['each', '  iteration 13', '    b'])
  })

  it('shows and counts the steps that the server found by a text, too', () => {
    const steps = loop(30, (i) => (i % 10 === 3 ? 'failed' : 'completed'))
    const matches = stepMatches('', 'for/12/do/1', new Set([4n]))
    expect(shown(steps, { matches })).toEqual(['each', '  iteration 2', '    a', '  iteration 13', '    b'])
    expect(matches === undefined ? 0 : countMatches(buildTree(steps), matches)).toBe(2)
    expect(shown(steps, { matches: stepMatches('failed', 'lamp', new Set([4n])) })).toEqual([])
  })

  it('counts failures once: not again for the steps around them', () => {
    const steps = [
      step(1, '/do/0/try', 'failed'),
      step(2, '/do/0/try/try/0/call', 'failed'),
      step(3, '/do/1/raise', 'failed'),
    ]
    expect(failures(buildTree(steps)).map((s) => s.number)).toEqual([2n, 3n])
  })

  it('sets failures apart whose error was caught', () => {
    const steps = [
      step(1, '/do/0/t'),
      step(2, '/do/0/t/try/0/call', 'failed', { caught: true }),
      step(3, '/do/0/t/catch/do/0/note'),
      step(4, '/do/1/raise', 'failed'),
    ]
    const root = buildTree(steps)
    expect(failures(root).map((s) => s.number)).toEqual([4n])
    expect(countsText(root.counts)).toBe('1 failed, 1 caught, 2 completed')
    expect(shown(steps, { matches: stepMatches('caught', '') })).toEqual(['t', '  call'])
    expect(shown(steps, { matches: stepMatches('failed', '') })).toEqual(['raise'])
  })

  it('arranges 10,000 steps in well under a second', () => {
    const steps = loop(5000, (i) => (i === 4000 ? 'failed' : 'completed'))
    const began = performance.now()
    expect(shown(steps).length).toBeLessThan(20)
    expect(performance.now() - began).toBeLessThan(1000)
  })
})
