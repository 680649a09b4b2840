import { beforeEach, describe, expect, it, vi } from 'vitest'

const key = 'signalbox.preferences'

/** load reads the preferences anew from what the browser has stored. */
const load = async (stored: string) => {
  window.localStorage.setItem(key, stored)
  vi.resetModules()
  return import('./preferences')
}

beforeEach(() => {
  document.documentElement.dataset.theme = ''
})

describe('preferences', () => {
  it('are the standard ones at first', async () => {
    const { currentPreferences } = await load('')
    expect(currentPreferences()).toEqual({
      theme: 'system',
      zone: 'local',
      density: 'normal',
      shortcuts: true,
      project: '',
      columns: '',
      cards: '',
    })
    expect(document.documentElement.dataset).toMatchObject({ theme: 'light', density: 'normal' })
  })

  it('are read again as they were stored', async () => {
    const { setPreferences } = await load('')
    setPreferences({ theme: 'dark', zone: 'utc', density: 'compact', shortcuts: false, project: 'a&b', columns: 'run' })
    expect(document.documentElement.dataset).toMatchObject({ theme: 'dark', density: 'compact' })
    const { currentPreferences } = await load(window.localStorage.getItem(key) ?? '')
    expect(currentPreferences()).toEqual({
      theme: 'dark',
      zone: 'utc',
      density: 'compact',
      shortcuts: false,
      project: 'a&b',
      columns: 'run',
      cards: '',
    })
  })

  it.each([
    ['theme=blue', { theme: 'system' }],
    ['zone=mars', { zone: 'local' }],
    ['density=', { density: 'normal' }],
    ['shortcuts=no', { shortcuts: false }],
    [`project=${'x'.repeat(200)}`, { project: '' }],
    [`project=${'x'.repeat(199)}`, { project: 'x'.repeat(199) }],
    [`columns=${'x'.repeat(500)}`, { columns: '' }],
    ['more=1&theme=dark', { theme: 'dark' }],
  ])('take of %j what is valid', async (stored, expected) => {
    const { currentPreferences } = await load(stored)
    expect(currentPreferences()).toMatchObject(expected)
    expect(currentPreferences()).not.toHaveProperty('more')
  })

  it('last until the page is closed where nothing can be stored', async () => {
    const { currentPreferences, setPreferences } = await load('')
    const set = vi.spyOn(window.localStorage, 'setItem').mockImplementation(() => {
      throw new Error('switched off')
    })
    setPreferences({ theme: 'dark' })
    expect(currentPreferences().theme).toBe('dark')
    set.mockRestore()
  })
})
