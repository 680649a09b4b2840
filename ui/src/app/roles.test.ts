import { describe, expect, it } from 'vitest'
import { has, refusalOf } from './roles'

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

describe('what a caller may', () => {
  it.each([
    ['viewer', { viewer: true, operator: false, publisher: false, admin: false }],
    ['operator', { viewer: true, operator: true, publisher: false, admin: false }],
    ['publisher', { viewer: true, operator: false, publisher: true, admin: false }],
    ['admin', { viewer: true, operator: true, publisher: true, admin: true }],
    ['auditor', { viewer: false, operator: false, publisher: false, admin: false }],
  ])('as %s', (role, expected) => {
    const may = (wanted: keyof typeof expected) => has({ shop: role }, wanted, 'shop')
    expect({
      viewer: may('viewer'),
      operator: may('operator'),
      publisher: may('publisher'),
      admin: may('admin'),
    }).toEqual(expected)
  })

  it('is refused with the role that it lacks, and where', () => {
    expect(refusalOf({ shop: 'viewer' }, 'operator', 'shop')).toBe('Needs operator in shop')
    expect(refusalOf({ shop: 'admin' }, 'admin', '*')).toBe('Needs admin in all projects')
    expect(refusalOf({}, 'viewer', 'shop')).toBe('Needs viewer in shop')
  })

  it('is not refused where it has the role, or where its roles are not known', () => {
    expect(refusalOf({ '*': 'operator' }, 'operator', 'shop')).toBeUndefined()
    expect(refusalOf(undefined, 'admin', '*')).toBeUndefined()
  })

  it('may come from both roles of a caller, in the project and in all', () => {
    const roles = { '*': 'viewer', shop: 'publisher' }
    expect(has(roles, 'publisher', 'shop')).toBe(true)
    expect(has(roles, 'publisher', 'other')).toBe(false)
    expect(has(roles, 'viewer', 'other')).toBe(true)
  })
})
