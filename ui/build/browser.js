// What the modules of the UI need of a browser in unit tests: events, storage, timers that tests can replace, and no pages.
import { vi } from 'vitest'

const stored = new Map()
const browser = Object.assign(new EventTarget(), {
  location: { origin: 'http://localhost' },
  localStorage: {
    getItem: (key) => stored.get(key) ?? null,
    setItem: (key, value) => stored.set(key, value),
  },
  matchMedia: () => Object.assign(new EventTarget(), { matches: false }),
  setTimeout: (...given) => setTimeout(...given),
  clearTimeout: (...given) => clearTimeout(...given),
  setInterval: (...given) => setInterval(...given),
  clearInterval: (...given) => clearInterval(...given),
})

vi.stubGlobal('window', browser)
vi.stubGlobal('document', Object.assign(new EventTarget(), { hidden: false, documentElement: { dataset: {} } }))
