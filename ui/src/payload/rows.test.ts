import { describe, expect, it } from 'vitest'
import { readJson } from '../api/json'
import { copyOf, countLines, lines, search } from './rows'

const show = (json: string, toggled: string[] = [], reveal = '') =>
  lines(readJson(json), new Set(toggled), reveal).map(
    (l) => `${'  '.repeat(l.depth)}${l.name}${l.size === undefined ? '' : ` (${l.size})`}`,
  )

describe('the lines of a payload', () => {
  it('are open in a small value', () => {
    expect(show('{"a":{"b":[1,2]},"c/d":"x"}')).toEqual([' (2)', '  a (1)', '    b (2)', '      0', '      1', '  c/d'])
  })

  it('close where a person closed them', () => {
    expect(show('{"a":{"b":1},"c":2}', ['/a'])).toEqual([' (2)', '  a (1)', '  c'])
  })

  it('have the first level alone in a large value, and what is revealed', () => {
    const large = `{"rows":[${Array.from({ length: 500 }, (_, i) => `{"n":${i}}`).join(',')}],"last":1}`
    expect(show(large)).toEqual([' (2)', '  rows (500)', '  last'])
    expect(show(large, [], '/rows/7/n')).toHaveLength(504)
    expect(countLines(readJson(large))).toBeGreaterThan(400)
  })

  it('are found by name and value, by their pointer', () => {
    expect(search(readJson('{"order":{"id":"A-7"},"list":["a-7",12.50],"a/b":"a-7"}'), 'A-7')).toEqual([
      '/order/id',
      '/list/0',
      '/a~1b',
    ])
    expect(search(readJson('{"order":{"n":12.50}}'), '12.50')).toEqual(['/order/n'])
    expect(search(readJson('{"order":1}'), '')).toEqual([])
  })

  it('are copied as text, or as JSON with every digit', () => {
    expect(copyOf(readJson('"a \\"b\\""'))).toBe('a "b"')
    expect(copyOf(readJson('12345678901234567890.10'))).toBe('12345678901234567890.10')
  })
})
