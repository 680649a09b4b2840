import { describe, expect, it } from 'vitest'
import { find, isObject, printJson, readJson } from '../api'
import { blank, fieldOf, initial, optionOf, suits, withMember, withoutMarks, wrongNumbers } from './schema'

const field = (schema: string) => {
  const root = readJson(schema)
  return fieldOf(root, root)
}
const begin = (schema: string) => {
  const root = readJson(schema)
  const value = initial(root, root, true)
  return value === undefined ? undefined : printJson(value)
}

describe('the field of a schema', () => {
  it.each([
    [
      '{"type":"string","format":"email"}',
      { kind: 'text', format: 'email', hint: 'an e-mail address', nullable: false },
    ],
    ['{"type":"string","format":"password"}', { kind: 'text', secret: true }],
    ['{"type":"string","writeOnly":true}', { kind: 'text', secret: true }],
    [
      '{"type":["null","string"],"maxLength":9000}',
      { kind: 'text', long: true, nullable: true, hint: 'at most 9000 characters' },
    ],
    [
      '{"type":"integer","minimum":1,"maximum":12345678901234567890}',
      { kind: 'number', integer: true, hint: '1 to 12345678901234567890' },
    ],
    [
      '{"type":"number","exclusiveMinimum":0.10,"default":1.50}',
      { kind: 'number', integer: false, hint: 'more than 0.10, default 1.50' },
    ],
    [
      '{"type":"boolean","title":"Rush","description":"At once."}',
      { kind: 'boolean', title: 'Rush', description: 'At once.' },
    ],
    ['{"enum":["a",1,null]}', { kind: 'enum', nullable: false }],
    ['{"type":"array","minItems":1,"maxItems":3}', { kind: 'array', least: 1, most: 3, hint: '1 to 3 items' }],
    ['{"items":{}}', { kind: 'array', least: 0, most: Infinity }],
    ['{"type":"array","minItems":1}', { hint: 'at least 1 item' }],
    ['{}', { kind: 'json', why: '' }],
    ['true', { kind: 'json', why: '' }],
    ['false', { kind: 'json', why: 'its schema allows no value' }],
    ['{"type":"date"}', { kind: 'json', why: 'its schema has the unknown type date' }],
    ['{"$ref":"#/$defs/none"}', { kind: 'json', why: 'its schema refers to #/$defs/none, which does not exist' }],
    [
      '{"$ref":"https://example.com/schema"}',
      { kind: 'json', why: 'its schema refers to another document or to an anchor' },
    ],
    ['{"$dynamicRef":"#node"}', { kind: 'json', why: 'its schema refers dynamically' }],
    ['{"$ref":"#"}', { kind: 'json', why: 'its schema refers to itself' }],
    ['{"type":"null"}', { kind: 'enum', values: [null] }],
  ])('is found for %s', (schema, expected) => {
    expect(field(schema)).toMatchObject(expected)
  })

  it('has the members in the order of the document, then those without a schema', () => {
    const found = field('{"properties":{"b":{},"a":{"type":"string"},"c":{}},"required":["a","z"]}')
    expect(found).toMatchObject({
      kind: 'object',
      members: [{ name: 'b' }, { name: 'a', required: true }, { name: 'c' }, { name: 'z', required: true }],
      more: undefined,
    })
  })

  it('allows further members where the schema is about them', () => {
    expect(field('{"type":"object"}')).toMatchObject({ more: true })
    expect(field('{"type":"object","properties":{"a":{}}}')).toMatchObject({ more: undefined })
    expect(field('{"type":"object","additionalProperties":false}')).toMatchObject({ more: undefined })
    expect(field('{"type":"object","properties":{"a":{}},"additionalProperties":{"type":"string"}}')).toHaveProperty(
      'more',
    )
  })

  it('follows references, with what stands beside them', () => {
    expect(
      field(
        '{"$ref":"#/$defs/a~1b%20c","description":"Mine.","$defs":{"a/b c":{"type":"string","description":"Theirs."}}}',
      ),
    ).toMatchObject({ kind: 'text', description: 'Mine.' })
    expect(field('{"$ref":"#/$defs/%zz","$defs":{"%zz":{"type":"string"}}}')).toMatchObject({ kind: 'text' })
  })

  it('joins allOf where nothing is lost', () => {
    expect(
      field(
        '{"allOf":[{"properties":{"a":{"type":"string"}},"required":["a"]},{"properties":{"b":{}},"required":["b"]}],"type":"object"}',
      ),
    ).toMatchObject({
      kind: 'object',
      members: [
        { name: 'a', required: true },
        { name: 'b', required: true },
      ],
    })
    expect(
      field('{"allOf":[{"properties":{"a":{"type":"string"}}},{"properties":{"a":{"minLength":1}}}]}'),
    ).toMatchObject({ kind: 'json', why: 'its schema joins others in a way that a form cannot show' })
  })

  it('is a choice of alternatives and types', () => {
    const found = field('{"oneOf":[{"title":"Card","type":"object"},{"type":"string"},{"const":7},{},{"type":"null"}]}')
    expect(found).toMatchObject({ kind: 'choice', nullable: true })
    expect(found.kind === 'choice' ? found.options.map((o) => o.title) : []).toEqual(['Card', 'text', '7', 'option 4'])
    expect(field('{"type":["string","integer","null"]}')).toMatchObject({
      kind: 'choice',
      nullable: true,
      options: [{ title: 'string' }, { title: 'integer' }],
    })
    expect(field('{"anyOf":[{"type":"null"},{"type":"string","title":"Name"}]}')).toMatchObject({
      kind: 'text',
      nullable: true,
      title: 'Name',
    })
  })

  it('keeps what stands beside a choice', () => {
    const root = readJson(
      '{"type":"object","properties":{"id":{"type":"string"}},"required":["id"],"oneOf":[{"properties":{"a":{"const":1}},"required":["a"]},{"properties":{"b":{}}}]}',
    )
    const found = fieldOf(root, root)
    const first = found.kind === 'choice' ? fieldOf(found.options[0]?.schema ?? true, root) : found
    expect(first).toMatchObject({
      kind: 'object',
      members: [
        { name: 'a', required: true },
        { name: 'id', required: true },
      ],
    })
  })
})

