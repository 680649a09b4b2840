import { create } from '@bufbuild/protobuf'
import { describe, expect, it } from 'vitest'
import { type Step, StepSchema } from '../gen/signalbox/v1/run_pb'
import {
  buildTree,
  countMatches,
  countsText,
  failures,
  flatten,
  statusGroup,
  stepMatches,
  sumCounts,
  total,
  type View,
} from './tree'

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

  it('shows few rows of 10,000 steps, the failed ones first', () => {
    const rows = shown(loop(5000, (i) => (i === 4000 ? 'failed' : 'completed')))
    expect(rows.slice(0, 2)).toEqual(['each', '  iteration 4001'])
    expect(rows).toHaveLength(9)
    expect(rows.at(-1)).toBe('  … 4995 completed')
  })
})

describe('the counts of a tree', () => {
  it('are those of the steps below and of the step itself', () => {
    const root = buildTree([
      step(1, '/do/0/pay', 'failed'),
      step(2, '/do/0/pay/do/0/a', 'failed', { caught: true }),
      step(3, '/do/0/pay/do/1/b', 'waiting'),
      step(4, '/do/1/done', 'skipped'),
      step(5, '/do/2/last', 'canceled'),
    ])
    expect(root.counts).toEqual({ failed: 1, caught: 1, open: 1, completed: 0, skipped: 1, canceled: 1 })
    expect(root.children[0]?.counts).toEqual({ failed: 1, caught: 1, open: 1, completed: 0, skipped: 0, canceled: 0 })
    expect(countsText(root.counts)).toBe('1 failed, 1 open, 1 caught, 1 canceled, 1 skipped')
    expect(total(root.counts)).toBe(5)
  })

  it.each([
    ['failed', 'failed'],
    ['completed', 'completed'],
    ['skipped', 'skipped'],
    ['canceled', 'canceled'],
    ['running', 'open'],
    ['waiting', 'open'],
    ['timed_out', 'open'],
  ])('have %s as %s', (status, group) => {
    expect(statusGroup(status)).toBe(group)
  })

  it('of folded nodes are of their worst steps', () => {
    const root = buildTree([
      step(1, '/do/0/a', 'failed'),
      step(2, '/do/0/a/do/0/x', 'running'),
      step(3, '/do/1/b', 'running'),
      step(4, '/do/2/c', 'canceled'),
      step(5, '/do/3/d', 'completed'),
      step(6, '/do/4/e', 'skipped'),
      step(7, '/do/5/f', 'completed'),
    ])
    expect(sumCounts(root.children)).toEqual({ failed: 1, open: 1, caught: 0, canceled: 1, completed: 2, skipped: 1 })
  })
})

describe('what failed', () => {
  it('is the innermost step, in order of entry', () => {
    const root = buildTree([
      step(1, '/do/0/b', 'failed'),
      step(2, '/do/0/b/do/0/inner', 'failed'),
      step(3, '/do/1/c', 'failed'),
      step(4, '/do/0/b/do/1/other', 'failed'),
    ])
    expect(failures(root).map((s) => s.task)).toEqual(['inner', 'c', 'other'])
  })

  it('does not include what was caught, but what failed below it', () => {
    const root = buildTree([
      step(1, '/do/0/try', 'failed', { caught: true }),
      step(2, '/do/0/try/do/0/x', 'failed', { caught: true }),
      step(3, '/do/1/y', 'failed'),
    ])
    expect(failures(root).map((s) => s.task)).toEqual(['y'])
  })
})

describe('the filter of the steps', () => {
  const failed = step(7, '/do/0/charge', 'failed', {
    kind: 'call',
    error: { title: 'Card declined', detail: 'code 51' } as never,
  })
  const check = (only: string, q: string, of = failed, caught = false, found = new Set<bigint>()) =>
    stepMatches(only, q, found)?.(of, caught)

  it('is none without a parameter', () => {
    expect(stepMatches('', '  ')).toBeUndefined()
  })

  it.each([
    ['charge', true],
    ['CHARGE', true],
    ['/do/0', true],
    ['call', true],
    ['7', true],
    ['declined', true],
    ['code 51', true],
    ['refund', false],
  ])('finds the text %j: %s', (q, expected) => {
    expect(check('', q)).toBe(expected)
  })

  it('has what the server found', () => {
    expect(check('', 'refund', failed, false, new Set([7n]))).toBe(true)
    expect(check('open', 'refund', failed, false, new Set([7n]))).toBe(false)
  })

  it.each([
    ['failed', 'failed', false, true],
    ['failed', 'failed', true, false],
    ['failed', 'completed', false, false],
    ['caught', 'failed', true, true],
    ['caught', 'failed', false, false],
    ['open', 'running', false, true],
    ['open', 'waiting', false, true],
    ['open', 'completed', false, false],
  ])('only %s: a step that is %s, caught %s, is shown: %s', (only, status, caught, expected) => {
    expect(check(only, '', step(1, '/do/0/a', status), caught)).toBe(expected)
  })

  it('counts what it shows', () => {
    const root = buildTree([step(1, '/do/0/a', 'failed'), step(2, '/do/1/b'), step(3, '/do/1/b/do/0/c', 'failed')])
    const matches = stepMatches('failed', '')
    expect(matches === undefined ? 0 : countMatches(root, matches)).toBe(2)
  })

  it('keeps the steps around', () => {
    const steps = [
      step(1, '/do/0/a'),
      step(2, '/do/0/a/do/0/b', 'failed'),
      step(3, '/do/0/a/do/1/c'),
      step(4, '/do/1/d'),
    ]
    expect(shown(steps, { matches: stepMatches('failed', '') })).toEqual(['a', '  b'])
  })
})
