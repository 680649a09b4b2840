import { Code, ConnectError } from '@connectrpc/connect'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { ErrorInfoSchema } from '../gen/google/rpc/error_details_pb'
import { type ListRunsRequest, type Run, RunService } from '../gen/signalbox/v1/run_pb'
import { WatchService } from '../gen/signalbox/v1/watch_pb'
import { RunFeed } from './feed'
import { noFilter } from './filter'

/** The server in this process: its runs, newest first, and what it was asked. */
const server = vi.hoisted(() => ({
  runs: [] as { id: string; at: number; sequence: number; status: string }[],
  lists: [] as ListRunsRequest[],
  alone: [] as string[],
  error: undefined as unknown,
}))

vi.mock('../api/transport', async () => {
  const { createRouterTransport } = await import('@connectrpc/connect')
  const message = ({ id, at, sequence, status }: (typeof server.runs)[number]) => ({
    id,
    status,
    sequence: BigInt(sequence),
    createTime: { seconds: BigInt(at) },
  })
  return {
    transport: createRouterTransport(({ service }) => {
      service(RunService, {
        listRuns: (request) => {
          server.lists.push(request)
          if (server.error !== undefined) throw server.error
          const statuses = request.filter?.statuses ?? []
          const matching = server.runs.filter((run) => statuses.length === 0 || statuses.includes(run.status))
          const from = Number(request.pageToken)
          const to = from + request.pageSize
          return {
            runs: matching.slice(from, to).map(message),
            nextPageToken: to < matching.length ? String(to) : '',
          }
        },
        getRun: ({ id }) => {
          server.alone.push(id)
          const run = server.runs.find((one) => one.id === id)
          if (run === undefined) throw new ConnectError('gone', Code.NotFound)
          return { run: { ...message(run), input: { json: '{}' } } }
        },
      })
      service(WatchService, {
        async *watch() {
          throw new ConnectError('no streams here', Code.PermissionDenied)
        },
      })
    }),
  }
})

const add = (at: number, status = 'running') =>
  server.runs.unshift({ id: `run-${String(at).padStart(4, '0')}`, at, sequence: 1, status })
const change = (at: number, status: string) => {
  const run = server.runs.find((one) => one.at === at)
  if (run !== undefined) Object.assign(run, { status, sequence: run.sequence + 1 })
}
const times = (runs: readonly Run[]) => runs.map((run) => Number(run.createTime?.seconds))

let close: () => void = () => undefined

/** open opens the feed of a filter, after its first page. */
const open = async (filter = noFilter) => {
  const feed = new RunFeed('shop', filter)
  close = feed.open()
  await settled()
  return feed
}

/** settled waits for the calls in flight; no timer runs meanwhile. */
const settled = () => vi.advanceTimersByTimeAsync(1)
const later = () => vi.advanceTimersByTimeAsync(5001)

const page = document as unknown as EventTarget & { hidden: boolean }

beforeEach(() => {
  vi.useFakeTimers()
  vi.stubGlobal('navigator', { onLine: true })
  Object.assign(server, { runs: [], lists: [], alone: [], error: undefined })
  for (let at = 1; at <= 3; at++) add(at)
})

afterEach(() => {
  close()
  page.hidden = false
  vi.useRealTimers()
})

describe('the feed of a list', () => {
  it('has the first page, which is requested before the page is drawn', async () => {
    const feed = new RunFeed('shop', noFilter)
    await settled()
    expect(server.lists).toHaveLength(1)
    expect(feed.snapshot()).toMatchObject({ ready: false, shown: [] })
    close = feed.open()
    await settled()
    expect(server.lists).toHaveLength(1)
    expect(feed.snapshot()).toMatchObject({ ready: true, error: undefined, next: '' })
    expect(times(feed.snapshot().shown)).toEqual([3, 2, 1])
  })

  it('notifies its listeners of changes until they leave', async () => {
    const feed = new RunFeed('shop', noFilter)
    let calls = 0
    const leave = feed.subscribe(() => {
      calls++
    })
    close = feed.open()
    await settled()
    expect(calls).toBeGreaterThan(0)
    const before = calls
    leave()
    await feed.reload()
    expect(calls).toBe(before)
  })

  it('asks for the runs of its filter, a page at a time', async () => {
    await open({ ...noFilter, statuses: ['failed'], workflow: 'shop/order', order: 'oldest' })
    expect(server.lists[0]).toMatchObject({
      project: 'shop',
      filter: { statuses: ['failed'], workflow: 'shop/order' },
      order: 'oldest',
      pageSize: 50,
      pageToken: '',
    })
  })

  it('shows new runs after five seconds', async () => {
    const feed = await open()
    add(4)
    await later()
    expect(times(feed.snapshot().shown)).toEqual([4, 3, 2, 1])
    expect(feed.snapshot().arrived).toEqual([])
  })

  it('keeps new runs apart while a person is at work with the rows', async () => {
    const feed = await open()
    feed.hold(true)
    add(4)
    await later()
    expect(times(feed.snapshot().shown)).toEqual([3, 2, 1])
    expect(times(feed.snapshot().arrived)).toEqual([4])
    feed.hold(false)
    expect(times(feed.snapshot().shown)).toEqual([4, 3, 2, 1])
    expect(feed.snapshot().arrived).toEqual([])
  })

  it('shows what arrived at once in an empty list, and when it is asked to', async () => {
    server.runs = []
    const feed = await open()
    feed.hold(true)
    add(1)
    await later()
    expect(times(feed.snapshot().shown)).toEqual([1])
    add(2)
    await later()
    expect(times(feed.snapshot().arrived)).toEqual([2])
    feed.showNew()
    expect(times(feed.snapshot().shown)).toEqual([2, 1])
  })

  it('changes shown runs in place', async () => {
    const feed = await open()
    feed.hold(true)
    change(2, 'completed')
    await later()
    expect(feed.snapshot().shown.map((run) => run.status)).toEqual(['running', 'completed', 'running'])
    expect(feed.snapshot().faded.size).toBe(0)
  })

  it('fades a run that no longer matches, as it is now', async () => {
    const feed = await open({ ...noFilter, statuses: ['running'] })
    change(2, 'failed')
    await later()
    const { shown, faded } = feed.snapshot()
    expect(shown.map((run) => run.status)).toEqual(['running', 'failed', 'running'])
    expect([...faded]).toEqual(['run-0002'])
    expect(server.alone).toEqual(['run-0002'])
    expect(shown[1]?.input).toBeUndefined()
  })

  it('fades a run that is gone as it was', async () => {
    const feed = await open()
    server.runs = server.runs.filter(({ at }) => at !== 2)
    await later()
    const { shown, faded } = feed.snapshot()
    expect(shown.map((run) => run.status)).toEqual(['running', 'running', 'running'])
    expect([...faded]).toEqual(['run-0002'])
  })
})

