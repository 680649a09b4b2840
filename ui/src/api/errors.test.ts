import { Code, ConnectError } from '@connectrpc/connect'
import { describe, expect, it } from 'vitest'
import { BadRequestSchema, ErrorInfoSchema, RetryInfoSchema } from '../gen/google/rpc/error_details_pb'
import { callError, isRepeatable, ofField } from './errors'

const answered = (code: Code, message = 'the run has ended') =>
  new ConnectError(message, code, undefined, [{ desc: ErrorInfoSchema, value: { reason: 'RUN_ENDED' } }])

describe('the error of a call', () => {
  it('has the sentence, reason and details of the server', () => {
    const error = new ConnectError('2 fields are invalid', Code.InvalidArgument, undefined, [
      { desc: ErrorInfoSchema, value: { reason: 'INVALID_ARGUMENT', metadata: { run: 'r1' } } },
      {
        desc: BadRequestSchema,
        value: {
          fieldViolations: [
            { field: 'input/a', description: 'must be a number' },
            { field: 'labels', description: 'too many' },
          ],
        },
      },
      { desc: RetryInfoSchema, value: { retryDelay: { seconds: 2n, nanos: 500_000_000 } } },
    ])
    expect(callError(error)).toEqual({
      message: '2 fields are invalid',
      reason: 'INVALID_ARGUMENT',
      code: 'INVALID_ARGUMENT',
      metadata: { run: 'r1' },
      fields: [
        { path: 'input/a', message: 'must be a number' },
        { path: 'labels', message: 'too many' },
      ],
      retryAfter: 2.5,
      unreached: false,
      kind: 'invalid',
    })
  })

  it.each([
    [Code.PermissionDenied, 'denied', 'PERMISSION_DENIED'],
    [Code.NotFound, 'missing', 'NOT_FOUND'],
    [Code.Unauthenticated, 'signed-out', 'UNAUTHENTICATED'],
    [Code.Unavailable, 'unavailable', 'UNAVAILABLE'],
    [Code.DeadlineExceeded, 'unavailable', 'DEADLINE_EXCEEDED'],
    [Code.InvalidArgument, 'invalid', 'INVALID_ARGUMENT'],
    [Code.FailedPrecondition, 'refused', 'FAILED_PRECONDITION'],
    [Code.Aborted, 'refused', 'ABORTED'],
    [Code.ResourceExhausted, 'refused', 'RESOURCE_EXHAUSTED'],
    [Code.Internal, 'other', 'INTERNAL'],
  ])('of code %d is of the kind %s', (code, kind, name) => {
    expect(callError(answered(code))).toMatchObject({ kind, code: name, reason: 'RUN_ENDED', unreached: false })
  })

  it('says that no server answered where there is no word of one', () => {
    for (const error of [new TypeError('Failed to fetch'), new ConnectError('', Code.Unavailable)]) {
      expect(callError(error)).toMatchObject({
        message: 'The server did not answer. Check the connection and try again.',
        reason: '',
        unreached: true,
        kind: 'unavailable',
        retryAfter: undefined,
      })
    }
    expect(callError(answered(Code.Unavailable, 'Temporal is down'))).toMatchObject({
      message: 'Temporal is down',
      unreached: false,
      kind: 'unavailable',
    })
  })

  it('of a denial without details is a denial all the same', () => {
    expect(callError(new ConnectError('no', Code.PermissionDenied))).toMatchObject({ kind: 'denied', message: 'no' })
  })
})

describe('ofField', () => {
  it.each([
    ['input', 'input', true],
    ['input/a/b', 'input', true],
    ['input.a', 'input', true],
    ['input[0]', 'input', true],
    ['inputs', 'input', false],
    ['in', 'input', false],
    ['labels/input', 'input', false],
  ])('of %s in %s is %s', (path, field, expected) => {
    expect(ofField(path, field)).toBe(expected)
  })
})

describe('a query that failed', () => {
  it('is repeated four times where no server answered', () => {
    const lost = new ConnectError('', Code.Unavailable)
    expect([0, 1, 2, 3, 4].map((failures) => isRepeatable(failures, lost))).toEqual([true, true, true, true, false])
    expect(isRepeatable(0, new TypeError('Failed to fetch'))).toBe(true)
  })

  it.each([Code.NotFound, Code.PermissionDenied, Code.InvalidArgument, Code.Internal])(
    'is not repeated after the answer %d',
    (code) => {
      expect(isRepeatable(0, answered(code))).toBe(false)
    },
  )
})
