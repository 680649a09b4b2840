import { describe, expect, it } from 'vitest'
import { currentPreferences } from '../kit'
import { actionsOf } from './actions'

const named = (project: string, change: object = {}) =>
  actionsOf(project, { ...currentPreferences(), ...change }).map(({ name }) => name)

describe('actionsOf', () => {
  it('offers what concerns runs in a project alone', () => {
    expect(named('shop')).toContain('Start a run…')
    expect(named('shop')).toContain('Show runs that fail again and again')
    expect(named('').filter((name) => name.includes('run'))).toEqual([])
  })
  it('offers the preferences that are not chosen', () => {
    expect(named('', { theme: 'dark', zone: 'utc', density: 'compact' })).toEqual([
      'Use the light theme',
      'Show times in local time',
      'Show rows at their normal height',
      'Show the shortcuts',
    ])
    expect(named('', { theme: 'light', zone: 'local', density: 'normal' })).toEqual([
      'Use the dark theme',
      'Show times in UTC',
      'Show compact rows',
      'Show the shortcuts',
    ])
  })
})
