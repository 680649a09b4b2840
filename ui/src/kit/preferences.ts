import { createStore, useStore } from '../api/store'

/** What a person chose for this browser; kept under one key of the local storage, which holds nothing else. */
export interface Preferences {
  theme: 'system' | 'light' | 'dark'
  zone: 'local' | 'utc'
  density: 'normal' | 'compact'
  shortcuts: boolean
  project: string
  /** Columns of the list of runs, separated by commas; empty for the standard ones. */
  columns: string
  /** The same of the cards on a phone. */
  cards: string
}

const key = 'signalbox.preferences'
const defaults: Preferences = {
  theme: 'system',
  zone: 'local',
  density: 'normal',
  shortcuts: true,
  project: '',
  columns: '',
  cards: '',
}

const allowed: { [K in keyof Preferences]: (value: unknown) => boolean } = {
  theme: (v) => v === 'system' || v === 'light' || v === 'dark',
  zone: (v) => v === 'local' || v === 'utc',
  density: (v) => v === 'normal' || v === 'compact',
  shortcuts: (v) => typeof v === 'boolean',
  project: (v) => typeof v === 'string' && v.length < 200,
  columns: (v) => typeof v === 'string' && v.length < 500,
  cards: (v) => typeof v === 'string' && v.length < 500,
}

function load(): Preferences {
  try {
    const stored = new URLSearchParams(window.localStorage.getItem(key) ?? '')
    const read = { ...defaults } as Record<string, unknown>
    for (const [name, value] of stored) {
      const typed = name === 'shortcuts' ? value === 'true' : value
      if (name in allowed && allowed[name as keyof Preferences](typed)) read[name] = typed
    }
    return read as unknown as Preferences
  } catch {
    return defaults // storage may be switched off in the browser
  }
}

const current = createStore(load())
const dark = window.matchMedia('(prefers-color-scheme: dark)')

/** apply gives the page the theme and the density; the other preferences are read where they matter. */
function apply(): void {
  const { theme, density } = current.get()
  document.documentElement.dataset.theme = theme === 'system' ? (dark.matches ? 'dark' : 'light') : theme
  document.documentElement.dataset.density = density
}

dark.addEventListener('change', apply)
apply()

/** setPreferences changes some preferences, here and in the browser's storage. */
export function setPreferences(change: Partial<Preferences>): void {
  const next = { ...current.get(), ...change }
  current.set(next)
  try {
    window.localStorage.setItem(
      key,
      new URLSearchParams(Object.entries(next).map(([k, v]) => [k, String(v)])).toString(),
    )
  } catch {
    // storage may be switched off in the browser: the choice lasts until the page is closed
  }
  apply()
}

/** currentPreferences returns the preferences as they are. */
export const currentPreferences = (): Preferences => current.get()

/** usePreferences returns the preferences and renders again when they change. */
export const usePreferences = (): Preferences => useStore(current)
