import { useLocation, useNavigate, useSearch } from '@tanstack/react-router'
import { one, type Search } from '../app/search'

/** useSearchText returns the values of the URL's query string, and a function that changes some of them; empty removes one. */
export function useSearchText(): { get: (name: string) => string; set: (change: Record<string, string>, replace?: boolean) => void } {
  const search: Search = useSearch({ strict: false })
  const navigate = useNavigate()
  return {
    get: (name) => one(search, name),
    set: (change, replace = true) => {
      void navigate({
        to: '.',
        replace,
        resetScroll: false,
        state: true,
        search: ((before: Search) => {
          const next: Search = { ...before }
          for (const [name, value] of Object.entries(change)) {
            if (value === '') Reflect.deleteProperty(next, name)
            else next[name] = value
          }
          return next
        }) as never,
      })
    },
  }
}

/** The list that a run was opened from: its filters, and the IDs of its rows in order. It is in the state of the history entry. */
export interface Origin {
  search: Search
  ids: string[]
}

/** useOrigin returns the list that the run was opened from; undefined if it was opened otherwise. */
export function useOrigin(): Origin | undefined {
  const state: unknown = useLocation().state
  const list = (state as { list?: Partial<Origin> }).list
  return list === undefined || !Array.isArray(list.ids) ? undefined : { search: list.search ?? {}, ids: list.ids }
}
