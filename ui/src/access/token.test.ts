import { create, type MessageInitShape } from '@bufbuild/protobuf'
import { describe, expect, it } from 'vitest'
import { timestamp } from '../api'
import { TokenSchema } from '../gen/signalbox/v1/token_pb'
import { createRefusal, formRefusal, roles, state, tokenCommands, tokenRequest } from './token'

const word = (token: MessageInitShape<typeof TokenSchema>) => state(create(TokenSchema, token), Date.now()).word
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

describe('a token that expires', () => {
  it('can be used up to the moment before', () => {
    const token = create(TokenSchema, { expireTime: timestamp(5000) })
    expect(state(token, 4999)).toEqual({ word: 'Valid', tone: 'green' })
    expect(state(token, 5000)).toEqual({ word: 'Expired', tone: 'amber' })
  })
})

describe('the creation of a token', () => {
  const form = { name: ' deploy ', roles: [{ project: 'shop', role: 'publisher' }], days: '30' }
  const now = Date.UTC(2026, 0, 1)

  it('needs an administrator of any project', () => {
    expect(createRefusal({ shop: 'admin', a: 'viewer' })).toBeUndefined()
    expect(createRefusal({ shop: 'publisher' })).toBe('Needs admin in a project')
    expect(createRefusal({})).toBe('Needs admin in a project')
    expect(createRefusal(undefined)).toBeUndefined()
  })

  it('needs a name, and each project once', () => {
    expect(formRefusal(form)).toBeUndefined()
    expect(formRefusal({ ...form, name: '  ' })).toBe('Name the program or person that uses it.')
    const twice = [...form.roles, { project: 'shop', role: 'viewer' }]
    expect(formRefusal({ ...form, roles: twice })).toBe('A project is named twice.')
    expect(formRefusal({ ...form, roles: [...form.roles, { project: '*', role: 'viewer' }] })).toBeUndefined()
  })

  it('requests what was typed, with the time at which it expires', () => {
    expect(tokenRequest(form, now)).toEqual({
      name: 'deploy',
      roles: { shop: 'publisher' },
      expireTime: timestamp(Date.UTC(2026, 0, 31)),
    })
    expect(tokenRequest({ ...form, days: '' }, now)).toEqual({ name: 'deploy', roles: { shop: 'publisher' } })
  })

  it('is the same by the CLI and by REST', () => {
    const { cli, rest } = tokenCommands({ ...form, roles: [...form.roles, { project: '*', role: 'viewer' }] }, now)
    expect(cli).toBe("signalbox token create --role shop=publisher --role '*=viewer' --name deploy --expires 30d")
    expect(rest.body).toBe(
      '{"name":"deploy","roles":{"shop":"publisher","*":"viewer"},"expireTime":"2026-01-31T00:00:00.000Z"}',
    )
  })

  it('may be without an end', () => {
    const { cli, rest } = tokenCommands({ ...form, days: '' }, now)
    expect(cli).not.toContain('--expires')
    expect(rest.body).not.toContain('expireTime')
  })
})
