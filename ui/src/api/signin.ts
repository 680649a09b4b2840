import { Code, ConnectError } from '@connectrpc/connect'
import { useSyncExternalStore } from 'react'

/** Whether the server refuses this browser because it has no valid session: sign-in is then shown over the page, which stays as it is. */
let needed = false
const listeners = new Set<() => void>()

/** requireSignIn is called with the error of each call, and with undefined after a sign-in. */
export function requireSignIn(error: unknown): void {
  const next = error !== undefined && ConnectError.from(error).code === Code.Unauthenticated
  if (error !== undefined && !next) return
  if (needed === next) return
  needed = next
  for (const listener of listeners) listener()
}

const subscribe = (listener: () => void) => {
  listeners.add(listener)
  return () => {
    listeners.delete(listener)
  }
}

/** useSignInNeeded reports whether sign-in must be shown. */
export const useSignInNeeded = (): boolean => useSyncExternalStore(subscribe, () => needed)