describe('the value with which a form begins', () => {
  it.each([
    [
      '{"type":"object","properties":{"a":{"type":"string"},"b":{"default":1.50},"c":{"type":"object","properties":{"d":{"default":null}}}},"required":["a"]}',
      '{"b":1.50}',
    ],
    [
      '{"type":"object","properties":{"c":{"type":"object","properties":{"d":{"const":"x"}},"required":["d"]}},"required":["c"]}',
      '{"c":{"d":"x"}}',
    ],
    ['{"type":"array","minItems":2,"items":{"type":"string"}}', '["",""]'],
    ['{"type":"array","minItems":2,"prefixItems":[{"const":1}],"items":{"type":"boolean"}}', '[1,false]'],
    ['{"oneOf":[{"type":"object","properties":{"k":{"const":"a"}},"required":["k"]},{"type":"string"}]}', '{"k":"a"}'],
    ['{"default":{"a":[1e400]}}', '{"a":[1e400]}'],
    ['{"type":"string"}', undefined],
  ])('of %s', (schema, value) => {
    expect(begin(schema)).toBe(value)
  })

  it('ends for schemas that require themselves', () => {
    expect(
      begin(
        '{"$defs":{"n":{"type":"object","required":["n"],"properties":{"n":{"$ref":"#/$defs/n"}}}},"$ref":"#/$defs/n"}',
      ),
    ).toBeDefined()
    expect(
      begin('{"$defs":{"n":{"type":"array","minItems":2,"items":{"$ref":"#/$defs/n"}}},"$ref":"#/$defs/n"}'),
    ).toBeDefined()
    const wide = begin(
      '{"$defs":{"n":{"type":"object","required":["a","b","c"],"additionalProperties":{},"properties":{"a":{"$ref":"#/$defs/n"},"b":{"$ref":"#/$defs/n"},"c":{"$ref":"#/$defs/n"}}}},"$ref":"#/$defs/n"}',
    )
    expect(wide?.length).toBeLessThan(100_000)
  })

  it('gives a new element something to write', () => {
    const value = blank(readJson('{"type":"number"}'), true)
    expect(wrongNumbers([value])).toEqual(['/0'])
  })
})

