import { describe, expect, it } from 'vitest'
import { isObject, type Json, jsonEqual, printJson, readJson } from './json'
import {
  brief,
  diffJson,
  find,
  hasMark,
  insert,
  isSealed,
  mark,
  markProblems,
  numberMarks,
  type Operation,
  plainMarks,
  printPatch,
  seals,
  splitPointer,
  undo,
} from './patch'

/** apply is RFC 6902 for add, remove and replace, written apart from the code under test. */
function apply(value: Json, operations: Operation[]): Json {
  let document = value
  for (const { op, path, value: given } of operations) {
    const parts = splitPointer(path)
    const last = parts.pop()
    if (last === undefined) {
      document = given ?? null
      continue
    }
    document = readJson(printJson(document))
    const parent = find(document, parts.map((part) => `/${part.replaceAll('~', '~0').replaceAll('/', '~1')}`).join(''))
    if (Array.isArray(parent)) {
      if (Number(last) > parent.length || (op !== 'add' && Number(last) >= parent.length))
        throw new Error(`${op} beyond the list at ${path}`)
      parent.splice(Number(last), op === 'add' ? 0 : 1, ...(op === 'remove' ? [] : [given ?? null]))
    } else if (isObject(parent)) {
      if (op !== 'add' && !parent.has(last)) throw new Error(`${op} of a missing member at ${path}`)
      if (op === 'remove') parent.delete(last)
      else parent.set(last, given ?? null)
    } else throw new Error(`no parent at ${path}`)
  }
  return document
}

const patchOf = (before: string, after: string) => printPatch(diffJson(readJson(before), readJson(after)))

describe('the difference of two values', () => {
  it.each([
    ['{"a":1}', '{"a":1}', '[]'],
    ['{"a":1,"b":2}', '{"b":2,"a":1}', '[]'],
    ['{"items":[{"count":3}]}', '{"items":[{"count":2}]}', '[{"op":"replace","path":"/items/0/count","value":2}]'],
    ['{"a":1}', '{"a":1,"note":"retry"}', '[{"op":"add","path":"/note","value":"retry"}]'],
    ['{"a":1,"b":null}', '{"a":1}', '[{"op":"remove","path":"/b"}]'],
    ['[1,2,3]', '[1,3]', '[{"op":"remove","path":"/1"}]'],
    ['[1,3]', '[1,2,3]', '[{"op":"add","path":"/1","value":2}]'],
    [
      '[1,2,3,4]',
      '[3,4,1,2]',
      '[{"op":"remove","path":"/0"},{"op":"remove","path":"/0"},{"op":"add","path":"/2","value":1},{"op":"add","path":"/3","value":2}]',
    ],
    ['{"a/b~c":1}', '{"a/b~c":2}', '[{"op":"replace","path":"/a~1b~0c","value":2}]'],
    ['1', '{"a":1}', '[{"op":"replace","path":"","value":{"a":1}}]'],
    [
      '{"n":12345678901234567890}',
      '{"n":12345678901234567891}',
      '[{"op":"replace","path":"/n","value":12345678901234567891}]',
    ],
    ['{"a":false}', '{"a":null}', '[{"op":"replace","path":"/a","value":null}]'],
  ])('from %s to %s is %s', (before, after, patch) => {
    expect(patchOf(before, after)).toBe(patch)
  })

  it('gives the second value when it is applied, and undoing every entry from the end gives the first', () => {
    let seed = 7
    const random = (n: number) => {
      seed = (seed * 1103515245 + 12345) % 2147483648
      return seed % n
    }
    const value = (depth: number): Json => {
      const kind = random(depth > 3 ? 2 : 4)
      if (kind === 0) return random(3) === 0 ? null : `s${random(4)}`
      if (kind === 1) return random(2) === 0
      if (kind === 2) return Array.from({ length: random(5) }, () => value(depth + 1))
      return new Map(Array.from({ length: random(4) }, () => [`k${random(4)}`, value(depth + 1)] as const))
    }
    for (let i = 0; i < 2000; i++) {
      const before = value(0)
      const after = value(0)
      const operations = diffJson(before, after)
      expect(
        jsonEqual(apply(before, operations), after),
        `${printJson(before)} to ${printJson(after)}: ${printPatch(operations)}`,
      ).toBe(true)
      const back = operations.toReversed().reduce(undo, after)
      expect(jsonEqual(back, before), `undo ${printPatch(operations)}`).toBe(true)
    }
  })

  it('compares long lists by their ends alone', () => {
    const list = Array.from({ length: 600 }, (_, i) => `item ${i}`)
    const other = ['first', ...list.slice(300), ...list.slice(0, 300)]
    expect(jsonEqual(apply(list, diffJson(list, other)), other)).toBe(true)
  })

  it('takes one entry back and leaves the others', () => {
    const before = readJson('{"items":[1,2,3],"a":1}')
    const after = readJson('{"items":[2,3,4],"a":2,"b":3}')
    const operations = diffJson(before, after)
    const removed = operations.find((o) => o.op === 'remove')
    expect(removed).toBeDefined()
    if (removed !== undefined) expect(printJson(undo(after, removed))).toBe('{"items":[1,2,3,4],"a":2,"b":3}')
  })

  it('inserts at a pointer', () => {
    expect(printJson(insert(readJson('{"a":[1,3]}'), ['a', '1'], readJson('2')))).toBe('{"a":[1,2,3]}')
  })
})

