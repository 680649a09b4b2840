import type { Preferences } from '../kit'

/** What the palette can do besides leading to a page. */
export type Action =
  | { name: string; kind: 'start' }
  | { name: string; kind: 'shortcuts' }
  | { name: string; kind: 'runs'; search: Record<string, string> }
  | { name: string; kind: 'prefer'; change: Partial<Preferences> }

/** actionsOf returns what can be done in a project, or without one. A preference is offered where it changes something. */
export function actionsOf(project: string, { theme, zone, density }: Preferences): Action[] {
  const prefer = (name: string, change: Partial<Preferences>): Action => ({ name, kind: 'prefer', change })
  return [
    ...(project === ''
      ? []
      : ([
          { name: 'Start a run…', kind: 'start' },
          { name: 'Show runs that fail again and again', kind: 'runs', search: { retrying: 'any' } },
          { name: 'Show stuck runs', kind: 'runs', search: { stuck: 'any' } },
        ] satisfies Action[])),
    theme === 'dark'
      ? prefer('Use the light theme', { theme: 'light' })
      : prefer('Use the dark theme', { theme: 'dark' }),
    zone === 'utc'
      ? prefer('Show times in local time', { zone: 'local' })
      : prefer('Show times in UTC', { zone: 'utc' }),
    density === 'compact'
      ? prefer('Show rows at their normal height', { density: 'normal' })
      : prefer('Show compact rows', { density: 'compact' }),
    { name: 'Show the shortcuts', kind: 'shortcuts' },
  ]
}
