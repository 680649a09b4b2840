import { useQuery, type UseQueryResult } from '@tanstack/react-query'
import { clients, timestamp } from '../api'
import type { ListAnnotationsResponse } from '../gen/signalbox/v1/project_pb'

export type Annotations = UseQueryResult<ListAnnotationsResponse>

/** useAnnotations reads what happened around the runs of a project, each 30 s while the period lasts; until now if it has no end. */
export const useAnnotations = (project: string, from: number | undefined, to: number | undefined): Annotations =>
  useQuery({
    queryKey: ['annotations', project, from, to],
    queryFn: ({ signal }) =>
      clients.projects.listAnnotations(
        {
          project,
          ...(from === undefined ? {} : { from: timestamp(from) }),
          ...(to === undefined ? {} : { to: timestamp(to) }),
        },
        { signal },
      ),
    enabled: from !== undefined,
    refetchInterval: to === undefined ? 30_000 : false,
    placeholderData: (before) => before,
  })
