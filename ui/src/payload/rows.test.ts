import { describe, expect, it } from 'vitest'
import { readJson } from '../api/json'
import { copyOf, countLines, lines, search, stepped, textLines, textParts } from './rows'

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

describe('a line of a payload', () => {
  const all = lines(readJson('{"a":[],"b":{},"c":[1],"d":""}'), new Set())
  const of = (pointer: string) => all.find((line) => line.pointer === pointer)

  it('can be opened where it has entries', () => {
    expect(of('/a')).toMatchObject({ size: 0, branch: false, open: false })
    expect(of('/b')).toMatchObject({ size: 0, branch: false })
    expect(of('/c')).toMatchObject({ size: 1, branch: true, open: true })
    expect(of('/d')).toMatchObject({ size: undefined, branch: false })
  })

  it('has the pointer of its value, with names escaped', () => {
    expect(lines(readJson('{"a/b":{"~":1}}'), new Set()).map(({ pointer }) => pointer)).toEqual([
      '',
      '/a~1b',
      '/a~1b/~0',
    ])
  })

  it('that is revealed is not one that only begins alike', () => {
    const large = readJson(`{"ab":[${'0,'.repeat(500)}0],"a":[1]}`)
    expect(lines(large, new Set(), '/a/0').map(({ pointer }) => pointer)).toEqual(['', '/ab', '/a', '/a/0'])
  })
})

describe('the limit of open lines', () => {
  const list = (n: number) => readJson(`{"list":[${Array.from({ length: n }, () => '0').join(',')}]}`)

  it('is 400', () => {
    expect(lines(list(398), new Set())).toHaveLength(400)
    expect(lines(list(399), new Set())).toHaveLength(2)
  })
})

describe('a search', () => {
  it('ends at the most that it shows', () => {
    expect(search(readJson(`[${'"a",'.repeat(50)}"a"]`), 'a', 10)).toHaveLength(10)
  })

  it('finds literals by their words, and no position of a list', () => {
    expect(search(readJson('{"x":null,"y":true,"z":[7,1]}'), 'null')).toEqual(['/x'])
    expect(search(readJson('{"x":null,"y":true}'), 'TRUE')).toEqual(['/y'])
    expect(search(readJson('[7,1,0]'), '1')).toEqual(['/1'])
  })
})

describe('the way through matches', () => {
  it('goes round at both ends', () => {
    expect(stepped(0, 1, 3)).toBe(1)
    expect(stepped(2, 1, 3)).toBe(0)
    expect(stepped(0, -1, 3)).toBe(2)
  })

  it('begins at the last one where there are fewer than before', () => {
    expect(stepped(9, 1, 3)).toBe(0)
    expect(stepped(9, -1, 3)).toBe(1)
    expect(stepped(5, 1, 0)).toBe(0)
  })
})

describe('a text as it is drawn', () => {
  it('has its lines, the empty ones too', () => {
    expect(textLines('a\n\nb')).toEqual(['a', '', 'b'])
    expect(textLines('')).toEqual([''])
  })

  it('has long lines in pieces, whole characters in each', () => {
    expect(textLines('x'.repeat(2000))).toHaveLength(1)
    expect(textLines('x'.repeat(4001)).map((line) => line.length)).toEqual([2000, 2000, 1])
    const emoji = textLines('👍'.repeat(2001))
    expect(emoji.join('')).toBe('👍'.repeat(2001))
    expect(emoji.map((line) => [...line].length)).toEqual([2000, 1])
  })

  it('is what JSON writes, cut where it is long', () => {
    expect(textParts('a "b"\n')).toEqual(['"a \\"b\\"\\n"'])
    expect(textParts('x'.repeat(500))[0]).toHaveLength(502)
    expect(textParts('x'.repeat(501))[0]).toBe(`"${'x'.repeat(500)}…"`)
  })

  it('has a sealed value between two parts', () => {
    expect(textParts('Bearer ⟦redacted⟧, ⟦redacted⟧')).toEqual(['"Bearer ', ', ', '"'])
    expect(textParts('⟦redacted:1⟧')).toHaveLength(1)
  })
})
