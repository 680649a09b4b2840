import { useQuery } from '@tanstack/react-query'
import { clients, setCSRFToken } from '../api'
import { has, refusalOf, type Role } from './roles'

export const sessionKey = ['session']

/** useCaller returns how this browser is authenticated, as whom, and with which roles. */
export const useCaller = () =>
  useQuery({
    queryKey: sessionKey,
    queryFn: async ({ signal }) => {
      const { current } = await clients.sessions.getSession({}, { signal })
      if (current === undefined) throw new Error('the server did not return the session')
      setCSRFToken(current.csrfToken)
      return current
    },
    staleTime: 60_000,
  })

/** useMay returns a function that reports whether the caller is known to have a role: what it may not read is not asked for. */
export function useMay(): (wanted: Role, project: string) => boolean {
  const roles = useCaller().data?.roles
  return (wanted, project) => roles !== undefined && has(roles, wanted, project)
}

/** useRefusal returns a function that says why the caller may not act; undefined if it may. */
export function useRefusal(): (wanted: Role, project: string) => string | undefined {
  const roles = useCaller().data?.roles
  return (wanted, project) => refusalOf(roles, wanted, project)
}
