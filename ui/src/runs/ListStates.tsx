import { useQueries } from '@tanstack/react-query'
import { callError, clients, now } from '../api'
import { Button, command, CopyButton, ErrorView, formatCount, plural, StateView, usePreferences } from '../kit'
import { total } from './Counts'
import { isOfFilter, type ListEnd } from './ends'
import { countRequest, filterChips, noFilter, type RunFilter, writeFilter } from './filter'
import styles from './runs.module.css'

/** The list could not be read: because of its filter, or for another reason. */
export function ListError({
  error,
  filter,
  onRetry,
  onClear,
}: {
  error: unknown
  filter: RunFilter
  onRetry: () => void
  onClear: () => void
}) {
  if (isOfFilter(error, filter)) {
    const e = callError(error)
    return (
      <StateView kind="no-match" title={e.message} actions={<Button onClick={onClear}>Clear the filter</Button>}>
        {e.reason === '' ? null : <code>{e.reason}</code>}
      </StateView>
    )
  }
  return <ErrorView error={error} what="Runs" onRetry={onRetry} />
}

/** What to do in a project without runs. */
export function NoRuns({ project, onStart }: { project: string; onStart: () => void }) {
  const cli = command(['run', 'start', 'NAME'], { project, input: '{}' })
  return (
    <StateView kind="empty" title={`No runs in ${project} yet`} actions={<Button onClick={onStart}>Run…</Button>}>
      Start one with <code>{cli}</code> <CopyButton text={cli} label="Copy the command" />
    </StateView>
  )
}

/** What to do when no run matches: each part of the filter, with the number of runs that match without it. */
export function NoMatch({
  project,
  filter,
  onChange,
}: {
  project: string
  filter: RunFilter
  onChange: (change: Partial<RunFilter>) => void
}) {
  const { zone } = usePreferences()
  const chips = filterChips(filter, zone)
  const counts = useQueries({
    queries: chips.map(({ without }) => {
      const wider = { ...filter, ...without }
      return {
        queryKey: ['run-total', project, JSON.stringify(writeFilter(wider))],
        queryFn: async ({ signal }: { signal: AbortSignal }) =>
          total(await clients.runs.countRuns(countRequest(project, wider, now()), { signal }), wider) ?? null,
        retry: false,
      }
    }),
  })
  return (
    <StateView
      kind="no-match"
      title="No run matches the filter"
      actions={
        <>
          {chips.map(({ name, text, without }, i) => {
            const found = counts[i]?.data
            return (
              <Button key={name} onClick={() => onChange(without)}>
                Without “{text}”{found ? `: ${formatCount(found.count, found.more)}` : ''}
              </Button>
            )
          })}
          <Button onClick={() => onChange({ ...noFilter, order: filter.order })}>Clear the filter</Button>
        </>
      }
    />
  )
}

/** What is below the last row. */
export function ListFoot({
  count,
  end,
  onContinue,
}: {
  count: number
  end: ListEnd
  onContinue: (change: Partial<RunFilter>) => void
}) {
  if (end.kind === 'longest') return `The longest ${plural(count, 'run')}. A narrower filter shows others.`
  if (end.kind === 'more') return 'Reading more…'
  if (end.kind === 'all') return `${plural(count, 'run')}, all that match`
  return (
    <span className={styles.cut}>
      {plural(count, 'run')} are kept here. <Button onClick={() => onContinue(end.change)}>Go on from here</Button>
    </span>
  )
}
