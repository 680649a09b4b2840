import { useQuery } from '@tanstack/react-query'
import { system } from './clients'

export const maintenanceKey = ['maintenance']

/** useMaintenance returns whether the platform starts new runs, read each 5 s. */
export const useMaintenance = () =>
  useQuery({
    queryKey: maintenanceKey,
    queryFn: async ({ signal }) => (await system.getMaintenance({}, { signal })).maintenance ?? null,
    refetchInterval: 5000,
  })
