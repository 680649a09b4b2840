import { create } from '@bufbuild/protobuf'
import { describe, expect, it } from 'vitest'
import { printPatch } from '../api/patch'
import { RunSchema, TaskTotalsSchema } from '../gen/signalbox/v1/run_pb'
import {
  comparable,
  compareErrors,
  compareTasks,
  compareValues,
  differing,
  equalTitle,
  failedSteps,
  keyOf,
  sealedNote,
} from './compare'

const task = (pointer: string, status = 'completed', attempts: number | undefined = 0, steps = 1, firstFailed = 0) =>
  create(TaskTotalsSchema, {
    pointer,
    task: pointer.split('/').at(-1) ?? '',
    statuses: { [status]: BigInt(steps) },
    total: { seconds: 2n },
    firstFailed: BigInt(firstFailed),
    ...(attempts === undefined ? {} : { attempts: BigInt(attempts) }),
  })

const rows = (...args: Parameters<typeof compareTasks>) =>
  compareTasks(...args).map((r) =>
    `${'  '.repeat(r.depth)}${r.task} ${r.a?.steps ?? '-'}/${r.b?.steps ?? '-'} ${r.differs.join(',')}`.trimEnd(),
  )

describe('two runs side by side', () => {
  it('are equal when the same tasks ended the same way', () => {
    const tasks = [task('/do/0/read'), task('/do/1/for'), task('/do/1/for/do/0/price')]
    expect(rows(tasks, tasks, true)).toEqual(['read 1/1', 'for 1/1', '  price 1/1'])
  })

  it('differ by status, attempts, number of steps and presence', () => {
    const a = [task('/do/0/read'), task('/do/1/reserve', 'failed', 5)]
    const b = [task('/do/0/read', 'completed', 2), task('/do/1/reserve'), task('/do/2/ship')]
    expect(rows(a, b, true)).toEqual(['read 1/1 attempts', 'reserve 1/1 status,attempts', 'ship -/1 presence'])
    expect(rows([task('/do/0/x')], [task('/do/0/x', 'completed', 0, 2)], true)).toEqual(['x 1/2 steps'])
  })

  it('do not differ by attempts that are not known', () => {
    expect(
      rows([task('/do/0/x', 'completed', 3)], [{ ...task('/do/0/x'), attempts: undefined } as never], true),
    ).toEqual(['x 1/1'])
  })

  it('keep the order of the first, with what the second has in between', () => {
    expect(rows([task('/do/0/a'), task('/do/2/c')], [task('/do/0/a'), task('/do/1/b'), task('/do/2/c')], true)).toEqual(
      ['a 1/1', 'b -/1 presence', 'c 1/1'],
    )
    expect(rows([], [task('/do/0/a'), task('/do/1/b')], true)).toEqual(['a -/1 presence', 'b -/1 presence'])
  })

  it('find tasks of another version by their names', () => {
    expect(keyOf('/do/3/pay/try/0/charge', false)).toBe('/do/pay/try/charge')
    expect(rows([task('/do/0/read')], [task('/do/0/check'), task('/do/1/read')], false)).toEqual([
      'check -/1 presence',
      'read 1/1',
    ])
  })

  it('lead to the first failed step of a task', () => {
    const [row] = compareTasks([task('/do/0/x', 'failed', 0, 3, 2)], [], true)
    expect(row?.a?.failed).toBe(2n)
    expect(row?.a?.duration).toBe(2000)
  })
})

describe('two payloads', () => {
  it('are compared entry by entry, and sealed values may differ', () => {
    const found = compareValues(
      '{"card":"⟦redacted⟧","n":1,"list":["⟦redacted⟧"]}',
      '{"card":"⟦redacted⟧","n":2,"list":["⟦redacted⟧"]}',
    )
    expect(printPatch(found.operations)).toBe('[{"op":"replace","path":"/n","value":2}]')
    expect(found.sealed).toEqual(['/card', '/list/0'])
  })

  it('may be missing', () => {
    expect(compareValues(undefined, undefined).operations).toEqual([])
    expect(compareValues('null', undefined).operations.map((o) => o.op)).toEqual(['remove'])
    expect(compareValues(undefined, '1').operations.map((o) => o.op)).toEqual(['add'])
  })
})

it('compares errors part by part', () => {
  const a = create(RunSchema, { error: { title: 'x', status: 503 } })
  const b = create(RunSchema, { error: { title: 'x', status: 500 } })
  expect(
    compareErrors(a, b)
      .filter((p) => p.differs)
      .map((p) => `${p.name} ${p.a} ${p.b}`),
  ).toEqual(['Status 503 500'])
})

describe('what the comparison says', () => {
  const found = (...sealed: string[]) => ({ operations: [], sealed })

  it('is which values are sealed in both runs', () => {
    expect(sealedNote(found())).toBeUndefined()
    expect(sealedNote(found('/card'))).toEqual({
      text: 'One value is sealed in both runs and may differ',
      pointers: ['/card'],
    })
    expect(sealedNote(found('', '/pin'))).toEqual({
      text: '2 values are sealed in both runs and may differ',
      pointers: ['the whole value', '/pin'],
    })
  })

  it('names at most twenty of them', () => {
    const many = (n: number) => sealedNote(found(...Array.from({ length: n }, (_, i) => `/${i}`)))?.pointers
    expect(many(20)).toHaveLength(20)
    expect(many(21)?.slice(-2)).toEqual(['/19', '…'])
  })

  it('is that values are equal, as far as they are shown', () => {
    expect(equalTitle('output', undefined, found())).toBe('Neither run has an output.')
    expect(equalTitle('input', '1', found())).toBe('The inputs are equal.')
    expect(equalTitle('input', '1', found('/card'))).toBe('The inputs are equal where they are shown.')
  })

  it('counts what differs, and the failed steps of each run', () => {
    const tasks = compareTasks(
      [task('/do/0/a', 'failed', 1, 3), task('/do/1/b')],
      [task('/do/0/a', 'failed', 1, 2), task('/do/1/b'), task('/do/2/c', 'failed')],
      true,
    )
    expect(differing(tasks).map(({ key }) => key)).toEqual(['/do/0/a', '/do/2/c'])
    expect([failedSteps(tasks, 'a'), failedSteps(tasks, 'b')]).toEqual([3, 3])
  })
})

describe('the run to compare with', () => {
  const run = create(RunSchema, { id: 'r', replayOf: 'o' })
  const runs = (...ids: string[]) => ids.map((id) => ({ id }))

  it('is the one that it replays, or else the newest other one that completed', () => {
    expect(comparable(run, { id: 'o' }, runs('r', 'o', 'x', 'y'))).toEqual({ offered: { id: 'o' }, other: { id: 'x' } })
    expect(comparable(run, undefined, runs('r', 'x', 'y'))).toEqual({ offered: { id: 'x' }, other: undefined })
  })

  it('may be none', () => {
    expect(comparable(run, undefined, runs('r'))).toEqual({ offered: undefined, other: undefined })
    expect(comparable(run, { id: 'o' }, runs('o'))).toEqual({ offered: { id: 'o' }, other: undefined })
  })
})

describe('the durations of a task', () => {
  it('are added up, and unknown where no step has ended', () => {
    const two = [task('/do/0/x'), task('/do/1/x')]
    expect(compareTasks(two, [], false)[0]?.a).toMatchObject({ steps: 2, duration: 4000 })
    const open = { ...task('/do/0/x'), total: undefined }
    expect(compareTasks([open as never], [], true)[0]?.a?.duration).toBeUndefined()
  })
})
