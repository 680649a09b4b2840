import { useQuery } from '@tanstack/react-query'
import { system } from './clients'
import { observeServerTime } from './clock'
import { milliseconds } from './time'

/** useConnection returns the state of the server's connection to Temporal, for every role, read each 5 s, and sets the clock by it. */
export const useConnection = () =>
  useQuery({
    queryKey: ['connection'],
    queryFn: async ({ signal }) => {
      const sent = performance.now()
      const answer = await system.getConnection({}, { signal })
      const time = milliseconds(answer.time)
      if (time !== undefined) observeServerTime(time, sent, 'exact')
      return answer
    },
    refetchInterval: 5000,
  })

/** useSystemStatus returns the status of the platform as the answering server sees it, read each 5 s; nothing is read while the caller may not. */
export const useSystemStatus = (allowed: boolean) =>
  useQuery({
    queryKey: ['system-status'],
    queryFn: ({ signal }) => system.getStatus({}, { signal }),
    enabled: allowed,
    refetchInterval: 5000,
  })
