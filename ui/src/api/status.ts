import { useQuery } from '@tanstack/react-query'
import { system } from './clients'
import { observeServerTime } from './clock'
import { milliseconds } from './time'

/** useSystemStatus returns the status of the platform as the answering server sees it, read each 5 s, and sets the clock by it. */
export const useSystemStatus = () =>
  useQuery({
    queryKey: ['system-status'],
    queryFn: async ({ signal }) => {
      const sent = performance.now()
      const answer = await system.getStatus({}, { signal })
      const time = milliseconds(answer.time)
      if (time !== undefined) observeServerTime(time, sent, 'exact')
      return answer
    },
    refetchInterval: 5000,
  })
