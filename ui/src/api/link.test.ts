import { Code, ConnectError } from '@connectrpc/connect'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { ErrorInfoSchema } from '../gen/google/rpc/error_details_pb'

const lost = () => new ConnectError('', Code.Unavailable)
const refusal = (code: Code) =>
  new ConnectError('no', code, undefined, [{ desc: ErrorInfoSchema, value: { reason: 'RUN_ENDED' } }])

describe('the link to the server', () => {
  let link: typeof import('./link')
  let changes: number

  const browser = (onLine: boolean) => {
    vi.stubGlobal('navigator', { onLine })
  }

  beforeEach(async () => {
    vi.useFakeTimers({ now: 0, toFake: ['performance'] })
    browser(true)
    vi.resetModules()
    link = await import('./link')
    changes = 0
    link.link.subscribe(() => {
      changes++
    })
  })

  afterEach(() => {
    vi.useRealTimers()
  })

  it('is live at first, and an answer over it draws nothing again', () => {
    link.reportAnswer(undefined)
    expect(link.link.get().state).toBe('live')
    expect(changes).toBe(0)
  })

  it('breaks where no server answers, with the time of the last answer', () => {
    vi.advanceTimersByTime(100)
    link.reportAnswer(undefined)
    vi.advanceTimersByTime(50)
    link.reportAnswer(lost())
    expect(link.link.get()).toEqual({ state: 'reconnecting', since: 150, lastAnswer: 100 })
  })

  it('knows no last answer before the first', () => {
    link.reportAnswer(new TypeError('Failed to fetch'))
    expect(link.link.get()).toEqual({ state: 'reconnecting', since: 0, lastAnswer: undefined })
  })

  it('has been broken since the first lost answer', () => {
    vi.advanceTimersByTime(10)
    link.reportAnswer(lost())
    vi.advanceTimersByTime(10)
    link.reportAnswer(lost())
    browser(false)
    link.reportAnswer(lost())
    expect(link.link.get()).toMatchObject({ state: 'offline', since: 10 })
    expect(changes).toBe(2)
  })

  it('is live again with the next answer, from then on', () => {
    link.reportAnswer(lost())
    vi.advanceTimersByTime(30)
    link.reportAnswer(undefined)
    expect(link.link.get()).toEqual({ state: 'live', since: 30, lastAnswer: undefined })
  })

  it.each([Code.PermissionDenied, Code.NotFound, Code.Internal, Code.DeadlineExceeded])(
    'is not broken by a server that refuses with code %d',
    (code) => {
      link.reportAnswer(new ConnectError('no', code))
      expect(link.link.get().state).toBe('live')
    },
  )

  it('is not broken by a server that explains why it is unavailable', () => {
    link.reportAnswer(refusal(Code.Unavailable))
    expect(link.link.get().state).toBe('live')
    link.reportAnswer(new ConnectError('', Code.Unavailable, new Headers({ date: 'now' })))
    expect(link.link.get().state).toBe('live')
  })

  it('is restored by a refusal, too: a server answered', () => {
    link.reportAnswer(lost())
    link.reportAnswer(refusal(Code.NotFound))
    expect(link.link.get().state).toBe('live')
  })
})
