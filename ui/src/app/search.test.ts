import { describe, expect, it } from 'vitest'
import { all, changed, listed, many, one, parseSearch, stringifySearch } from './search'

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

describe('a change of the query string', () => {
  const before = { status: ['failed', 'running'], q: 'x', view: 'v' }

  it('sets names and keeps the others', () => {
    expect(changed(before, { q: 'y', step: '3' })).toEqual({ ...before, q: 'y', step: '3' })
    expect(before.q).toBe('x')
  })

  it('removes a name with an empty or absent value, so that the URL does not have it', () => {
    expect(Object.keys(changed(before, { q: '', view: undefined }))).toEqual(['status'])
    expect(stringifySearch(changed(before, { q: '', status: '' }))).toBe('?view=v')
  })

  it('replaces a list', () => {
    expect(changed(before, { status: 'failed' }).status).toBe('failed')
  })
})

describe('a value of the query string', () => {
  it('is a list of one in a request, and empty for all', () => {
    expect(listed('failed')).toEqual(['failed'])
    expect(listed('')).toEqual([])
  })

  it('is one of a name that is repeated, the first', () => {
    expect(one({ q: ['a', 'b'] }, 'q')).toBe('a')
    expect(one({ q: [] }, 'q')).toBe('')
  })

  it('may have commas where a name is repeated for more', () => {
    expect(all(parseSearch('?label=a:1,2'), 'label')).toEqual(['a:1,2'])
    expect(all(parseSearch('?label=a&label=&label=b'), 'label')).toEqual(['a', 'b'])
    expect(all({}, 'label')).toEqual([])
    expect(many(parseSearch('?status=a,,b'), 'status')).toEqual(['a', 'b'])
  })

  it('keeps its characters on the way there and back', () => {
    for (const value of ['a&b=c', '100 %', 'a+b', 'ü/:,', '#?', '"[]"'])
      expect(one(parseSearch(stringifySearch({ q: value })), 'q'), value).toBe(value)
  })

  it('is repeated more than twice', () => {
    expect(parseSearch('?a=1&a=2&a=3')).toEqual({ a: ['1', '2', '3'] })
  })
})
