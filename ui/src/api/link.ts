import { Code, ConnectError } from '@connectrpc/connect'
import { createStore, useStore } from './store'

/** The state of the link between the browser and the server. */
export interface Link {
  state: 'live' | 'reconnecting' | 'offline'
  /** Time (of performance.now) at which the state began. */
  since: number
  /** Time (of performance.now) of the last answer before the link broke; undefined while it is live, or if there was none. */
  lastAnswer: number | undefined
}

export const link = createStore<Link>({ state: 'live', since: performance.now(), lastAnswer: undefined })
/** Kept apart, so that an answer over a live link draws nothing again. */
let lastAnswer: number | undefined

/** lost reports whether the error means that no server answered. */
function lost(error: unknown): boolean {
  if (!(error instanceof ConnectError)) return true
  // A server that answers sends details or metadata; a browser that got no answer reports Unknown or Unavailable without any.
  return (
    (error.code === Code.Unknown || error.code === Code.Unavailable) &&
    error.details.length === 0 &&
    [...error.metadata.keys()].length === 0
  )
}

/** reportAnswer notes that the server answered, or with an error, that it may not have. */
export function reportAnswer(error: unknown): void {
  const time = performance.now()
  const before = link.get()
  if (error === undefined || !lost(error)) {
    lastAnswer = time
    if (before.state !== 'live') link.set({ state: 'live', since: time, lastAnswer: undefined })
    return
  }
  const state = navigator.onLine ? 'reconnecting' : 'offline'
  if (before.state !== state) link.set({ state, since: before.state === 'live' ? time : before.since, lastAnswer })
}

/** useLink returns the state of the link and renders again when it changes. */
export const useLink = (): Link => useStore(link)