describe('a paused feed', () => {
  it('changes nothing until it goes on', async () => {
    const feed = await open()
    feed.pause(true)
    add(4)
    await later()
    await later()
    expect(server.lists).toHaveLength(1)
    expect(times(feed.snapshot().shown)).toEqual([3, 2, 1])
    feed.pause(false)
    await settled()
    expect(times(feed.snapshot().shown)).toEqual([4, 3, 2, 1])
  })
})

describe('the next pages', () => {
  beforeEach(() => {
    server.runs = []
    for (let at = 1; at <= 120; at++) add(at)
  })

  it('are read once each, to the end', async () => {
    const feed = await open()
    expect(feed.snapshot().next).not.toBe('')
    feed.loadMore()
    feed.loadMore()
    expect(feed.snapshot().loadingMore).toBe(true)
    await settled()
    expect(server.lists.map(({ pageToken }) => pageToken)).toEqual(['', '50'])
    expect(feed.snapshot().shown).toHaveLength(100)
    feed.loadMore()
    await settled()
    expect(feed.snapshot()).toMatchObject({ next: '', loadingMore: false })
    expect(times(feed.snapshot().shown)).toEqual(Array.from({ length: 120 }, (_, i) => 120 - i))
    feed.loadMore()
    await settled()
    expect(server.lists).toHaveLength(3)
  })

  it('can be asked for again after an error', async () => {
    const feed = await open()
    server.error = new ConnectError('', Code.Unavailable)
    feed.loadMore()
    await settled()
    expect(feed.snapshot()).toMatchObject({ loadingMore: false, next: '50' })
    server.error = undefined
    feed.loadMore()
    await settled()
    expect(feed.snapshot().shown).toHaveLength(100)
  })

  it('are read again only while they are in view', async () => {
    const feed = await open()
    feed.loadMore()
    await settled()
    server.lists = []
    await later()
    expect(server.lists.map(({ pageToken }) => pageToken)).toEqual([''])
    server.lists = []
    feed.setView(60, 80)
    await later()
    expect(server.lists.map(({ pageToken }) => pageToken)).toEqual(['', '50'])
  })

  it('have no run for which the list was read again', async () => {
    const feed = await open()
    feed.loadMore()
    await settled()
    await feed.reload()
    expect(feed.snapshot().shown).toHaveLength(50)
    expect(feed.snapshot().next).toBe('50')
  })
})

describe('a feed without an answer', () => {
  it('has the error and tries again', async () => {
    server.error = new ConnectError('', Code.Unavailable)
    const feed = await open()
    expect(feed.snapshot()).toMatchObject({ ready: false })
    expect(ConnectError.from(feed.snapshot().error).code).toBe(Code.Unavailable)
    server.error = undefined
    await later()
    expect(feed.snapshot()).toMatchObject({ ready: true, error: undefined })
  })

  it('does not repeat what was refused', async () => {
    server.error = new ConnectError('no', Code.PermissionDenied, undefined, [
      { desc: ErrorInfoSchema, value: { reason: 'PERMISSION_DENIED' } },
    ])
    const feed = await open()
    await later()
    await later()
    expect(server.lists).toHaveLength(1)
    expect(feed.snapshot().ready).toBe(false)
  })

  it('keeps the rows that it has', async () => {
    const feed = await open()
    server.error = new ConnectError('', Code.Unavailable)
    await later()
    expect(times(feed.snapshot().shown)).toEqual([3, 2, 1])
    expect(feed.snapshot().error).toBeUndefined()
  })
})

describe('a feed in the background', () => {
  it('reads nothing while the page is hidden, and at once when it is shown', async () => {
    const feed = await open()
    page.hidden = true
    add(4)
    await later()
    expect(server.lists).toHaveLength(1)
    page.hidden = false
    page.dispatchEvent(new Event('visibilitychange'))
    await settled()
    expect(times(feed.snapshot().shown)).toEqual([4, 3, 2, 1])
  })

  it('ends when it is closed, and goes on with its rows when it is opened again', async () => {
    const feed = await open()
    close()
    add(4)
    await later()
    expect(server.lists).toHaveLength(1)
    close = feed.open()
    expect(times(feed.snapshot().shown)).toEqual([3, 2, 1])
    await settled()
    expect(times(feed.snapshot().shown)).toEqual([4, 3, 2, 1])
  })
})

it('a list by length keeps a run that only moved', async () => {
  const feed = await open({ ...noFilter, order: 'longest' })
  server.runs = server.runs.filter(({ at }) => at !== 2)
  await later()
  expect(feed.snapshot().shown).toHaveLength(3)
})
