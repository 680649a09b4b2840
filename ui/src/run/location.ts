import { useNavigate, useSearch } from '@tanstack/react-router'
import { one, type Search } from '../app/search'

/** useSearchText returns the values of the URL's query string, and a function that changes some of them; empty removes one. */
export function useSearchText(): {
  get: (name: string) => string
  set: (change: Record<string, string>, replace?: boolean) => void
} {
  const search: Search = useSearch({ strict: false })
  const navigate = useNavigate()
  return {
    get: (name) => one(search, name),
    set: (change, replace = true) => {
      void navigate({
        to: '.',
        replace,
        resetScroll: false,
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
