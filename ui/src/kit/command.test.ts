import { describe, expect, it } from 'vitest'
import { readJson } from '../api/json'
import { command, curl, restCall } from './command'

it('prints a command that a shell reads as it was meant', () => {
  expect(
    command(['run', 'start', 'shop/order'], {
      project: 'shop',
      input: `{"a": "it's $HOME"}`,
      version: '',
      wait: true,
      all: false,
    }),
  ).toBe(`signalbox run start shop/order --project shop --input '{"a": "it'\\''s $HOME"}' --wait`)
  expect(command(['run', 'list'], { label: ['order=1', "name=it's"], status: [] })).toBe(
    `signalbox run list --label order=1 --label 'name=it'\\''s'`,
  )
  expect(command(['run', 'show', ''])).toBe("signalbox run show ''")
})

describe('a call by curl', () => {
  it('quotes what the shell would change, and leaves the token to a variable', () => {
    expect(
      curl('https://box.example', {
        method: 'POST',
        path: '/v1/projects/shop/runs/1:cancel',
        body: '{"reason":"it\'s late"}',
      }),
    ).toBe(
      `curl -X POST https://box.example/v1/projects/shop/runs/1:cancel -H "Authorization: Bearer $SIGNALBOX_TOKEN" -H 'Content-Type: application/json' -d '{"reason":"it'\\''s late"}'`,
    )
    expect(curl('https://box.example', { method: 'GET', path: '/v1/projects/shop/runs?a=b' })).toBe(
      `curl 'https://box.example/v1/projects/shop/runs?a=b' -H "Authorization: Bearer $SIGNALBOX_TOKEN"`,
    )
  })
})

describe('a call of the REST API', () => {
  it('has in its path what the template names, and the rest in its body', () => {
    expect(
      restCall('POST', '/v1/projects/{project}/workflows/{workflow}:pause', {
        project: 'a b',
        workflow: 'shop/order',
        reason: '',
      }),
    ).toEqual({ method: 'POST', path: '/v1/projects/a%20b/workflows/shop/order:pause', body: '{"reason":""}' })
  })

  it('keeps digits, writes 64-bit numbers as strings, and leaves out what is undefined', () => {
    expect(
      restCall('PATCH', '/v1/x', {
        big: 9007199254740993n,
        given: readJson('{"n": 1.10}'),
        list: [1, 'a', null],
        none: undefined,
      }).body,
    ).toBe('{"big":"9007199254740993","given":{"n":1.10},"list":[1,"a",null]}')
  })

  it('of a method without a body has the rest in its query', () => {
    expect(restCall('DELETE', '/v1/views/{id}', { id: '1', revision: 2n })).toEqual({
      method: 'DELETE',
      path: '/v1/views/1?revision=2',
    })
    expect(restCall('DELETE', '/v1/views/{id}', { id: '1' })).toEqual({ method: 'DELETE', path: '/v1/views/1' })
  })
})
