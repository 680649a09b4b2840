export type Role = 'viewer' | 'operator' | 'publisher' | 'admin'

/** has reports whether roles include the wanted one, in a project or, with "*", in all projects. */
export function has(roles: Record<string, string>, wanted: Role, project: string): boolean {
  const included = (role: string | undefined) =>
    role === 'admin' || role === wanted || (wanted === 'viewer' && (role === 'operator' || role === 'publisher'))
  return included(roles['*']) || (project !== '*' && included(roles[project]))
}

/** refusalOf returns why a caller with some roles may not act: "Needs operator in shop"; undefined if it may, or if its roles are not known. */
export const refusalOf = (
  roles: Record<string, string> | undefined,
  wanted: Role,
  project: string,
): string | undefined =>
  roles === undefined || has(roles, wanted, project)
    ? undefined
    : `Needs ${wanted} in ${project === '*' ? 'all projects' : project}`
