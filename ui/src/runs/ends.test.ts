import { Code, ConnectError } from '@connectrpc/connect'
import { describe, expect, it } from 'vitest'
import { ErrorInfoSchema } from '../gen/google/rpc/error_details_pb'
import { isDenied, isOfFilter, listEnd } from './ends'
import { noFilter } from './filter'
import { mostRows } from './rows'

const refused = (code: Code) =>
  new ConnectError('no', code, undefined, [{ desc: ErrorInfoSchema, value: { reason: 'R' } }])
const ofWorkflow = { ...noFilter, workflow: 'shop/order' }

describe('a list that cannot be read', () => {
  it.each([
    [undefined, noFilter, false],
    [refused(Code.PermissionDenied), noFilter, true],
    [refused(Code.PermissionDenied), ofWorkflow, true],
    [refused(Code.NotFound), noFilter, true],
    [refused(Code.NotFound), ofWorkflow, false],
    [refused(Code.InvalidArgument), noFilter, false],
    [refused(Code.Unavailable), noFilter, false],
  ])('%s is of the project or not (%#)', (error, filter, expected) => {
    expect(isDenied(error, filter)).toBe(expected)
  })

  it.each([
    [refused(Code.InvalidArgument), ofWorkflow, true],
    [refused(Code.InvalidArgument), noFilter, false],
    [refused(Code.InvalidArgument), { ...noFilter, order: 'oldest' as const }, false],
    [refused(Code.NotFound), ofWorkflow, true],
    [refused(Code.NotFound), { ...noFilter, text: 'a' }, false],
    [refused(Code.Unavailable), ofWorkflow, false],
  ])('%s is of the filter or not (%#)', (error, filter, expected) => {
    expect(isOfFilter(error, filter)).toBe(expected)
  })
})

describe('the end of the rows', () => {
  const last = Date.UTC(2026, 0, 31, 12, 0, 0, 5)

  it.each([
    [7, false, 'all'],
    [0, false, 'all'],
    [50, true, 'more'],
    [mostRows - 1, true, 'more'],
    [mostRows, false, 'all'],
  ])('of %d rows, with more %s, is %s', (count, more, kind) => {
    expect(listEnd(count, more, false, last, 'newest')).toEqual({ kind })
  })

  it('continues the newest before the last row, a millisecond later, so that it stays in sight', () => {
    expect(listEnd(mostRows, true, false, last, 'newest')).toEqual({
      kind: 'continued',
      change: { until: '2026-01-31T12:00:00.006Z' },
    })
  })

  it('continues the oldest from the last row, whatever the last time was', () => {
    expect(listEnd(mostRows, false, true, last, 'oldest')).toEqual({
      kind: 'continued',
      change: { since: '2026-01-31T12:00:00.005Z' },
    })
  })

  it('has no continuation by length, nor after a row without a time', () => {
    expect(listEnd(mostRows, true, false, last, 'longest')).toEqual({ kind: 'longest' })
    expect(listEnd(50, true, false, last, 'longest')).toEqual({ kind: 'more' })
    expect(listEnd(mostRows, true, false, undefined, 'newest')).toEqual({ kind: 'more' })
    expect(listEnd(mostRows, false, true, undefined, 'newest')).toEqual({ kind: 'all' })
  })
})
