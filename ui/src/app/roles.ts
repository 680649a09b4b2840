export type Role = 'viewer' | 'operator' | 'publisher' | 'admin'

/** has reports whether roles include the wanted one, in a project or, with "*", in all projects. */
export function has(roles: Record<string, string>, wanted: Role, project: string): boolean {
  const included = (role: string | undefined) =>
    role === 'admin' || role === wanted || (wanted === 'viewer' && (role === 'operator' || role === 'publisher'))
  return included(roles['*']) || (project !== '*' && included(roles[project]))
}
