/** A page that the navigation, the palette or the keys lead to. */
export interface Place {
  name: string
  /** The path; of a page of a project the part after the project's, without a slash before it. */
  path: string
  /** The key that follows g; empty for none. */
  key: string
  /** Whether the navigation has it, not the palette alone. */
  listed: boolean
}

const place = (name: string, path: string, key = '', listed = true): Place => ({ name, path, key, listed })

/** The pages in the order of the navigation. */
export const places: readonly Place[] = [
  place('Problems', '/problems', 'p'),
  place('Runs', 'runs', 'r'),
  place('Workflows', 'workflows', 'w'),
  place('Functions', 'functions', '', false),
  place('Events', 'events', 'e'),
  place('Webhooks', 'webhooks', 'h'),
  place('Batches', 'batches', 'b'),
  place('Audit', 'audit', 'a'),
  place('Workflows of all projects', '/workflows', '', false),
  place('Dispatchers', '/dispatchers', 'd'),
  place('Workers', '/workers', 'k'),
  place('System', '/system', 's'),
  place('Restore check', '/system/restore', '', false),
  place('Licences', '/system/licences', '', false),
  place('Projects', '/projects'),
  place('Access', '/access'),
]

/** isOfProject reports whether a page shows one project. */
export const isOfProject = ({ path }: Place): boolean => !path.startsWith('/')

/** pathOf returns the path of a page for a project. */
export const pathOf = (place: Place, project: string): string =>
  isOfProject(place) ? `/p/${encodeURIComponent(project)}/${place.path}` : place.path

/** placesOf returns the pages that can be opened: those of a project only where there is one. */
export const placesOf = (project: string): Place[] => places.filter((place) => !isOfProject(place) || project !== '')

/** sections returns the pages of the navigation: what is used daily, then those of the installation. */
export function sections(project: string): { daily: Place[]; installation: Place[] } {
  const listed = placesOf(project).filter((place) => place.listed)
  const daily = (place: Place) => isOfProject(place) || place.path === '/problems'
  return { daily: listed.filter(daily), installation: listed.filter((place) => !daily(place)) }
}

/** pathInProject returns the path of the current page in another project; that of its runs where the page is of none. */
export const pathInProject = (pathname: string, project: string): string =>
  `/p/${encodeURIComponent(project)}/${/^\/p\/[^/]+\/([^/]+)/.exec(pathname)?.[1] ?? 'runs'}`
