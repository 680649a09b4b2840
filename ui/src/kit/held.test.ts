import { describe, expect, it } from 'vitest'
import { inPlace } from './held'

const rows = (text: string) =>
  text
    .split(' ')
    .filter(Boolean)
    .map((word) => ({ id: word.charAt(0), text: word }))
const shown = (before: string, next: string) => {
  const result = inPlace(rows(before), rows(next), (row) => row.id)
  return {
    rows: result.rows.map((row) => row.text).join(' '),
    left: [...result.left].join(' '),
    waiting: result.waiting,
  }
}

describe('the rows of a list that a person is at work with', () => {
  it.each([
    ['a b c', 'a b c', 'a b c', '', 0],
    ['a b c', 'a b2 c', 'a b2 c', '', 0],
    ['a b c', 'c a b', 'a b c', '', 0],
    ['a b c', 'a c', 'a b c', 'b', 0],
    ['a b c', 'n a b c', 'a b c', '', 1],
    ['a b c', 'n a m c d e', 'a b c d e', 'b', 2],
    ['a b', 'c d', 'a b c d', 'a b', 0],
    ['', 'a', 'a', '', 0],
  ])('%j stay in their place when the list is %j', (before, next, expected, left, waiting) => {
    expect(shown(before, next)).toEqual({ rows: expected, left, waiting })
  })
})
