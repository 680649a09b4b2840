import { hashKey, keepPreviousData, useInfiniteQuery } from '@tanstack/react-query'
import { useCallback, useMemo } from 'react'

/** One page of a list of the API. */
export interface ListPage<Row> {
  rows: Row[]
  nextPageToken: string
  /** What the server could not read, one line each. */
  errors?: string[]
}

/** usePages loads a list of the API page by page. The first pages are read again each `poll` milliseconds while no more are loaded. */
export function usePages<Row>(
  key: readonly unknown[],
  load: (pageToken: string, signal: AbortSignal) => Promise<ListPage<Row>>,
  poll = 5000,
) {
  const query = useInfiniteQuery({
    queryKey: key,
    queryFn: ({ pageParam, signal }) => load(pageParam, signal),
    initialPageParam: '',
    getNextPageParam: (last: ListPage<Row>) => (last.nextPageToken === '' ? undefined : last.nextPageToken),
    refetchInterval: ({ state }) => ((state.data?.pages.length ?? 1) <= 2 ? poll : false),
    placeholderData: keepPreviousData,
  })
  const pages = query.data?.pages
  const rows = useMemo(() => pages?.flatMap((page) => page.rows) ?? [], [pages])
  const errors = useMemo(() => [...new Set(pages?.flatMap((page) => page.errors ?? []) ?? [])], [pages])
  const { hasNextPage, isFetchingNextPage, fetchNextPage } = query
  const more = useCallback(() => {
    if (hasNextPage && !isFetchingNextPage) void fetchNextPage()
  }, [hasNextPage, isFetchingNextPage, fetchNextPage])
  /** Names the list whose rows these are: while another one is being read, the rows of the last one are shown. */
  const view = `${hashKey(key)}${query.isPlaceholderData ? ' before' : ''}`
  return {
    view,
    rows,
    errors,
    more,
    hasMore: hasNextPage,
    isPending: query.isPending,
    error: query.error,
    failed: query.isError && pages === undefined,
    retry: () => {
      void query.refetch()
    },
  }
}

export type Pages<Row> = ReturnType<typeof usePages<Row>>
