import { useQueryClient } from '@tanstack/react-query'
import { useEffect, useMemo, useSyncExternalStore } from 'react'
import { RunFeed } from './feed'
import { type RunFilter, writeFilter } from './filter'

/** useFeed returns the feed of a filter and what it has: the one that an earlier visit of the page left, or a new one. */
export function useFeed(project: string, filter: RunFilter) {
  const queries = useQueryClient()
  const key = JSON.stringify(writeFilter(filter))
  const feed = useMemo(
    () => queries.getQueryData<RunFeed>(['run-feed', project, key]) ?? new RunFeed(project, filter),
    // The key stands for the filter, which is a new object at each render.
    [queries, project, key], // eslint-disable-line react-hooks/exhaustive-deps
  )
  useEffect(() => {
    const close = feed.open()
    return () => {
      close()
      queries.setQueryData(['run-feed', project, key], feed)
    }
  }, [feed, queries, project, key])
  const state = useSyncExternalStore(feed.subscribe, feed.snapshot)
  return { feed, state, key }
}
