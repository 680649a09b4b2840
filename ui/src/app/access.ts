import { useQuery } from '@tanstack/react-query'
import { clients } from '../api'

export type Role = 'viewer' | 'operator' | 'publisher' | 'admin'

/** useCaller returns the caller's name and roles. */
export const useCaller = () => useQuery({ queryKey: ['who-am-i'], queryFn: ({ signal }) => clients.tokens.whoAmI({}, { signal }), staleTime: 60_000 })

/** has reports whether roles include the wanted one, in a project or, with "*", in all projects. */
export function has(roles: Record<string, string>, wanted: Role, project: string): boolean {
  const included = (role: string | undefined) => role === 'admin' || role === wanted || (wanted === 'viewer' && (role === 'operator' || role === 'publisher'))
  return included(roles['*']) || (project !== '*' && included(roles[project]))
}

/** useRefusal returns a function that says why the caller may not act: "Needs operator in shop"; undefined if it may, or if its roles are not known. */
export function useRefusal(): (wanted: Role, project: string) => string | undefined {
  const caller = useCaller()
  return (wanted, project) => {
    if (caller.data === undefined || has(caller.data.roles, wanted, project)) return undefined
    return project === '*' ? `Needs ${wanted} in all projects` : `Needs ${wanted} in ${project}`
  }
}
