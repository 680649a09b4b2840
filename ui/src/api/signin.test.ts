import { Code, ConnectError } from '@connectrpc/connect'
import { beforeEach, describe, expect, it } from 'vitest'
import { requireSignIn, signInNeeded } from './signin'

describe('the sign-in over a page', () => {
  beforeEach(() => {
    requireSignIn(undefined)
  })

  it('is needed once a call is refused because there is no session', () => {
    expect(signInNeeded.get()).toBe(false)
    requireSignIn(new ConnectError('', Code.Unauthenticated))
    expect(signInNeeded.get()).toBe(true)
  })

  it.each([Code.PermissionDenied, Code.Unavailable, Code.Unknown])('is not needed because of code %d', (code) => {
    requireSignIn(new ConnectError('', code))
    expect(signInNeeded.get()).toBe(false)
  })

  it('stays needed whatever else fails, until a person signs in', () => {
    requireSignIn(new ConnectError('', Code.Unauthenticated))
    requireSignIn(new ConnectError('', Code.NotFound))
    expect(signInNeeded.get()).toBe(true)
    requireSignIn(undefined)
    expect(signInNeeded.get()).toBe(false)
  })
})
