import { useNavigate, useSearch } from '@tanstack/react-router'
import { useCallback } from 'react'
import { changed, one, type Search } from './search'

/** useFilters returns the values of the named filters in the URL, and a function that changes them there without a new history entry. */
export function useFilters<const Name extends string>(names: readonly Name[]) {
  const search = useSearch({ strict: false }) as Search
  const navigate = useNavigate()
  const change = useCallback(
    (next: Partial<Record<Name, string | undefined>>) => {
      void navigate({
        to: '.',
        search: ((before: Search) => changed(before, next)) as never,
        replace: true,
        resetScroll: false,
      })
    },
    [navigate],
  )
  const values = Object.fromEntries(names.map((name) => [name, one(search, name)])) as Record<Name, string>
  return {
    values,
    change,
    filtered: names.some((name) => values[name] !== ''),
    clear: () => {
      change(Object.fromEntries(names.map((name) => [name, ''])) as Record<Name, string>)
    },
  }
}
