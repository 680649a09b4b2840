import { describe, expect, it } from 'vitest'
import { isPlain } from './keys'

const plain = { ctrlKey: false, metaKey: false, altKey: false }

describe('a key of a page', () => {
  it('is pressed alone: with another one it is of the browser', () => {
    expect(isPlain(plain)).toBe(true)
    expect(isPlain({ ...plain, ctrlKey: true })).toBe(false)
    expect(isPlain({ ...plain, metaKey: true })).toBe(false)
    expect(isPlain({ ...plain, altKey: true })).toBe(false)
  })
})
