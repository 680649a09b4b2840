import { useSyncExternalStore } from 'react'

/** media returns what React needs to follow a query of the window's size. */
function media(text: string) {
  const query = window.matchMedia(text)
  const subscribe = (listener: () => void) => {
    query.addEventListener('change', listener)
    return () => {
      query.removeEventListener('change', listener)
    }
  }
  return { subscribe, matches: () => query.matches }
}

const narrow = media('(max-width: 900px)')
const phone = media('(max-width: 640px)')

/** useNarrow reports whether the window is too narrow for two columns. */
export const useNarrow = (): boolean => useSyncExternalStore(narrow.subscribe, narrow.matches)

/** usePhone reports whether the window is too narrow for a table: its rows are cards. */
export const usePhone = (): boolean => useSyncExternalStore(phone.subscribe, phone.matches)

/** cardHeight returns the height of a row that is a card of so many lines. */
export const cardHeight = (lines = 2): number => 16 + 24 * lines
