import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'

let clock: typeof import('./clock')

beforeEach(async () => {
  vi.useFakeTimers({ now: 1_000_000, toFake: ['Date', 'performance', 'setTimeout', 'setInterval'] })
  vi.resetModules()
  clock = await import('./clock')
})

afterEach(() => {
  vi.useRealTimers()
})

const server = Date.UTC(2026, 0, 31, 12)

describe('the clock of the server', () => {
  it('is that of the browser until the server has answered', () => {
    expect(clock.now()).toBe(1_000_000)
  })

  it('goes on from the last answer, whatever the date of the browser is', () => {
    clock.observeServerTime(server, performance.now(), 'exact')
    vi.advanceTimersByTime(2500)
    vi.setSystemTime(0)
    expect(clock.now()).toBe(server + 2500)
  })

  it('takes half of the time of the call for the way back', () => {
    const sent = performance.now()
    vi.advanceTimersByTime(400)
    clock.observeServerTime(server, sent, 'exact')
    expect(clock.now()).toBe(server + 200)
  })

  it('takes the middle of a second from a header', () => {
    clock.observeServerTime(server, performance.now(), 'seconds')
    expect(clock.now()).toBe(server + 500)
  })

  it('is not moved by a header that agrees within a second', () => {
    clock.observeServerTime(server, performance.now(), 'seconds')
    vi.advanceTimersByTime(900)
    clock.observeServerTime(server + 1000, performance.now(), 'seconds')
    expect(clock.now()).toBe(server + 1400)
    clock.observeServerTime(server + 60_000, performance.now(), 'seconds')
    expect(clock.now()).toBe(server + 60_500)
  })

  it('keeps an exact time against headers', () => {
    clock.observeServerTime(server, performance.now(), 'exact')
    clock.observeServerTime(server + 60_000, performance.now(), 'seconds')
    expect(clock.now()).toBe(server)
    clock.observeServerTime(server + 10, performance.now(), 'exact')
    expect(clock.now()).toBe(server + 10)
  })

  it('ignores what is no time', () => {
    clock.observeServerTime(Number.NaN, performance.now(), 'exact')
    expect(clock.now()).toBe(1_000_000)
  })
})
