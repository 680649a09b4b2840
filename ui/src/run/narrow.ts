import { useSyncExternalStore } from 'react'

const query = window.matchMedia('(max-width: 900px)')

const subscribe = (listener: () => void) => {
  query.addEventListener('change', listener)
  return () => {
    query.removeEventListener('change', listener)
  }
}

/** useNarrow reports whether the window is too narrow for two columns. */
export const useNarrow = (): boolean => useSyncExternalStore(subscribe, () => query.matches)
