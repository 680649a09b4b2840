import { useNavigate, useSearch } from '@tanstack/react-router'
import { useCallback } from 'react'
import { one, type Search } from './search'

/** useFilters returns the values of the named filters in the URL, and a function that changes them there without a new history entry. */
export function useFilters(names: readonly string[]) {
  const search = useSearch({ strict: false }) as Search
  const navigate = useNavigate()
  const change = useCallback(
    (next: Record<string, string | undefined>) => {
      void navigate({ to: '.', search: ((before: Search) => ({ ...before, ...next })) as never, replace: true })
    },
    [navigate],
  )
  const values = Object.fromEntries(names.map((name) => [name, one(search, name)]))
  return {
    values,
    change,
    filtered: names.some((name) => values[name] !== ''),
    clear: () => {
      change(Object.fromEntries(names.map((name) => [name, undefined])))
    },
  }
}
