import { milliseconds, timestamp } from '../api'
import type { Token } from '../gen/signalbox/v1/token_pb'
import { command, type Rest, restCall } from '../kit'

/** state returns whether a token can be used at a time. */
export function state(token: Token, now: number): { word: string; tone: 'green' | 'slate' | 'amber' } {
  if (token.revokeTime !== undefined) return { word: 'Revoked', tone: 'slate' }
  const expires = milliseconds(token.expireTime)
  if (expires !== undefined && expires <= now) return { word: 'Expired', tone: 'amber' }
  return { word: 'Valid', tone: 'green' }
}

/** roles prints the roles of a token by project. */
export const roles = (map: Record<string, string>): string =>
  Object.entries(map)
    .sort(([a], [b]) => a.localeCompare(b))
    .map(([project, role]) => `${project === '*' ? 'all projects' : project}: ${role}`)
    .join(', ')

/** createRefusal returns why a caller cannot create tokens: only an administrator can, of any project. Undefined if its roles are not known. */
export const createRefusal = (given: Record<string, string> | undefined): string | undefined =>
  given === undefined || Object.values(given).includes('admin') ? undefined : 'Needs admin in a project'

/** A token as it is written in the form. */
export interface TokenForm {
  name: string
  roles: { project: string; role: string }[]
  /** Days until it expires; empty if it does not. */
  days: string
}

/** formRefusal returns why a form cannot be submitted as it stands. */
export function formRefusal({ name, roles: given }: TokenForm): string | undefined {
  if (name.trim() === '') return 'Name the program or person that uses it.'
  return new Set(given.map(({ project }) => project)).size < given.length ? 'A project is named twice.' : undefined
}

const expiry = (days: string, now: number) => (days === '' ? undefined : now + Number(days) * 86_400_000)

const byProject = ({ roles: given }: TokenForm) => Object.fromEntries(given.map((r) => [r.project, r.role]))

/** tokenRequest returns the request that creates a token. */
export function tokenRequest(form: TokenForm, now: number) {
  const at = expiry(form.days, now)
  return {
    name: form.name.trim(),
    roles: byProject(form),
    ...(at === undefined ? {} : { expireTime: timestamp(at) }),
  }
}

/** tokenCommands returns how to create a token without the page: by the CLI and by REST. */
export function tokenCommands(form: TokenForm, now: number): { cli: string; rest: Rest } {
  const at = expiry(form.days, now)
  const name = form.name.trim()
  return {
    cli: command(['token', 'create', ...form.roles.flatMap((r) => ['--role', `${r.project}=${r.role}`])], {
      name,
      expires: form.days === '' ? '' : `${form.days}d`,
    }),
    rest: restCall('POST', '/v1/tokens', {
      name,
      roles: byProject(form),
      expireTime: at === undefined ? undefined : new Date(at).toISOString(),
    }),
  }
}
