import { create } from '@bufbuild/protobuf'
import { describe, expect, it } from 'vitest'
import { type Run, RunSchema } from '../gen/signalbox/v1/run_pb'
import { append, inOrder, merge, missing, mostRows, noRows, showArrived } from './rows'

const newest = inOrder('newest', 0)
const oldest = inOrder('oldest', 0)

/** A run that was created `second` seconds after the epoch. */
const run = (second: number, sequence = 1, status = 'running'): Run =>
  create(RunSchema, {
    id: `run-${String(second).padStart(6, '0')}`,
    createTime: { seconds: BigInt(second), nanos: 0 },
    sequence: BigInt(sequence),
    status,
  })

const seconds = (runs: Run[]) => runs.map((r) => Number(r.createTime?.seconds))
const matches = (r: Run) => ({ run: r, matches: true })
const leaves = (r: Run) => ({ run: r, matches: false })
const page = append(noRows, [run(5), run(4), run(3)], 'more')

describe('inOrder', () => {
  it('sorts by time, then nanoseconds, then ID', () => {
    const early = create(RunSchema, { id: 'a', createTime: { seconds: 1n, nanos: 1 } })
    const twin = create(RunSchema, { id: 'b', createTime: { seconds: 1n, nanos: 1 } })
    const late = create(RunSchema, { id: '0', createTime: { seconds: 1n, nanos: 2 } })
    expect([early, late, twin].sort(newest).map((r) => r.id)).toEqual(['0', 'b', 'a'])
    expect([early, late, twin].sort(oldest).map((r) => r.id)).toEqual(['a', 'b', '0'])
  })
})

describe('the order by length', () => {
  it('takes the age of open runs at the time of the list', () => {
    const lasting = (id: string, start: number, end?: number) =>
      create(RunSchema, {
        id,
        createTime: { seconds: 0n },
        startTime: { seconds: BigInt(start) },
        ...(end === undefined ? {} : { endTime: { seconds: BigInt(end) } }),
      })
    const runs = [
      lasting('short', 0, 5),
      lasting('open', 10),
      lasting('long', 1, 100),
      lasting('younger', 30),
      create(RunSchema, { id: 'queued', createTime: { seconds: 0n } }),
    ]
    expect(runs.sort(inOrder('longest', 50_000)).map((r) => r.id)).toEqual([
      'long',
      'open',
      'younger',
      'short',
      'queued',
    ])
  })
})

describe('merge', () => {
  it('changes rows where they are', () => {
    const after = merge(page, [matches(run(4, 2, 'failed'))], [], newest)
    expect(seconds(after.shown)).toEqual([5, 4, 3])
    expect(after.shown[1]?.status).toBe('failed')
  })

  it('keeps the newer state whatever the order of arrival', () => {
    const after = merge(merge(page, [matches(run(4, 3, 'failed'))], [], newest), [leaves(run(4, 2))], [], newest)
    expect(after.shown[1]?.status).toBe('failed')
    expect(after.faded.size).toBe(0)
    expect(merge(page, [matches(run(4, 3, 'failed')), matches(run(4, 2))], [], newest).shown[1]?.status).toBe('failed')
  })

  it('lets new runs wait, however many times they change', () => {
    let rows = merge(page, [matches(run(7)), matches(run(6))], [], newest)
    rows = merge(rows, [matches(run(7, 2)), leaves(run(6, 2))], [], newest)
    expect(seconds(rows.shown)).toEqual([5, 4, 3])
    expect(seconds(rows.arrived)).toEqual([7])
    expect(seconds(showArrived(rows, newest).shown)).toEqual([7, 5, 4, 3])
  })

  it('fades runs that no longer match, until they match again', () => {
    const left = merge(page, [leaves(run(4, 2, 'completed'))], [], newest)
    expect([...left.faded]).toEqual([run(4).id])
    expect(seconds(left.shown)).toEqual([5, 4, 3])
    expect(merge(left, [matches(run(4, 3))], [], newest).faded.size).toBe(0)
  })

  it('fades deleted runs and forgets those that were not shown', () => {
    const rows = merge(merge(page, [matches(run(6))], [], newest), [], [run(5).id, run(6).id, run(1).id], newest)
    expect([...rows.faded]).toEqual([run(5).id])
    expect(rows.arrived).toEqual([])
  })

  it('ignores runs of pages that were not read', () => {
    expect(merge(page, [matches(run(2))], [], newest).arrived).toEqual([])
    expect(seconds(merge({ ...page, next: '' }, [matches(run(2))], [], newest).arrived)).toEqual([2])
    expect(seconds(merge(page, [matches(run(2))], [], oldest).arrived)).toEqual([2])
  })
})

describe('append', () => {
  it('takes each run once, also one that has arrived meanwhile', () => {
    const rows = append(merge({ ...page, next: '' }, [matches(run(2))], [], newest), [run(3), run(2), run(1)], '')
    expect(seconds(rows.shown)).toEqual([5, 4, 3, 2, 1])
    expect(rows.arrived).toEqual([])
  })
})

describe('missing', () => {
  it('names the shown runs that a page no longer has, within the bounds of the page', () => {
    const rows = append(page, [run(2), run(1)], 'end')
    expect(seconds(missing(rows, [run(5), run(3)], undefined, 'more', newest))).toEqual([4])
    expect(seconds(missing(rows, [run(1)], run(3), 'end', newest))).toEqual([2])
    expect(seconds(missing(rows, [], run(3), '', newest))).toEqual([2, 1])
    expect(missing({ ...rows, faded: new Set([run(4).id]) }, [run(5), run(3)], undefined, 'more', newest)).toEqual([])
  })
})

describe('the number of rows', () => {
  const many = (first: number, count: number) => Array.from({ length: count }, (_, i) => run(first - i))

  it('is bounded, and the end of the list says so', () => {
    const rows = append(noRows, many(10_000, mostRows), 'more')
    const after = showArrived(merge(rows, [matches(run(10_001))], [], newest), newest)
    expect(after.shown.length).toBe(mostRows)
    expect(after).toMatchObject({ cut: true, next: '' })
    expect(merge(after, [matches(run(8001))], [], newest).arrived).toEqual([])
  })

  it('is bounded for arrived runs, too', () => {
    const rows = merge(page, many(50_000, mostRows + 1).map(matches), [], newest)
    expect(rows.arrived.length).toBe(mostRows)
    expect(rows.overflow).toBe(true)
  })
})
