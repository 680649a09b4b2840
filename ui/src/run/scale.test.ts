import { create } from '@bufbuild/protobuf'
import { describe, expect, it } from 'vitest'
import { StepSchema } from '../gen/signalbox/v1/run_pb'
import { barsOf, pieces, position, spansBelow, spansOf, tickOrigin, ticks } from './scale'
import { buildTree, flatten } from './tree'

const at = (ms: number) => ({ seconds: BigInt(Math.floor(ms / 1000)), nanos: (ms % 1000) * 1e6 })
const show = (spans: { from: number; to: number; kind: string }[]) => spans.map((s) => `${s.kind} ${s.from}-${s.to}`)

describe('the time of a step', () => {
  it('executes in its attempts and waits between them', () => {
    const step = create(StepSchema, {
      kind: 'call',
      startTime: at(1000),
      endTime: at(9000),
      attempts: [
        { startTime: at(1200), endTime: at(2000) },
        { startTime: at(5000), endTime: at(9000) },
      ],
    })
    expect(show(spansOf(step, 0))).toEqual([
      'waiting 1000-1200',
      'executing 1200-2000',
      'waiting 2000-5000',
      'executing 5000-9000',
    ])
  })

  it('goes on until now while the step is open', () => {
    const step = create(StepSchema, {
      kind: 'call',
      status: 'running',
      startTime: at(1000),
      attempts: [{ startTime: at(1000) }],
    })
    expect(show(spansOf(step, 4000))).toEqual(['executing 1000-4000'])
  })

  it('is waiting for timers and events, and around others for loops', () => {
    expect(show(spansOf(create(StepSchema, { kind: 'wait', startTime: at(0), endTime: at(5000) }), 0))).toEqual([
      'waiting 0-5000',
    ])
    expect(show(spansOf(create(StepSchema, { kind: 'for', startTime: at(0), endTime: at(5000) }), 0))).toEqual([
      'around 0-5000',
    ])
    expect(spansOf(create(StepSchema, { kind: 'set' }), 0)).toEqual([])
  })
})

describe('the axis of time', () => {
  const minute = 60_000
  const spans = [
    { from: 0, to: 1000, kind: 'executing' as const },
    { from: 1000, to: 10 * minute, kind: 'waiting' as const },
    { from: 10 * minute, to: 10 * minute + 1000, kind: 'executing' as const },
  ]
  const axis = pieces(spans, 0, 10 * minute + 1000)

  it('folds a long idle stretch, and covers the whole width', () => {
    expect(axis.map((p) => p.folded)).toEqual([false, true, false])
    expect(axis[0]?.left).toBe(0)
    expect(axis.at(-1)?.right).toBeCloseTo(1)
    expect(axis[1]?.left).toBeCloseTo(0.475)
  })

  it('keeps short idle stretches and busy ones', () => {
    expect(pieces([{ from: 0, to: 10 * minute, kind: 'executing' }], 0, 10 * minute)).toHaveLength(1)
    expect(pieces([{ from: 0, to: 1000, kind: 'waiting' }], 0, 4000)).toHaveLength(1)
  })

  it('gives positions in order', () => {
    const times = [0, 500, 1000, 5 * minute, 10 * minute, 10 * minute + 500]
    const places = times.map((t) => position(axis, t))
    expect([...places].sort((a, b) => a - b)).toEqual(places)
    expect(position(axis, -5)).toBe(0)
    expect(position(axis, 99 * minute)).toBe(1)
  })

  it('exists for a run that has waited all the time', () => {
    expect(pieces([{ from: 0, to: 10 * minute, kind: 'waiting' }], 0, 10 * minute).at(-1)?.right).toBeCloseTo(1)
    expect(pieces([], 5, 5)).toHaveLength(1)
  })
})

describe('attempts outside of the recorded time of their step', () => {
  it.each([
    ['after it', [{ startTime: at(1010), endTime: at(1050) }], ['waiting 1000-1010', 'executing 1010-1050']],
    ['before it', [{ startTime: at(990), endTime: at(998) }], ['executing 990-998', 'waiting 998-1002']],
    ['around it', [{ startTime: at(990), endTime: at(1050) }], ['executing 990-1050']],
  ])('execute: %s', (_, attempts, expected) => {
    expect(
      show(spansOf(create(StepSchema, { kind: 'call', startTime: at(1000), endTime: at(1002), attempts }), 0)),
    ).toEqual(expected)
  })
})

