import { describe, expect, it } from 'vitest'
import { printJson, readJson } from '../api'
import { adopted, type Draft, filledWith, inMode, lastInput, noDraft, readSchema, valueOf } from './draft'

const order = readJson('{"type":"object","properties":{"id":{"type":"string"},"n":{"type":"integer","default":1}}}')

describe('the schema of an input', () => {
  it('is that of the version', () => {
    expect(readSchema('{"type":"object"}')).toEqual(new Map([['type', 'object']]))
  })

  it.each(['', 'true', '[]', '"text"', '{"type":', '['.repeat(5000)])('is not there for %j', (text) => {
    expect(readSchema(text)).toBeUndefined()
  })
})

describe('the draft of a version', () => {
  it('begins with the defaults of its schema, as a form', () => {
    const draft = adopted(noDraft, 'shop/order', '1.0.0', order)
    expect(draft).toMatchObject({
      workflow: 'shop/order',
      version: '1.0.0',
      mode: 'form',
      text: '',
      touched: false,
      filled: 1,
    })
    expect(printJson(draft.value ?? null)).toBe('{"n":1}')
  })

  it('is JSON without a schema', () => {
    expect(adopted(noDraft, 'shop/order', '1.0.0', undefined)).toMatchObject({
      mode: 'json',
      text: '{}',
      value: undefined,
    })
  })

  it('keeps what was typed for another version of the workflow', () => {
    const typed: Draft = { ...adopted(noDraft, 'shop/order', '1.0.0', order), value: 'typed', touched: true }
    expect(adopted(typed, 'shop/order', '2.0.0', order)).toEqual({ ...typed, version: '2.0.0', filled: 2 })
  })

  it('writes what was typed in a form as JSON for a version without a schema', () => {
    const typed: Draft = {
      ...adopted(noDraft, 'shop/order', '1.0.0', order),
      value: readJson('{"n":1.50}'),
      touched: true,
    }
    expect(adopted(typed, 'shop/order', '2.0.0', undefined)).toMatchObject({
      mode: 'json',
      text: '{\n  "n": 1.50\n}',
      touched: true,
    })
    expect(adopted({ ...typed, mode: 'json', text: 'x' }, 'shop/order', '2.0.0', undefined)).toMatchObject({
      mode: 'json',
      text: 'x',
    })
  })

  it('forgets what was typed for another workflow, and what was not changed', () => {
    const typed: Draft = { ...noDraft, workflow: 'shop/order', value: 'typed', touched: true }
    expect(adopted(typed, 'shop/refund', '1.0.0', order)).toMatchObject({ touched: false, mode: 'form' })
    expect(adopted({ ...typed, touched: false }, 'shop/order', '2.0.0', order).value).not.toBe('typed')
  })
})

describe('the value of a draft', () => {
  it('is that of the form', () => {
    expect(valueOf({ ...noDraft, value: 'a', text: 'not read' })).toEqual({ value: 'a', problem: undefined })
  })

  it('is that of the text, with every digit', () => {
    const { value, problem } = valueOf({ ...noDraft, mode: 'json', text: '{"n":1.50}', value: 'not read' })
    expect(problem).toBeUndefined()
    expect(printJson(value ?? null)).toBe('{"n":1.50}')
  })

  it('is none for an empty text', () => {
    expect(valueOf({ ...noDraft, mode: 'json', text: ' \n' })).toEqual({ value: undefined, problem: undefined })
  })

  it('has the problem of a text that is not JSON', () => {
    const { value, problem } = valueOf({ ...noDraft, mode: 'json', text: '{"a":' })
    expect(value).toBeUndefined()
    expect(problem).toMatch(/./)
  })
})

describe('the way from form to JSON and back', () => {
  const form: Draft = { ...noDraft, value: readJson('{"a":[1]}'), filled: 3 }

  it('keeps the value', () => {
    const text = inMode(form, 'json')
    expect(text).toMatchObject({ mode: 'json', text: '{\n  "a": [\n    1\n  ]\n}', filled: 3 })
    const back = inMode({ ...text, value: undefined }, 'form')
    expect(back).toMatchObject({ mode: 'form', filled: 4 })
    expect(printJson(back.value ?? null)).toBe('{"a":[1]}')
  })

  it('has an empty text for no value', () => {
    expect(inMode({ ...form, value: undefined }, 'json').text).toBe('')
  })

  it('ends where the text is not JSON', () => {
    const broken: Draft = { ...noDraft, mode: 'json', text: '{' }
    expect(inMode(broken, 'form')).toBe(broken)
  })

  it('changes nothing in the same mode', () => {
    expect(inMode(form, 'form')).toBe(form)
  })
})

describe('the last input', () => {
  it('fills the draft as if a person had typed it', () => {
    const { input, note } = lastInput('shop/order', { input: { json: '{"id":"a","n":2}' } })
    expect(note).toBeUndefined()
    const draft = filledWith({ ...noDraft, mode: 'json', filled: 1 }, input?.value)
    expect(draft).toMatchObject({ mode: 'json', touched: true, filled: 2, text: '{\n  "id": "a",\n  "n": 2\n}' })
    expect(printJson(draft.value ?? null)).toBe('{"id":"a","n":2}')
  })

  it('leaves out sensitive values and names them', () => {
    const { input, note } = lastInput('shop/order', {
      input: { json: '{"card":"⟦redacted⟧","n":2,"pin":"⟦redacted⟧"}' },
    })
    expect(printJson(input?.value ?? null)).toBe('{"n":2}')
    expect(note).toBe('Sensitive values of the last input are empty here: /card, /pin.')
  })

  it('is empty where the whole input is sensitive', () => {
    expect(lastInput('shop/order', { input: { json: '"⟦redacted⟧"' } })).toEqual({
      input: { value: undefined },
      note: 'Sensitive values of the last input are empty here: the whole input.',
    })
  })

  it('changes nothing where there is none', () => {
    expect(lastInput('shop/order', undefined)).toEqual({
      input: undefined,
      note: 'There is no earlier run of shop/order.',
    })
    expect(lastInput('shop/order', {})).toEqual({ input: undefined, note: 'The last run had no input.' })
  })
})
