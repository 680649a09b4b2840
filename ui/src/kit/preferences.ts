import { useSyncExternalStore } from 'react'

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

let current = load()
const listeners = new Set<() => void>()
const dark = window.matchMedia('(prefers-color-scheme: dark)')

function apply(): void {
  const theme = current.theme === 'system' ? (dark.matches ? 'dark' : 'light') : current.theme
  document.documentElement.dataset.theme = theme
  document.documentElement.dataset.density = current.density
  for (const listener of listeners) listener()
}

dark.addEventListener('change', apply)
apply()

/** setPreferences changes some preferences, here and in the browser's storage. */
export function setPreferences(change: Partial<Preferences>): void {
  current = { ...current, ...change }
  try {
    window.localStorage.setItem(
      key,
      new URLSearchParams(Object.entries(current).map(([k, v]) => [k, String(v)])).toString(),
    )
  } catch {
    // storage may be switched off in the browser: the choice lasts until the page is closed
  }
  apply()
}

const subscribe = (listener: () => void) => {
  listeners.add(listener)
  return () => {
    listeners.delete(listener)
  }
}

/** currentPreferences returns the preferences as they are. */
export const currentPreferences = (): Preferences => current

/** usePreferences returns the preferences and renders again when they change. */
export const usePreferences = (): Preferences => useSyncExternalStore(subscribe, () => current)
