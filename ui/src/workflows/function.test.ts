import { describe, expect, it } from 'vitest'
import { callersOf } from './function'

describe('the callers of a function', () => {
  it('are workflows, first those whose latest version calls it', () => {
    expect(
      callersOf([
        { workflow: 'shop/old', version: '1.0.0', latest: false },
        { workflow: 'shop/order', version: '2.0.0', latest: true },
        { workflow: 'shop/order', version: '1.0.0', latest: false },
        { workflow: 'shop/refund', version: '1.0.0', latest: true },
      ]),
    ).toEqual([
      { workflow: 'shop/order', versions: ['2.0.0', '1.0.0'], latest: true },
      { workflow: 'shop/refund', versions: ['1.0.0'], latest: true },
      { workflow: 'shop/old', versions: ['1.0.0'], latest: false },
    ])
  })

  it('are none where nothing calls it', () => {
    expect(callersOf([])).toEqual([])
  })
})
