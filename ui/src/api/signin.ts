import { Code, ConnectError } from '@connectrpc/connect'
import { createStore, useStore } from './store'

/** Whether the server refuses this browser because it has no valid session: sign-in is then shown over the page, which stays as it is. */
export const signInNeeded = createStore(false)

/** requireSignIn is called with the error of each call, and with undefined after a sign-in. */
export function requireSignIn(error: unknown): void {
  if (error === undefined) signInNeeded.set(false)
  else if (ConnectError.from(error).code === Code.Unauthenticated) signInNeeded.set(true)
}

/** useSignInNeeded reports whether sign-in must be shown. */
export const useSignInNeeded = (): boolean => useStore(signInNeeded)
