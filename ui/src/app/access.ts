import { useQuery } from '@tanstack/react-query'
import { clients } from '../api'
import { has, type Role } from './roles'

/** useCaller returns the caller's name and roles. */
export const useCaller = () => useQuery({ queryKey: ['who-am-i'], queryFn: ({ signal }) => clients.tokens.whoAmI({}, { signal }), staleTime: 60_000 })

/** useRefusal returns a function that says why the caller may not act: "Needs operator in shop"; undefined if it may, or if its roles are not known. */
export function useRefusal(): (wanted: Role, project: string) => string | undefined {
  const caller = useCaller()
  return (wanted, project) => {
    if (caller.data === undefined || has(caller.data.roles, wanted, project)) return undefined
    return project === '*' ? `Needs ${wanted} in all projects` : `Needs ${wanted} in ${project}`
  }
}
