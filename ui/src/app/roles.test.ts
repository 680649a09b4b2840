import { describe, expect, it } from 'vitest'
import { has } from './roles'

describe('roles', () => {
  it('include viewing, and an administrator all', () => {
    expect(has({ shop: 'operator' }, 'viewer', 'shop')).toBe(true)
    expect(has({ shop: 'operator' }, 'publisher', 'shop')).toBe(false)
    expect(has({ shop: 'admin' }, 'publisher', 'shop')).toBe(true)
    expect(has({ shop: 'admin' }, 'viewer', 'other')).toBe(false)
  })

  it('in all projects hold in each, and one of a project not in all', () => {
    expect(has({ '*': 'viewer' }, 'viewer', 'shop')).toBe(true)
    expect(has({ shop: 'admin' }, 'admin', '*')).toBe(false)
    expect(has({ '*': 'admin' }, 'admin', '*')).toBe(true)
  })
})