describe('suits', () => {
  const check = (schema: string, value: string) => {
    const root = readJson(schema)
    return suits(fieldOf(root, root), readJson(value), root)
  }
  it('finds values that a field cannot show', () => {
    expect(check('{"type":"string"}', '1')).toBe(false)
    expect(check('{"type":"string"}', 'null')).toBe(false)
    expect(check('{"type":["string","null"]}', 'null')).toBe(true)
    expect(check('{"type":"number"}', '"1"')).toBe(false)
    expect(check('{"enum":[1.0]}', '1')).toBe(false)
    expect(check('{"type":"object"}', '[]')).toBe(false)
    expect(check('{"oneOf":[{"type":"string"},{"type":"number"}]}', 'true')).toBe(false)
    expect(check('{}', '[1]')).toBe(true)
  })
})

describe('optionOf', () => {
  const options = (text: string) => {
    const root = readJson(text)
    const found = fieldOf(root, root)
    return found.kind === 'choice' ? { options: found.options, root } : { options: [], root }
  }
  it('takes the option whose certain value the object has', () => {
    const { options: list, root } = options(
      '{"oneOf":[{"properties":{"kind":{"const":"a"},"x":{"type":"string"}}},{"properties":{"kind":{"const":"b"},"y":{"type":"string"}}}]}',
    )
    expect(optionOf(list, readJson('{"kind":"b","x":"1"}'), root)).toBe(1)
    expect(optionOf(list, readJson('{"kind":"a","y":"1"}'), root)).toBe(0)
    expect(optionOf(list, readJson('7'), root)).toBe(-1)
  })
  it('takes the option with most of the members', () => {
    const { options: list, root } = options(
      '{"anyOf":[{"properties":{"card":{"type":"string"}},"required":["card"]},{"properties":{"to":{"type":"string"}},"required":["to"]}]}',
    )
    expect(optionOf(list, readJson('{"to":"x"}'), root)).toBe(1)
    expect(optionOf(list, readJson('{"card":"x"}'), root)).toBe(0)
  })
})

describe('changes of a value', () => {
  it('keep the order of the form', () => {
    const root = readJson('{"properties":{"a":{},"b":{},"c":{}}}')
    const found = fieldOf(root, root)
    const members = found.kind === 'object' ? found.members : []
    const value = readJson('{"x":1,"c":3}')
    if (!isObject(value)) throw new Error('no object')
    expect(printJson(withMember(value, members, 'a', '1'))).toBe('{"a":"1","c":3,"x":1}')
    expect(printJson(withMember(value, members, 'c', undefined))).toBe('{"x":1}')
    expect(printJson(value)).toBe('{"x":1,"c":3}')
  })

  it('find numbers that are not finished', () => {
    const value = readJson('{"a/b":[1,2]}')
    expect(wrongNumbers(value)).toEqual([])
    const list = find(value, '/a~1b')
    if (!Array.isArray(list)) throw new Error('no list')
    for (const text of ['', '-', '1.', '01', '0x1', '1e', 'NaN']) {
      Object.assign(list[1] as object, { text })
      expect(wrongNumbers(value), text).toEqual(['/a~1b/1'])
    }
  })

  it('take sensitive values out and name them', () => {
    const { value, removed } = withoutMarks(
      readJson('{"card":"⟦redacted⟧","a":[{"pin":"x ⟦redacted:2⟧ y","n":10},"⟦redacted⟧"],"⟦redacted⟧":1}'),
    )
    expect(printJson(value ?? null)).toBe('{"a":[{"n":10},null]}')
    expect(removed).toEqual(['/card', '/a/0/pin', '/a/1', '/⟦redacted⟧'])
    expect(withoutMarks('⟦redacted⟧')).toEqual({ value: undefined, removed: [''] })
  })
})
