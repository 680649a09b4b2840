import { Code, ConnectError } from '@connectrpc/connect'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { followStream, retryDelay, type Stream } from './stream'

describe('a broken stream', () => {
  it('is opened again after 1, 2, 4, 8, 15 seconds, a quarter more or less', () => {
    expect([1, 2, 3, 4, 5, 9].map((n) => retryDelay(n, 0.5))).toEqual([1000, 2000, 4000, 8000, 15000, 15000])
    expect(retryDelay(1, 0)).toBe(750)
    expect(retryDelay(1, 1)).toBe(1250)
  })
})

describe('a stream', () => {
  /** The names of the locks that other tabs hold. */
  let taken: Set<string>
  let end: AbortController
  let opened: number
  let breaks: number
  let received: string[]

  const page = document as unknown as EventTarget & { hidden: boolean }
  const show = (hidden: boolean) => {
    page.hidden = hidden
    page.dispatchEvent(new Event('visibilitychange'))
  }

  beforeEach(() => {
    vi.useFakeTimers()
    vi.spyOn(Math, 'random').mockReturnValue(0.5)
    taken = new Set()
    end = new AbortController()
    opened = breaks = 0
    received = []
    const request = async (name: string, options: unknown, work: (lock: unknown) => unknown) =>
      work(taken.has(name) && (options as { ifAvailable?: boolean }).ifAvailable === true ? null : {})
    vi.stubGlobal('navigator', { onLine: true, locks: { request } })
  })

  afterEach(() => {
    end.abort()
    page.hidden = false
    vi.restoreAllMocks()
    vi.useRealTimers()
  })

  /** follow reads what `open` yields, with the number of the opening from 1; it reports whether it is still at it. */
  const follow = (
    open: (n: number, signal: AbortSignal) => AsyncIterable<string>,
    more: Partial<Stream<string>> = {},
  ) => {
    const state = { done: false }
    void followStream<string>(
      {
        open: (signal) => open(++opened, signal),
        onMessage: (message) => {
          received.push(message)
          return message === 'last'
        },
        onBreak: () => {
          breaks++
        },
        poll: false,
        ...more,
      },
      end.signal,
    ).then(() => {
      state.done = true
    })
    return state
  }

  /** silent yields some messages and then none until the signal. */
  async function* silent(signal: AbortSignal, ...messages: string[]) {
    yield* messages
    await new Promise((resolve) => {
      signal.addEventListener('abort', resolve)
    })
    throw new ConnectError('aborted', Code.Canceled)
  }

  it('ends with the message that ends it', async () => {
    const state = follow(async function* () {
      yield* ['a', 'last', 'more']
    })
    await vi.advanceTimersByTimeAsync(0)
    expect(received).toEqual(['a', 'last'])
    expect(state.done).toBe(true)
    expect([opened, breaks]).toEqual([1, 1])
  })

  it('is opened again a second after it broke, and later each time that it fails at once', async () => {
    follow(async function* (n) {
      if (n === 1) yield 'a'
      throw new ConnectError('', Code.Unavailable)
    })
    await vi.advanceTimersByTimeAsync(999)
    expect(opened).toBe(1)
    await vi.advanceTimersByTimeAsync(1)
    expect(opened).toBe(2)
    await vi.advanceTimersByTimeAsync(2000)
    expect(opened).toBe(3)
    await vi.advanceTimersByTimeAsync(3999)
    expect(opened).toBe(3)
    await vi.advanceTimersByTimeAsync(1)
    expect([opened, breaks]).toEqual([4, 4])
  })

  it('is opened at once when the browser is online again', async () => {
    follow(async function* () {
      throw new ConnectError('', Code.Unavailable)
    })
    await vi.advanceTimersByTimeAsync(1000)
    expect(opened).toBe(2)
    window.dispatchEvent(new Event('online'))
    await vi.advanceTimersByTimeAsync(0)
    expect(opened).toBe(3)
  })

  it.each([Code.PermissionDenied, Code.NotFound, Code.Unauthenticated])(
    'ends when code %d refuses it',
    async (code) => {
      const state = follow(async function* () {
        throw new ConnectError('no', code)
      })
      await vi.advanceTimersByTimeAsync(60_000)
      expect(state.done).toBe(true)
      expect(opened).toBe(1)
    },
  )

  it('is opened again after 20 seconds without a message', async () => {
    follow((_, signal) => silent(signal, 'a'))
    await vi.advanceTimersByTimeAsync(19_999)
    expect([opened, breaks]).toEqual([1, 0])
    await vi.advanceTimersByTimeAsync(1001)
    expect([opened, breaks]).toEqual([2, 1])
  })

  it('ends with the signal', async () => {
    const state = follow((_, signal) => silent(signal))
    await vi.advanceTimersByTimeAsync(0)
    end.abort()
    await vi.advanceTimersByTimeAsync(15_000)
    expect(state.done).toBe(true)
    expect([opened, breaks]).toEqual([1, 1])
  })

  it('ends while its page is hidden for more than 30 seconds, and is opened when it is shown', async () => {
    follow(async function* (_, signal) {
      while (!signal.aborted) {
        yield 'a'
        await new Promise((resolve) => {
          setTimeout(resolve, 10_000)
          signal.addEventListener('abort', resolve)
        })
      }
    })
    show(true)
    await vi.advanceTimersByTimeAsync(29_999)
    expect([opened, breaks]).toEqual([1, 0])
    await vi.advanceTimersByTimeAsync(1)
    expect([opened, breaks]).toEqual([1, 1])
    await vi.advanceTimersByTimeAsync(60_000)
    expect(opened).toBe(1)
    show(false)
    await vi.advanceTimersByTimeAsync(0)
    expect(opened).toBe(2)
  })

  it('is not opened by a fifth tab, which polls if it may', async () => {
    taken = new Set([0, 1, 2, 3].map((i) => `signalbox-stream-${i}`))
    follow(async function* () {
      yield 'a'
    })
    await vi.advanceTimersByTimeAsync(30_000)
    expect(opened).toBe(0)
    follow((_, signal) => silent(signal, 'a', 'b'), { poll: true })
    await vi.advanceTimersByTimeAsync(0)
    expect(received).toEqual(['a'])
    await vi.advanceTimersByTimeAsync(5000)
    expect(received).toEqual(['a', 'a'])
  })

  it('takes the place of a tab that is gone', async () => {
    taken = new Set([0, 1, 2, 3].map((i) => `signalbox-stream-${i}`))
    follow((_, signal) => silent(signal, 'a'))
    await vi.advanceTimersByTimeAsync(1000)
    taken.delete('signalbox-stream-2')
    await vi.advanceTimersByTimeAsync(4000)
    expect(received).toEqual(['a'])
  })

  it('is polled where the browser has no locks, and ends there, too', async () => {
    vi.stubGlobal('navigator', { onLine: true })
    const state = follow(
      async function* (n) {
        yield n === 2 ? 'last' : 'a'
      },
      { poll: true },
    )
    await vi.advanceTimersByTimeAsync(5000)
    expect(received).toEqual(['a', 'last'])
    expect(state.done).toBe(true)
  })

  it('is not opened by a tab whose page went away while it waited for its turn', async () => {
    const request = async (_name: string, _options: unknown, work: (lock: unknown) => unknown) => {
      end.abort()
      return work({})
    }
    vi.stubGlobal('navigator', { onLine: true, locks: { request } })
    const state = follow((_, signal) => silent(signal, 'a'))
    await vi.advanceTimersByTimeAsync(0)
    expect([opened, state.done]).toEqual([0, true])
  })

  it('ends at once with a signal that comes while it waits for the next try', async () => {
    const state = follow(async function* () {
      throw new ConnectError('', Code.Unavailable)
    })
    await vi.advanceTimersByTimeAsync(500)
    expect(state.done).toBe(false)
    end.abort()
    await vi.advanceTimersByTimeAsync(0)
    expect(state.done).toBe(true)
  })

  it('ends at once with a signal that comes while it is read', async () => {
    const state = follow((_, signal) => silent(signal, 'a'))
    await vi.advanceTimersByTimeAsync(0)
    end.abort()
    await vi.advanceTimersByTimeAsync(0)
    expect([state.done, opened, breaks]).toEqual([true, 1, 1])
  })

  it('waits a second after it broke, however often it failed before', async () => {
    follow(async function* (n) {
      if (n === 4) yield 'a'
      throw new ConnectError('', Code.Unavailable)
    })
    await vi.advanceTimersByTimeAsync(7000)
    expect(opened).toBe(4)
    await vi.advanceTimersByTimeAsync(1000)
    expect(opened).toBe(5)
    await vi.advanceTimersByTimeAsync(1999)
    expect(opened).toBe(5)
    await vi.advanceTimersByTimeAsync(1)
    expect(opened).toBe(6)
  })

  it('is not opened by a page that is hidden from the beginning, until it is shown', async () => {
    page.hidden = true
    follow((_, signal) => silent(signal, 'a'))
    await vi.advanceTimersByTimeAsync(60_000)
    expect(opened).toBe(0)
    show(false)
    await vi.advanceTimersByTimeAsync(0)
    expect(opened).toBe(1)
  })

  it('goes on where its page was hidden for a moment', async () => {
    follow(async function* (_, signal) {
      while (!signal.aborted) {
        yield 'a'
        await new Promise((resolve) => {
          setTimeout(resolve, 10_000)
          signal.addEventListener('abort', resolve)
        })
      }
    })
    await vi.advanceTimersByTimeAsync(0)
    show(true)
    await vi.advanceTimersByTimeAsync(29_000)
    show(false)
    await vi.advanceTimersByTimeAsync(60_000)
    expect([opened, breaks]).toEqual([1, 0])
  })
})
