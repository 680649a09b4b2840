import { describe, expect, it } from 'vitest'
import { readJson } from '../api'
import { fieldErrors, problemsOf } from './check'

const problems = (schema: string, value: string) => [...problemsOf(readJson(schema), readJson(value), readJson(schema))]

describe('the format of a text', () => {
  it.each([
    ['date', ['2026-01-31', '2024-02-29'], ['2026-02-30', '31.1.2026', '']],
    ['time', ['12:00:00Z', '23:59:60+05:30', '12:00:00.25z'], ['12:00', '12:00:00', '24:00:00Z']],
    ['date-time', ['2026-01-31T12:00:00Z'], ['2026-01-31', '2026-01-31T12:00:00', '2026-02-30T12:00:00Z']],
    ['duration', ['PT5M', 'P1DT2H', 'P3W'], ['5m', 'P', 'PT', 'P1DT']],
    ['email', ['ada@example.com', 'a@b'], ['ada', 'a b@c', 'a@b@c', '@b']],
    ['uri', ['https://example.com/', 'urn:x:y'], ['example.com', 'https://a b']],
    ['uuid', ['01a21ed7-0000-4000-8000-00000000431e'], ['01a21ed7']],
    ['ipv4', ['10.0.0.255'], ['10.0.0.256', '10.0.0', '10.0.0.01']],
    ['unknown', ['anything'], []],
  ])('%s is checked', (format, right, wrong) => {
    const schema = `{"type":"string","format":"${format}"}`
    for (const text of right) expect(problems(schema, `"${text}"`), text).toEqual([])
    for (const text of wrong) expect(problems(schema, `"${text}"`), text).toHaveLength(1)
  })
})

describe('a value that is missing', () => {
  it('is named with its place, also in lists and further members', () => {
    const schema =
      '{"type":"object","required":["a/b","list"],"properties":{"list":{"items":{"type":"object","properties":{"x":{"type":"string"}},"required":["x"]}}},"additionalProperties":{"type":"object","required":["y"],"properties":{"y":{"type":"string"}}}}'
    expect(problems(schema, '{"list":[{"x":"1"},{}],"more":{}}')).toEqual([
      ['/list/1/x', 'Required'],
      ['/a~1b', 'Required'],
      ['/more/y', 'Required'],
    ])
  })
})

describe('the errors of a choice', () => {
  const card =
    '{"type":"object","title":"card","required":["kind","number"],"properties":{"kind":{"const":"card"},"number":{"type":"string","pattern":"^[0-9]+$"}}}'
  const iban =
    '{"type":"object","title":"account","required":["kind","iban"],"properties":{"kind":{"const":"account"},"iban":{"type":"string"}}}'
  const schema = readJson(
    `{"type":"object","required":["order"],"properties":{"order":{"type":"string"},"pay":{"oneOf":[${card},${iban}]}}}`,
  )
  const reported = [
    { path: 'input/pay/kind', message: "value must be 'account'" },
    { path: 'input/pay/iban', message: 'is required' },
    { path: 'input/pay/number', message: 'does not match pattern' },
    { path: 'input/order', message: 'is required' },
    { path: 'labels', message: 'other' },
  ]

  it('are those of the chosen option, each once', () => {
    const found = fieldErrors(schema, readJson('{"order":"A","pay":{"kind":"card","number":"x"}}'), reported)
    expect([...found.errors]).toEqual([
      ['/pay/number', 'does not match pattern'],
      ['/order', 'is required'],
    ])
    expect(found.hidden).toBe(false)
  })

  it('do not repeat what the form has found', () => {
    expect([...fieldErrors(schema, readJson('{"pay":{"kind":"card","number":"x"}}'), reported).errors]).toEqual([
      ['/order', 'Required'],
      ['/pay/number', 'does not match pattern'],
    ])
  })

  it('are not lost where no field can show one', () => {
    expect(
      fieldErrors(schema, readJson('{"order":"A","pay":{"kind":"card","number":"1"}}'), reported.slice(0, 2)).hidden,
    ).toBe(true)
    expect(
      fieldErrors(schema, readJson('{"order":"A"}'), [{ path: 'input/else', message: 'not allowed' }]).hidden,
    ).toBe(true)
  })
})
