import { describe, expect, it } from 'vitest'
import { printPatch } from '../api/patch'
import { changeSealed, newDraft, readEdit, undoEdit } from './edit'

const input = '{"order":"A-7","card":"⟦redacted⟧","items":[{"sku":"a","count":3}],"big":12345678901234567890.10}'

describe('the edit of an input', () => {
  it('has no operation before anything is changed', () => {
    const draft = newDraft(input)
    expect(readEdit(draft)).toMatchObject({ operations: [], problems: [], syntax: '', kept: ['/card'] })
    expect(draft.text).toContain('12345678901234567890.10')
  })

  it('is one operation for one change, and the sealed value stays', () => {
    const draft = newDraft(input)
    const edit = readEdit({ ...draft, text: draft.text.replace('"count": 3', '"count": 2') })
    expect(printPatch(edit.operations)).toBe('[{"op":"replace","path":"/items/0/count","value":2}]')
    expect(edit.kept).toEqual(['/card'])
  })

  it('says where the text is not JSON', () => {
    expect(readEdit({ ...newDraft(input), text: '{"a": 1,\n}' }).syntax).toMatch(/^line 2/)
  })

  it('refuses a typed mark with a sentence', () => {
    const draft = newDraft(input)
    expect(readEdit({ ...draft, text: draft.text.replace('"A-7"', '"⟦redacted⟧"') }).problems).toMatchObject([
      { path: '/order', message: expect.stringMatching(/^A mark cannot be typed/) as string },
    ])
  })

  it('replaces and removes a sealed value, and takes that back', () => {
    const draft = newDraft(input)
    const value = readEdit(draft).value ?? null
    const replaced = changeSealed(draft, value, '/card', 'replace')
    const edit = readEdit(replaced)
    expect(printPatch(edit.operations)).toBe('[{"op":"replace","path":"/card","value":""}]')
    expect(edit.kept).toEqual([])
    const [operation] = edit.operations
    if (operation !== undefined)
      expect(readEdit(undoEdit(replaced, edit.value ?? null, operation))).toMatchObject({
        operations: [],
        kept: ['/card'],
      })
    expect(printPatch(readEdit(changeSealed(draft, value, '/card', 'remove')).operations)).toBe(
      '[{"op":"remove","path":"/card"}]',
    )
  })

  it('says when there are more changes than the server takes', () => {
    const draft = newDraft(`[${Array.from({ length: 1200 }, (_, i) => i).join(',')}]`)
    const edit = readEdit({ ...draft, text: `[${Array.from({ length: 1200 }, (_, i) => `"${i}"`).join(',')}]` })
    expect(edit.problems[0]?.message).toContain('1200 changes')
  })
})

describe('sealed values in an edit', () => {
  const two = newDraft('{"card":"⟦redacted⟧","list":["a","⟦redacted⟧ and more"],"plain":1}')

  it('are kept where they are still in the text', () => {
    expect(readEdit(two).kept).toEqual(['/card', '/list/1'])
    expect(readEdit({ ...two, text: two.text.replace('"⟦redacted:1⟧"', '"4242"') }).kept).toEqual(['/list/1'])
    expect(readEdit({ ...two, text: '{}' }).kept).toEqual([])
  })

  it('are changed one at a time, the others stay', () => {
    const value = readEdit(two).value ?? null
    const edit = readEdit(changeSealed(two, value, '/list/1', 'remove'))
    expect(printPatch(edit.operations)).toBe('[{"op":"remove","path":"/list/1"}]')
    expect(edit.kept).toEqual(['/card'])
    expect(readEdit(changeSealed(two, value, '/list/1', 'replace')).value).toEqual(
      readEdit({ ...two, text: two.text.replace('⟦redacted:2⟧ and more', '') }).value,
    )
  })

  it('stay where the pointer names none', () => {
    const value = readEdit(two).value ?? null
    expect(changeSealed(two, value, '/plain', 'remove').text).toBe(two.text)
  })

  it('may be the whole input', () => {
    const whole = newDraft('"⟦redacted⟧"')
    expect(readEdit(whole).kept).toEqual([''])
    expect(changeSealed(whole, readEdit(whole).value ?? null, '', 'replace').text).toBe('""')
    expect(changeSealed(whole, readEdit(whole).value ?? null, '', 'remove').text).toBe('null')
  })
})

describe('an input that is not JSON', () => {
  it('cannot be edited', () => {
    expect(() => newDraft('{"a":')).toThrow('line 1')
  })
})

describe('the number of changes', () => {
  it('may be exactly what the server takes', () => {
    const numbers = Array.from({ length: 1000 }, (_, i) => i)
    const draft = newDraft(JSON.stringify(numbers))
    expect(readEdit({ ...draft, text: JSON.stringify(numbers.map(String)) }).problems).toEqual([])
  })
})
