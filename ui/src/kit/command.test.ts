import { describe, expect, it } from 'vitest'
import { command, curl } from './command'

it('prints a command that a shell reads as it was meant', () => {
  expect(command(['run', 'start', 'shop/order'], { project: 'shop', input: `{"a": "it's $HOME"}`, version: '', wait: true, all: false })).toBe(
    `signalbox run start shop/order --project shop --input '{"a": "it'\\''s $HOME"}' --wait`,
  )
  expect(command(['run', 'list'], { label: ['order=1', "name=it's"], status: [] })).toBe(`signalbox run list --label order=1 --label 'name=it'\\''s'`)
  expect(command(['run', 'show', ''])).toBe("signalbox run show ''")
})

describe('a call by curl', () => {
  it('quotes what the shell would change, and leaves the token to a variable', () => {
    expect(curl('https://box.example', 'POST', '/v1/projects/shop/runs/1:cancel', '{"reason":"it\'s late"}')).toBe(
      `curl -X POST https://box.example/v1/projects/shop/runs/1:cancel -H "Authorization: Bearer $SIGNALBOX_TOKEN" -H 'Content-Type: application/json' -d '{"reason":"it'\\''s late"}'`,
    )
    expect(curl('https://box.example', 'GET', '/v1/projects/shop/runs?a=b')).toBe(`curl 'https://box.example/v1/projects/shop/runs?a=b' -H "Authorization: Bearer $SIGNALBOX_TOKEN"`)
  })
})
