import { type QueryClient, useQuery } from '@tanstack/react-query'
import { useParams } from '@tanstack/react-router'
import { clients } from '../api'
import { currentPreferences, usePreferences } from '../kit'
import type { Project } from '../gen/signalbox/v1/project_pb'

/** All projects that the caller may see. */
export async function allProjects(api: typeof clients, signal?: AbortSignal): Promise<Project[]> {
  const all: Project[] = []
  let pageToken = ''
  do {
    const page = await api.projects.listProjects({ pageSize: 200, pageToken }, signal === undefined ? {} : { signal })
    all.push(...page.projects)
    pageToken = page.nextPageToken
  } while (pageToken !== '' && all.length < 2000)
  return all
}

const projectsKey = ['projects']

export const useProjects = () =>
  useQuery({ queryKey: projectsKey, queryFn: ({ signal }) => allProjects(clients, signal), staleTime: 30_000 })

/** firstProject returns the project that was used last in this browser if it exists, else the first; empty if there is none. */
export async function firstProject(queries: QueryClient, api: typeof clients): Promise<string> {
  const all = await queries.fetchQuery({ queryKey: projectsKey, queryFn: () => allProjects(api), staleTime: 30_000 })
  const last = currentPreferences().project
  return all.some((p) => p.name === last) ? last : (all[0]?.name ?? '')
}

/** useProject returns the project of the page, or on a page of no project, the one that was used last; empty if there is none. */
export function useProject(): string {
  const params: { project?: string } = useParams({ strict: false })
  const { project } = usePreferences()
  const all = useProjects().data ?? []
  return params.project ?? (all.some((p) => p.name === project) ? project : (all[0]?.name ?? ''))
}
