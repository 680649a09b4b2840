import { describe, expect, it } from 'vitest'
import { asksFirst } from './typed'

const typed = { kept: true, submitted: false, action: 'PUSH', from: '/p/shop/runs', to: '/p/shop/events' }

describe('leaving a page on which something was typed', () => {
  it('asks first', () => {
    expect(asksFirst(typed)).toBe(true)
    expect(asksFirst({ ...typed, action: 'REPLACE' })).toBe(true)
  })

  it('does not ask where nothing would be lost', () => {
    expect(asksFirst({ ...typed, kept: false })).toBe(false)
    expect(asksFirst({ ...typed, kept: false, action: 'BACK' })).toBe(false)
  })

  it('does not ask for a change of the query string', () => {
    expect(asksFirst({ ...typed, to: typed.from })).toBe(false)
    expect(asksFirst({ ...typed, action: 'REPLACE', to: typed.from })).toBe(false)
  })

  it('does not ask after the dialog was submitted: its action opens the next page', () => {
    expect(asksFirst({ ...typed, submitted: true })).toBe(false)
  })

  it.each(['BACK', 'FORWARD', 'GO'])('asks in any case on the way %s', (action) => {
    expect(asksFirst({ ...typed, action, submitted: true })).toBe(true)
    expect(asksFirst({ ...typed, action, to: typed.from })).toBe(true)
  })
})
