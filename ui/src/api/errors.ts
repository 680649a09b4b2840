import { Code, ConnectError } from '@connectrpc/connect'
import { BadRequestSchema, ErrorInfoSchema, RetryInfoSchema } from '../gen/google/rpc/error_details_pb'

/** An error of a call, in the words of the server. */
export interface CallError {
  /** One sentence for a person. */
  message: string
  /** The reason, as in the reference of errors, such as RUN_ENDED; empty if the server gave none. */
  reason: string
  code: string
  metadata: Record<string, string>
  /** Problems of single fields of the request, by path. */
  fields: { path: string; message: string }[]
  /** Seconds after which the server suggests to repeat the call. */
  retryAfter: number | undefined
  /** The server was not reached, so it is not known whether the call took effect. */
  unreached: boolean
  kind: 'denied' | 'missing' | 'signed-out' | 'unavailable' | 'invalid' | 'refused' | 'other'
}

const kinds: Partial<Record<Code, CallError['kind']>> = {
  [Code.PermissionDenied]: 'denied',
  [Code.NotFound]: 'missing',
  [Code.Unauthenticated]: 'signed-out',
  [Code.Unavailable]: 'unavailable',
  [Code.DeadlineExceeded]: 'unavailable',
  [Code.InvalidArgument]: 'invalid',
  [Code.FailedPrecondition]: 'refused',
  [Code.Aborted]: 'refused',
  [Code.ResourceExhausted]: 'refused',
}

/** ofField reports whether the path of a problem is that of a field, or of something in it. */
export const ofField = (path: string, field: string): boolean =>
  path === field || (path.startsWith(field) && /^[./[]/.test(path.slice(field.length)))

const words = (name: string) => name.replace(/([a-z])([A-Z])/g, '$1_$2').toUpperCase()

/** callError reads what an error of a call says. */
export function callError(error: unknown): CallError {
  const e = ConnectError.from(error)
  const info = e.findDetails(ErrorInfoSchema)[0]
  const retry = e.findDetails(RetryInfoSchema)[0]?.retryDelay
  const unreached = info === undefined && (e.code === Code.Unknown || e.code === Code.Unavailable)
  return {
    message: unreached ? 'The server did not answer. Check the connection and try again.' : e.rawMessage,
    reason: info?.reason ?? '',
    code: words(Code[e.code]),
    metadata: info?.metadata ?? {},
    fields: e
      .findDetails(BadRequestSchema)
      .flatMap((bad) => bad.fieldViolations.map((v) => ({ path: v.field, message: v.description }))),
    retryAfter: retry === undefined ? undefined : Number(retry.seconds) + retry.nanos / 1e9,
    unreached,
    kind: unreached ? 'unavailable' : (kinds[e.code] ?? 'other'),
  }
}

/** How often a query is repeated. */
const mostRepeats = 4

/** isRepeatable reports whether a query is repeated after it failed: after a lost answer, never after a refusal, which would be the same. */
export const isRepeatable = (failures: number, error: unknown): boolean =>
  callError(error).kind === 'unavailable' && failures < mostRepeats
