import { describe, expect, it } from 'vitest'
import { many, one, parseSearch, stringifySearch } from './search'

describe('the query string', () => {
  it('keeps names, lists and characters on the way there and back', () => {
    const search = {
      status: 'failed,timed_out',
      label: ['order:4711', 'a:b,c'],
      q: 'x & y',
      empty: '',
      absent: undefined,
    }
    const text = stringifySearch(search)
    expect(text).toBe('?status=failed,timed_out&label=order:4711&label=a:b,c&q=x+%26+y')
    expect(parseSearch(text)).toEqual({ status: 'failed,timed_out', label: ['order:4711', 'a:b,c'], q: 'x & y' })
  })

  it('reads one value or many', () => {
    const search = parseSearch('?status=a,b&label=x&label=y')
    expect(one(search, 'status')).toBe('a,b')
    expect(many(search, 'status')).toEqual(['a', 'b'])
    expect(many(search, 'label')).toEqual(['x', 'y'])
    expect(one(search, 'absent')).toBe('')
    expect(many(search, 'absent')).toEqual([])
  })
})
