import { describe, expect, it } from 'vitest'
import {
  givenLabels,
  keyProblem,
  labelList,
  labelParameter,
  labelProblem,
  labelsRefusal,
  nextID,
  readLabel,
  readParameter,
  rowProblems,
  serverProblems,
  valueProblem,
} from './label'

describe('a label', () => {
  it('is a key and everything after the first sign', () => {
    expect(readLabel('order=a=b:c')).toEqual({ key: 'order', value: 'a=b:c' })
    expect(readLabel('order')).toBeUndefined()
    expect(readParameter(labelParameter({ key: 'order', value: ':a=b,c' }))).toEqual({ key: 'order', value: ':a=b,c' })
    expect(readParameter('order=1')).toBeUndefined()
  })

  it.each(['a', 'order.id/eu_1-2', 'x'.repeat(63)])('may have the key %s', (key) => {
    expect(keyProblem(key)).toBe('')
  })

  it.each([
    ['', 'is empty'],
    ['x'.repeat(64), 'has 64 characters, more than 63'],
    ['a b', 'has other characters than letters, digits and . _ - /'],
    ['år', 'has other characters than letters, digits and . _ - /'],
    ['a:b', 'has other characters than letters, digits and . _ - /'],
  ])('cannot have the key %j', (key, problem) => {
    expect(keyProblem(key)).toBe(problem)
  })

  it.each(['4711', 'Åsa Öberg, 5 €', '<script>alert(1)</script>', '注文', '👍🏽', 'é'.repeat(128), ' a '])(
    'may have the value %s',
    (value) => {
      expect(valueProblem(value)).toBe('')
    },
  )

  it.each([
    ['', 'is empty'],
    ['é'.repeat(129), 'has 258 bytes, more than 256'],
    ['a\nb', 'has the character U+000A, which is not printable'],
    ['a\u00a0b', 'has the character U+00A0, which is not printable'],
    ['a\u202eb', 'has the character U+202E, which is not printable'],
    ['a\u{e0001}', 'has the character U+E0001, which is not printable'],
    ['\ud800', 'has the character U+D800, which is not printable'],
  ])('cannot have the value %j', (value, problem) => {
    expect(valueProblem(value)).toBe(problem)
  })

  it('has one problem at a time', () => {
    expect(labelProblem({ key: '', value: '' })).toBe('the key is empty')
    expect(labelProblem({ key: 'a', value: '' })).toBe('the value is empty')
    expect(labelProblem({ key: 'a', value: 'b' })).toBe('')
  })

  it('is listed by key', () => {
    expect(labelList({ b: '2', a: '1' })).toEqual([
      { key: 'a', value: '1' },
      { key: 'b', value: '2' },
    ])
  })
})

describe('rows of labels', () => {
  const row = (id: number, key: string, value: string) => ({ id, key, value })

  it('give their labels without spaces at the ends; an empty row gives none', () => {
    expect(givenLabels([row(1, ' order ', ' 47 11 '), row(2, ' ', '')])).toEqual({ order: '47 11' })
    expect(labelsRefusal([row(1, '', '')])).toBeUndefined()
  })

  it('name their problems', () => {
    expect(rowProblems([row(1, 'a', '1'), row(2, 'a', '2'), row(3, 'b', '\t \u0007'), row(4, 'é', '1')])).toEqual(
      new Map([
        [2, { key: 'The key is in an earlier row' }],
        [3, { value: 'The value has the character U+0007, which is not printable' }],
        [4, { key: 'The key has other characters than letters, digits and . _ - /' }],
      ]),
    )
    expect(labelsRefusal([row(1, 'a', '')])).toBe('Label a: the value is empty')
    expect(labelsRefusal([row(1, '', 'b')])).toBe('A label has no key')
  })

  it('are at most 16 with those that the run has anyway', () => {
    const inherited = Object.fromEntries(Array.from({ length: 16 }, (_, i) => [`k${String(i)}`, 'v']))
    expect(labelsRefusal([row(1, 'k3', 'w')], inherited)).toBeUndefined()
    expect(labelsRefusal([row(1, 'k16', 'w')], inherited)).toBe('17 labels: a run can have at most 16')
  })
})

describe('a new row', () => {
  it('has an ID that no row has, also after some were removed', () => {
    expect(nextID([])).toBe(1)
    expect(
      nextID([
        { id: 4, key: '', value: '' },
        { id: 2, key: '', value: '' },
      ]),
    ).toBe(5)
  })
})

describe('what the server says about labels', () => {
  const said = [
    { path: 'labels', message: 'there are too many' },
    { path: 'labels.order', message: 'is too long' },
    { path: 'labels.a.b', message: 'is not printable' },
    { path: 'labels.computed', message: 'is empty' },
    { path: 'labelsets', message: 'is unknown' },
    { path: 'input', message: 'is required' },
  ]

  it('is at its row, or beside the rows where no row has the key', () => {
    const { at, elsewhere } = serverProblems(said, new Set(['order', 'a.b', 'more']))
    expect(Object.fromEntries(at)).toEqual({ order: 'is too long', 'a.b': 'is not printable' })
    expect(elsewhere).toEqual(['there are too many', 'computed: is empty'])
  })

  it('is nothing where it is about something else', () => {
    expect(serverProblems(said.slice(4), new Set())).toEqual({ at: new Map(), elsewhere: [] })
  })
})
