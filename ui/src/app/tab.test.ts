import { describe, expect, it } from 'vitest'
import { chosenTab } from './tab'

const tabs = [{ id: 'path' }, { id: 'input' }]

describe('the tab of a page', () => {
  it('is the one that the URL asks for', () => {
    expect(chosenTab(tabs, 'input', 'path')).toBe('input')
  })

  it.each(['', 'inputs', 'Input'])('is the standard one where the URL asks for %j', (asked) => {
    expect(chosenTab(tabs, asked, 'path')).toBe('path')
  })

  it('may be one that is not always there', () => {
    expect(chosenTab([...tabs, { id: 'error' }], 'error', 'input')).toBe('error')
    expect(chosenTab(tabs, 'error', 'input')).toBe('input')
  })
})
