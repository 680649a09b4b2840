import { create } from '@bufbuild/protobuf'
import { describe, expect, it } from 'vitest'
import { StepSchema } from '../gen/signalbox/v1/run_pb'
import { pieces, position, spansOf, timeAt } from './scale'

const at = (ms: number) => ({ seconds: BigInt(Math.floor(ms / 1000)), nanos: (ms % 1000) * 1e6 })
const show = (spans: { from: number; to: number; kind: string }[]) => spans.map((s) => `${s.kind} ${s.from}-${s.to}`)

describe('the time of a step', () => {
  it('executes in its attempts and waits between them', () => {
    const step = create(StepSchema, { kind: 'call', startTime: at(1000), endTime: at(9000), attempts: [{ startTime: at(1200), endTime: at(2000) }, { startTime: at(5000), endTime: at(9000) }] })
    expect(show(spansOf(step, 0))).toEqual(['waiting 1000-1200', 'executing 1200-2000', 'waiting 2000-5000', 'executing 5000-9000'])
  })

  it('goes on until now while the step is open', () => {
    const step = create(StepSchema, { kind: 'call', status: 'running', startTime: at(1000), attempts: [{ startTime: at(1000) }] })
    expect(show(spansOf(step, 4000))).toEqual(['executing 1000-4000'])
  })

  it('is waiting for timers and events, and around others for loops', () => {
    expect(show(spansOf(create(StepSchema, { kind: 'wait', startTime: at(0), endTime: at(5000) }), 0))).toEqual(['waiting 0-5000'])
    expect(show(spansOf(create(StepSchema, { kind: 'for', startTime: at(0), endTime: at(5000) }), 0))).toEqual(['around 0-5000'])
    expect(spansOf(create(StepSchema, { kind: 'set' }), 0)).toEqual([])
  })
})

describe('the axis of time', () => {
  const minute = 60_000
  const spans = [{ from: 0, to: 1000, kind: 'executing' as const }, { from: 1000, to: 10 * minute, kind: 'waiting' as const }, { from: 10 * minute, to: 10 * minute + 1000, kind: 'executing' as const }]
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

  it('gives positions in order, and times back', () => {
    const times = [0, 500, 1000, 5 * minute, 10 * minute, 10 * minute + 500]
    const places = times.map((t) => position(axis, t))
    expect([...places].sort((a, b) => a - b)).toEqual(places)
    expect(timeAt(axis, position(axis, 500))).toBeCloseTo(500)
    expect(timeAt(axis, position(axis, 5 * minute))).toBeUndefined()
    expect(position(axis, -5)).toBe(0)
    expect(position(axis, 99 * minute)).toBe(1)
  })

  it('exists for a run that has waited all the time', () => {
    expect(pieces([{ from: 0, to: 10 * minute, kind: 'waiting' }], 0, 10 * minute).at(-1)?.right).toBeCloseTo(1)
    expect(pieces([], 5, 5)).toHaveLength(1)
  })
})