describe('marks of sensitive values', () => {
  const shown = readJson(
    `{"card":"${mark}","people":[{"born":"${mark}","n":1},{"born":"${mark}","n":2}],"text":"a ${mark} b"}`,
  )
  const { value, pointers } = numberMarks(shown)
  const edited = (change: (text: string) => string) => {
    const operations = diffJson(value, readJson(change(printJson(value))))
    return { patch: printPatch(operations), problems: markProblems(operations, pointers) }
  }

  it('have a number of their own in the editor', () => {
    expect([...pointers]).toEqual([
      [1, '/card'],
      [2, '/people/0/born'],
      [3, '/people/1/born'],
      [4, '/text'],
    ])
    expect(plainMarks(printJson(value))).toBe(printJson(shown))
    expect(hasMark(shown)).toBe(true)
    expect(hasMark(readJson('{"a":"redacted"}'))).toBe(false)
  })

  it('stay sealed when something else is edited', () => {
    expect(edited((text) => text.replace('"n":2', '"n":3'))).toEqual({
      patch: '[{"op":"replace","path":"/people/1/n","value":3}]',
      problems: [],
    })
  })

  it('may be replaced or removed as a whole', () => {
    expect(edited((text) => text.replace('"⟦redacted:1⟧"', '"4242"'))).toEqual({
      patch: '[{"op":"replace","path":"/card","value":"4242"}]',
      problems: [],
    })
    expect(edited((text) => text.replace('"born":"⟦redacted:2⟧",', ''))).toEqual({
      patch: '[{"op":"remove","path":"/people/0/born"}]',
      problems: [],
    })
  })

  it('stay with their item when items before it are removed and it is edited', () => {
    expect(edited((text) => text.replace('{"born":"⟦redacted:2⟧","n":1},', '').replace('"n":2', '"n":9'))).toEqual({
      patch: '[{"op":"remove","path":"/people/0"},{"op":"replace","path":"/people/0/n","value":9}]',
      problems: [],
    })
  })

  it('are refused where they are typed, moved, copied or changed in part', () => {
    const refused = (change: (text: string) => string) =>
      edited(change).problems.map((p) => `${p.path}: ${p.message.split('.')[0] ?? ''}`)
    expect(refused((text) => text.replace('"n":1', `"n":"${mark}"`))).toEqual([
      '/people/0/n: A mark cannot be typed: it stands for a value that is not shown here',
    ])
    expect(refused((text) => text.replace('"n":1', '"n":"⟦redacted:1⟧"'))).toEqual([
      '/people/0/n: The sealed value of /card can be kept where it is, replaced or removed',
    ])
    expect(refused((text) => text.replace('a ⟦redacted:4⟧ b', 'a ⟦redacted:4⟧ c'))).toEqual([
      '/text: The sealed value of /text can be kept where it is, replaced or removed',
    ])
    const swapped = refused((text) =>
      text.replace('⟦redacted:2⟧', '⟦x⟧').replace('⟦redacted:3⟧', '⟦redacted:2⟧').replace('⟦x⟧', '⟦redacted:3⟧'),
    )
    expect(swapped.length).toBeGreaterThan(0)
  })
})

describe('the marks in a value', () => {
  it('are found by their numbers, wherever they are', () => {
    expect(
      seals(readJson('{"a":"⟦redacted:3⟧","b":["x ⟦redacted:1⟧",{"c":"⟦redacted⟧ ⟦redacted:2⟧"}],"d":1}')),
    ).toEqual(['3', '1', '2'])
    expect(seals(readJson('{"⟦redacted:1⟧":"⟦redacted⟧"}'))).toEqual([])
  })

  it.each([
    ['⟦redacted⟧', true],
    ['⟦redacted:12⟧', true],
    ['a ⟦redacted⟧', false],
    ['⟦redacted⟧⟦redacted⟧', false],
    ['', false],
    ['redacted', false],
  ])('make %j a sealed text: %s', (text, sealed) => {
    expect(isSealed(text)).toBe(sealed)
  })
})

describe('a value in one short line', () => {
  it('is cut where it is long, and its marks have no numbers', () => {
    expect(brief(readJson('{"card":"⟦redacted:7⟧"}'))).toBe('{"card":"⟦redacted⟧"}')
    expect(brief('x'.repeat(58))).toBe(`"${'x'.repeat(58)}"`)
    expect(brief('x'.repeat(59))).toBe(`"${'x'.repeat(59)}…`)
    expect(brief(readJson('[1,2,3]'), 3)).toBe('[1,…')
  })
})

describe('a JSON pointer', () => {
  it('is taken apart into its names', () => {
    expect(splitPointer('')).toEqual([])
    expect(splitPointer('/')).toEqual([''])
    expect(splitPointer('/a~1b/~01/0')).toEqual(['a/b', '~1', '0'])
  })

  it('leads to a value, or to none', () => {
    const value = readJson('{"a/b":[{"~":1}],"":2}')
    expect(printJson(find(value, '/a~1b/0/~0') ?? null)).toBe('1')
    expect(printJson(find(value, '/') ?? null)).toBe('2')
    expect(find(value, '/a~1b/1')).toBeUndefined()
    expect(find(value, '/a~1b/0/~0/more')).toBeUndefined()
    expect(find(value, '')).toBe(value)
  })
})
