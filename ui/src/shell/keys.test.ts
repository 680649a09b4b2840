import { describe, expect, it } from 'vitest'
import { globalAction } from './keys'

const key = (
  text: string,
  more: { timeStamp?: number; ctrlKey?: boolean; metaKey?: boolean; altKey?: boolean } = {},
) => ({
  key: text,
  timeStamp: 10_000,
  ctrlKey: false,
  metaKey: false,
  altKey: false,
  ...more,
})

describe('the keys of every page', () => {
  it('open the palette with Ctrl or Command and k, also while a person types', () => {
    expect(globalAction(key('k', { ctrlKey: true }), undefined, false)).toEqual({ kind: 'palette' })
    expect(globalAction(key('K', { metaKey: true }), undefined, true)).toEqual({ kind: 'palette' })
    expect(globalAction(key('k'), undefined, true)).toBeUndefined()
  })

  it('show the keys with ?', () => {
    expect(globalAction(key('?'), undefined, true)).toEqual({ kind: 'help' })
  })

  it('do nothing while a person types, or where they are switched off', () => {
    expect(globalAction(key('?'), undefined, false)).toBeUndefined()
    expect(globalAction(key('g'), undefined, false)).toBeUndefined()
    expect(globalAction(key('r'), 9900, false)).toBeUndefined()
  })

  it.each(['ctrlKey', 'metaKey', 'altKey'])('leave keys with %s to the browser', (modifier) => {
    expect(globalAction(key('g', { [modifier]: true }), undefined, true)).toBeUndefined()
    expect(globalAction(key('r', { [modifier]: true }), 9900, true)).toBeUndefined()
  })

  it('lead to a page by g and its key, one soon after the other', () => {
    expect(globalAction(key('g'), undefined, true)).toEqual({ kind: 'going' })
    expect(globalAction(key('r'), 10_000, true)).toEqual({ kind: 'go', key: 'r' })
    expect(globalAction(key('r'), 8501, true)).toEqual({ kind: 'go', key: 'r' })
    expect(globalAction(key('r'), 8500, true)).toBeUndefined()
  })

  it('begin anew with a g that comes too late, and end with one that comes soon', () => {
    expect(globalAction(key('g'), 1000, true)).toEqual({ kind: 'going' })
    expect(globalAction(key('g'), 9900, true)).toEqual({ kind: 'go', key: 'g' })
  })

  it('do nothing for another key', () => {
    expect(globalAction(key('x'), undefined, true)).toBeUndefined()
  })
})
