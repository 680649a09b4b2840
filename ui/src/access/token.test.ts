import { create, type MessageInitShape } from '@bufbuild/protobuf'
import { describe, expect, it } from 'vitest'
import { timestamp } from '../api'
import { TokenSchema } from '../gen/signalbox/v1/token_pb'
import { roles, state } from './AccessPage'

const word = (token: MessageInitShape<typeof TokenSchema>) => state(create(TokenSchema, token)).word
const past = timestamp(Date.now() - 1000)
const future = timestamp(Date.now() + 3_600_000)

describe('a token', () => {
  it('is valid until it expires or is revoked', () => {
    expect(word({})).toBe('Valid')
    expect(word({ expireTime: future })).toBe('Valid')
    expect(word({ expireTime: past })).toBe('Expired')
    expect(word({ expireTime: future, revokeTime: past })).toBe('Revoked')
    expect(word({ expireTime: past, revokeTime: past })).toBe('Revoked')
  })

  it('has its roles by project', () => {
    expect(roles({ shop: 'operator', '*': 'viewer', a: 'admin' })).toBe(
      'all projects: viewer, a: admin, shop: operator',
    )
    expect(roles({})).toBe('')
  })
})
