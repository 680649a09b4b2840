import { expect, it } from 'vitest'
import { command } from './command'

it('prints a command that a shell reads as it was meant', () => {
  expect(command(['run', 'start', 'shop/order'], { project: 'shop', input: `{"a": "it's $HOME"}`, version: '', wait: true, all: false })).toBe(
    `signalbox run start shop/order --project shop --input '{"a": "it'\\''s $HOME"}' --wait`,
  )
  expect(command(['run', 'show', ''])).toBe("signalbox run show ''")
})
