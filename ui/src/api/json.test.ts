import { describe, expect, it } from 'vitest'
import { escapePointer, isNumberText, JsonError, jsonEqual, JsonNumber, printJson, readJson } from './json'

describe('readJson', () => {
  it.each([
    '{"a":12345678901234567890.10,"b":[1e400,-0,0.1],"c":null,"d":true,"e":""}',
    '{"2":1,"1":2,"__proto__":{"x":1}}',
    '[]',
    '{}',
    '[{"a":[{}]}]',
    '"\\"\\\\/"',
  ])('prints %s as it was', (text) => {
    expect(printJson(readJson(text))).toBe(text)
  })

  it('reads escapes and white space', () => {
    expect(readJson(' "a\\u00e9\\n\\/\\ud83d\\ude00" \r\n')).toBe('aé\n/😀')
  })

  it('indents', () => {
    expect(printJson(readJson('{"a":[1,{}],"b":[]}'), 2)).toBe('{\n  "a": [\n    1,\n    {}\n  ],\n  "b": []\n}')
  })

  it.each([
    ['', 'line 1, column 1: the text ends where a value is expected'],
    ['{"a":1,}', 'line 1, column 8: the name of a member, in quotes, is expected'],
    ['[1 2]', 'line 1, column 4: a comma or ] is expected'],
    ['{"a" 1}', 'line 1, column 6: a colon is expected'],
    ['[01]', 'line 1, column 3: a comma or ] is expected'],
    ['"a\nb"', 'line 1, column 1: the string has no end, or contains a character that must be escaped'],
    ['{\n "a": x}', 'line 2, column 7: a value cannot begin with x'],
    ['1 1', 'line 1, column 3: there is text after the value'],
  ])('refuses %j', (text, message) => {
    expect(() => readJson(text)).toThrow(new JsonError('', '', 0).constructor as typeof JsonError)
    expect(() => readJson(text)).toThrow(message)
  })

  it('refuses values that are too deep instead of exhausting the stack', () => {
    expect(() => readJson('['.repeat(100_000))).toThrow('more than 1000 levels')
  })
})

describe('jsonEqual', () => {
  it('compares numbers by text and members in any order', () => {
    expect(jsonEqual(readJson('{"a":1,"b":[2]}'), readJson('{"b":[2],"a":1}'))).toBe(true)
    expect(jsonEqual(readJson('1'), readJson('1.0'))).toBe(false)
    expect(jsonEqual(new JsonNumber('1'), '1')).toBe(false)
    expect(jsonEqual(readJson('{"a":null}'), readJson('{"b":null}'))).toBe(false)
  })
})

describe('the text of a number', () => {
  it.each(['0', '-0', '12.50', '1e400', '-1.5E-7', '12345678901234567890'])('%s is one of JSON', (text) => {
    expect(isNumberText(text)).toBe(true)
  })

  it.each(['', '-', '01', '1.', '.5', '+1', '1e', '0x1', 'NaN', ' 1', '1 ', '1\n', '1 2', '1,0'])(
    '%j is none of JSON',
    (text) => {
      expect(isNumberText(text)).toBe(false)
    },
  )
})

describe('a name in a JSON pointer', () => {
  it('is escaped so that it is one part, and each sign once', () => {
    expect(escapePointer('a/b~c')).toBe('a~1b~0c')
    expect(escapePointer('~1')).toBe('~01')
  })
})
