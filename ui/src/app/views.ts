import { useQuery } from '@tanstack/react-query'
import { clients } from '../api'

export const viewsKey = (project: string) => ['views', project]

/** useViews returns the saved views of a project that the caller sees: its own, then the shared ones of others, each by name. */
export const useViews = (project: string) =>
  useQuery({
    queryKey: viewsKey(project),
    queryFn: async ({ signal }) => {
      const { views } = await clients.views.listViews({ project }, { signal })
      return [...views.filter((view) => view.mine), ...views.filter((view) => !view.mine)]
    },
    enabled: project !== '',
    staleTime: 15_000,
    refetchInterval: 30_000,
  })