describe('the ticks of the axis', () => {
  const marks = (from: number, to: number, origin: number, count = 6) =>
    ticks(pieces([{ from, to, kind: 'executing' }], from, to), origin, count).map((tick) => tick.time - origin)

  it('are at round numbers', () => {
    expect(marks(5003, 5003 + 3210, 5003)).toEqual([0, 1000, 2000, 3000])
    expect(marks(7, 7 + 42, 7)).toEqual([0, 10, 20, 30, 40])
    expect(marks(90_500, 690_500, 0)).toEqual([120_000, 240_000, 360_000, 480_000, 600_000])
    expect(marks(1, 3 * 86_400_000, 0)).toEqual([
      43_200_000, 86_400_000, 129_600_000, 172_800_000, 216_000_000, 259_200_000,
    ])
  })

  it('are apart, and not in a folded stretch', () => {
    const minute = 60_000
    const axis = pieces(
      [
        { from: 0, to: 1000, kind: 'executing' },
        { from: 10 * minute, to: 10 * minute + 1000, kind: 'executing' },
      ],
      0,
      10 * minute + 1000,
    )
    const found = ticks(axis, 0, 6)
    expect(found.every(({ share }, i) => i === 0 || share - (found[i - 1]?.share ?? 0) >= 0.1)).toBe(true)
    expect(found.filter(({ time }) => time > 1000 && time < 10 * minute)).toEqual([])
  })
})

describe('the spans of a tree', () => {
  const step = (number: number, path: string, kind: string, from: number, to: number, status = 'completed') =>
    create(StepSchema, { number: BigInt(number), path, kind, status, startTime: at(from), endTime: at(to) })
  const steps = [
    step(1, '/do/0/pay', 'try', 0, 9000),
    step(2, '/do/0/pay/try/0/charge', 'call', 1000, 4000, 'failed'),
    step(3, '/do/0/pay/retry/2/try/0/charge', 'call', 5000, 8000),
    step(4, '/do/1/wait', 'wait', 9000, 20_000),
  ]
  const root = buildTree(steps)

  it('are around others where a task contains some that are listed', () => {
    expect(show(spansBelow(root, 0))).toEqual([
      'around 0-9000',
      'executing 1000-4000',
      'executing 5000-8000',
      'waiting 9000-20000',
    ])
    expect(show(spansBelow(buildTree(steps.slice(0, 1)), 0))).toEqual(['executing 0-9000'])
  })

  const axis = pieces([{ from: 0, to: 20_000, kind: 'executing' }], 0, 20_000)
  const rows = flatten(root, { toggled: new Set(['/do/0/pay']), unfolded: new Set(), matches: undefined, reveal: '' })
  const bars = (key: string, tree = rows) => {
    const row = tree.find((r) => r.key === key)
    if (row?.kind !== 'node') throw new Error(`no row ${key}`)
    return barsOf(row, axis, 0).map(
      ({ step: of, span, around, left, width }) =>
        `${of.number} ${span.kind}${around ? ' around' : ''} ${left.toFixed(2)}+${width.toFixed(2)}`,
    )
  }

  it('are bars on the axis', () => {
    expect(bars('/do/1/wait')).toEqual(['4 waiting 0.45+0.55'])
  })

  it('only frame what a row contains', () => {
    expect(bars('/do/0/pay')).toEqual(['1 executing around 0.00+0.45'])
  })

  it('of a group are those of its steps', () => {
    const loop = [
      step(1, '/do/0/each', 'for', 0, 9000),
      step(2, '/do/0/each/for/0/do/0/a', 'call', 0, 2000),
      step(3, '/do/0/each/for/0/do/1/b', 'call', 2000, 4000),
    ]
    const open = flatten(buildTree(loop), {
      toggled: new Set(),
      unfolded: new Set(),
      matches: undefined,
      reveal: '',
    })
    expect(bars('/do/0/each/for/0', open)).toEqual(['2 executing around 0.00+0.10', '3 executing around 0.10+0.10'])
  })
})

describe('the origin of the ticks', () => {
  it('is the start of a short run, else midnight in the zone', () => {
    const from = new Date(2026, 5, 1, 12).getTime()
    expect(tickOrigin(from, true, 'local')).toBe(from)
    expect(tickOrigin(from, false, 'utc')).toBe(0)
    const midnight = new Date(2026, 5, 1).getTime()
    expect((midnight - tickOrigin(from, false, 'local')) % 86_400_000).toBe(0)
  })
})
