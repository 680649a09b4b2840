import type { Search } from './search'

/** The list of runs that a project's page showed last: its filters, and the IDs of its rows in order. */
export interface RunList {
  search: Search
  ids: string[]
}

const lists = new Map<string, RunList>()

/** rememberList notes what the list of a project shows, for the way back and the neighbours of a run. It lasts as long as the page. */
export function rememberList(project: string, list: RunList): void {
  lists.set(project, list)
}

/** lastList returns the list that a project's page showed last; undefined before the first. */
export const lastList = (project: string): RunList | undefined => lists.get(project)
