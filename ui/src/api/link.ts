import { Code, ConnectError } from '@connectrpc/connect'
import { useSyncExternalStore } from 'react'

/** The state of the link between the browser and the server. */
export interface Link {
  state: 'live' | 'reconnecting' | 'offline'
  /** Time (of performance.now) at which the state began. */
  since: number
  /** Time (of performance.now) of the last answer before the link broke; undefined while it is live, or if there was none. */
  lastAnswer: number | undefined
}

let link: Link = { state: 'live', since: performance.now(), lastAnswer: undefined }
/** Kept apart, so that an answer over a live link draws nothing again. */
let lastAnswer: number | undefined
const listeners = new Set<() => void>()

function change(next: Link): void {
  link = next
  for (const listener of listeners) listener()
}

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
  if (error === undefined || !lost(error)) {
    lastAnswer = time
    if (link.state !== 'live') change({ state: 'live', since: time, lastAnswer: undefined })
    return
  }
  const state = navigator.onLine ? 'reconnecting' : 'offline'
  if (link.state !== state) change({ state, since: link.state === 'live' ? time : link.since, lastAnswer })
}

const subscribe = (listener: () => void) => {
  listeners.add(listener)
  return () => {
    listeners.delete(listener)
  }
}

/** useLink returns the state of the link and renders again when it changes. */
export const useLink = (): Link => useSyncExternalStore(subscribe, () => link)
