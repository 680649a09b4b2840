import { useSyncExternalStore } from 'react'

/** A value outside of React, and the functions that follow it. */
export interface Store<T> {
  get: () => T
  /** Replaces the value and notifies what follows it; the same value changes nothing. */
  set: (next: T) => void
  /** Calls the listener after each change; the returned function ends that. */
  subscribe: (listener: () => void) => () => void
}

/** createStore returns a store with its first value. */
export function createStore<T>(first: T): Store<T> {
  let value = first
  const listeners = new Set<() => void>()
  return {
    get: () => value,
    set: (next) => {
      if (Object.is(next, value)) return
      value = next
      for (const listener of listeners) listener()
    },
    subscribe: (listener) => {
      listeners.add(listener)
      return () => {
        listeners.delete(listener)
      }
    },
  }
}

/** useStore returns the value of a store and renders again when it changes. */
export const useStore = <T>(store: Store<T>): T => useSyncExternalStore(store.subscribe, store.get)
