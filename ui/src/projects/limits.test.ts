import { describe, expect, it } from 'vitest'
import { isHigh, nameRefusal, quotaRefusal, stepsRefusal, usedShare } from './limits'

describe('the name of a project', () => {
  it.each(['a', '7', 'shop', 'my-shop-2', 'x'.repeat(63)])('may be %s', (name) => {
    expect(nameRefusal(name)).toBeUndefined()
  })

  it.each(['', '-', '-a', 'a-', 'Shop', 'a_b', 'a b', 'é', 'x'.repeat(64), 'a\n'])('cannot be %j', (name) => {
    expect(nameRefusal(name)).toMatch(/^The name has 1 to 63 characters/)
  })
})

describe('a limit', () => {
  it('of steps is a whole number of at most 18 digits', () => {
    for (const text of ['0', '1000', '9'.repeat(18)]) expect(stepsRefusal(text), text).toBeUndefined()
    for (const text of ['', '-1', '1.5', '1e3', ' 1', '9'.repeat(19)])
      expect(stepsRefusal(text), text).toMatch(/^The limit of steps/)
  })

  it('of a quota is refused where one of them is no whole number', () => {
    expect(quotaRefusal('0', '10', '9'.repeat(15))).toBeUndefined()
    expect(quotaRefusal('0', '', '1')).toMatch(/^Each limit/)
    expect(quotaRefusal('0', '1', '9'.repeat(16))).toMatch(/^Each limit/)
  })
})

describe('the use of a limit', () => {
  it('is a share of it, and never more than all', () => {
    expect(usedShare(0n, 10n)).toBe(0)
    expect(usedShare(5n, 10n)).toBe(0.5)
    expect(usedShare(15n, 10n)).toBe(1)
  })

  it('is none without a limit', () => {
    expect(usedShare(5n, 0n)).toBeUndefined()
  })

  it('is high from nine tenths on', () => {
    expect([0.89, 0.9, 1].map(isHigh)).toEqual([false, true, true])
  })
})
