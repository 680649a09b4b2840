import type { AttemptLog, ListLogsResponse, LogStream } from '../gen/signalbox/v1/run_pb'
import { formatBytes } from '../kit'

/** allLogs reads all pages of the logs of a step; unknown says why those of a running program are not there. */
export async function allLogs(
  read: (pageToken: string) => Promise<ListLogsResponse>,
): Promise<{ logs: AttemptLog[]; unknown: string }> {
  const logs: AttemptLog[] = []
  for (let pageToken = ''; ;) {
    const page = await read(pageToken)
    logs.push(...page.logs)
    if (page.nextPageToken === '') return { logs, unknown: page.runningError }
    pageToken = page.nextPageToken
  }
}

/** streamsOf returns the streams of a log with anything in them, by name. */
export const streamsOf = (log: AttemptLog): { name: string; stream: LogStream }[] =>
  [
    { name: 'Standard output', stream: log.stdout },
    { name: 'Standard error', stream: log.stderr },
  ].flatMap(({ name, stream }) =>
    stream === undefined || (stream.text === '' && stream.skippedBytes === 0n) ? [] : [{ name, stream }],
  )

/** skippedText says how much of a stream is not kept; empty if all of it is. */
export const skippedText = ({ skippedBytes }: LogStream): string =>
  skippedBytes === 0n ? '' : `the first ${formatBytes(Number(skippedBytes))} are not kept`
