import { now, useNow } from '../api'
import { formatAgo, formatCountdown, formatDistance, formatDuration, formatFullTime, formatTime } from './format'
import { usePreferences } from './preferences'
import { Tooltip } from './Tooltip'

/**
 * A time, with the full date in both zones and its age as tooltip. A time that is not known is a dash. `plain` has the browser's own
 * tooltip, which costs nothing: for tables.
 */
export function Time({
  at,
  unknown = '–',
  plain = false,
}: {
  at: number | undefined
  unknown?: string
  plain?: boolean
}) {
  const { zone } = usePreferences()
  if (at === undefined) return <span>{unknown}</span>
  if (plain)
    return (
      <time
        dateTime={new Date(at).toISOString()}
        title={`${formatFullTime(at, 'utc')}\n${formatFullTime(at, 'local')}`}
      >
        {formatTime(at, now(), zone)}
      </time>
    )
  const text = (
    <>
      {formatFullTime(at, 'utc')}
      <br />
      {formatFullTime(at, 'local')}
      <br />
      {formatDistance(at, now())}
    </>
  )
  return (
    <Tooltip text={text}>
      <time dateTime={new Date(at).toISOString()}>{formatTime(at, now(), zone)}</time>
    </Tooltip>
  )
}

/** How long ago a time was, by the server's clock, renewed each second. */
export function Ago({ at, unknown = 'unknown' }: { at: number | undefined; unknown?: string }) {
  const time = useNow()
  if (at === undefined) return <span>{unknown}</span>
  return (
    <time dateTime={new Date(at).toISOString()} title={formatFullTime(at, 'utc')}>
      {formatAgo(time - at)}
    </time>
  )
}

/** The time from `from` to `to`, or until now, renewed each second. */
export function Elapsed({ from, to }: { from: number | undefined; to?: number | undefined }) {
  const time = useNow(to === undefined && from !== undefined)
  if (from === undefined) return <span>–</span>
  return <span>{formatDuration((to ?? time) - from)}</span>
}

/** Since when something is so, and for how long. */
export const Since = ({ at }: { at: number | undefined }) => (
  <>
    since <Time at={at} unknown="unknown" />
    {at === undefined ? null : (
      <>
        {' '}
        (<Elapsed from={at} />)
      </>
    )}
  </>
)

/** The time until `at`, renewed each second: 0:17. */
export function Countdown({ at, unknown = 'unknown' }: { at: number | undefined; unknown?: string }) {
  const time = useNow()
  return <span>{at === undefined ? unknown : formatCountdown(at - time)}</span>
}
