import { describe, expect, it } from 'vitest'
import { allSelected, selectAll, selectRow } from './selection'

const ids = ['a', 'b', 'c', 'd', 'e']

describe('a click on a row', () => {
  const click = (selected: string[], key: string, range = false, anchor?: string) =>
    [...selectRow(new Set(selected), ids, key, range, anchor)].sort()

  it('selects it, and the next one takes it out again', () => {
    expect(click([], 'b')).toEqual(['b'])
    expect(click(['b', 'c'], 'b')).toEqual(['c'])
  })

  it('with a range selects all rows from the row before, in both directions', () => {
    expect(click(['b'], 'd', true, 'b')).toEqual(['b', 'c', 'd'])
    expect(click(['d'], 'b', true, 'd')).toEqual(['b', 'c', 'd'])
    expect(click(['a'], 'a', true, 'a')).toEqual(['a'])
  })

  it('with a range keeps what was selected', () => {
    expect(click(['a', 'c'], 'e', true, 'd')).toEqual(['a', 'c', 'd', 'e'])
  })

  it('with a range but without a row before selects the row alone', () => {
    expect(click([], 'd', true)).toEqual(['d'])
    expect(click(['d'], 'd', true)).toEqual(['d'])
    expect(click([], 'd', true, 'gone')).toEqual(['d'])
    expect(click([], 'gone', true, 'a')).toEqual(['gone'])
  })

  it('does not change the selection before', () => {
    const before = new Set(['a'])
    selectRow(before, ids, 'c', true, 'a')
    selectRow(before, ids, 'a', false, undefined)
    expect([...before]).toEqual(['a'])
  })
})

describe('the selection of all rows', () => {
  it('is complete when every row is selected', () => {
    expect(allSelected(new Set(['a', 'b', 'more']), ['a', 'b'])).toBe(true)
    expect(allSelected(new Set(['a']), ['a', 'b'])).toBe(false)
    expect(allSelected(new Set(['a']), [])).toBe(false)
  })

  it('has the rows of the list alone, and is empty after the next click', () => {
    const all = selectAll(new Set(['gone']), ['a', 'b'])
    expect([...all]).toEqual(['a', 'b'])
    expect([...selectAll(all, ['a', 'b'])]).toEqual([])
    expect([...selectAll(new Set(['a']), ['a', 'b'])]).toEqual(['a', 'b'])
  })
})
