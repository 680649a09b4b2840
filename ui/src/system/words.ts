import type { CheckRestoreResponse, Queue, QueueLine, StoreFacts } from '../gen/signalbox/v1/system_pb'
import { durationMilliseconds } from '../api'
import { type Alert, formatCount, formatDuration, plural } from '../kit'

/** verdict returns the result of a check in one line. */
export function verdict(check: CheckRestoreResponse): Alert {
  if (!check.complete) {
    return {
      id: 'result',
      tone: 'amber',
      title: 'The database and Temporal differ, or it is not known whether they do.',
      detail:
        'A server compares them every 30 seconds and corrects what it can. Keep the maintenance mode on until the check is complete.',
    }
  }
  const held = check.maintenance?.active ?? false
  return {
    id: 'result',
    tone: held ? 'amber' : 'blue',
    title: 'The database and Temporal agree.',
    detail: held ? 'End the maintenance to let runs start.' : undefined,
  }
}

/** known returns a value of a part of a check, or why the part is unknown. */
export const known = <T>(check: CheckRestoreResponse, part: string, value: () => T): T | string => {
  const why = check.errors[part]
  return why === undefined ? value() : `unknown: ${why}`
}

/** lostText says how many executions have no row, by their age. Those that started a moment ago may get one. */
export function lostText({ lost }: CheckRestoreResponse): string {
  const { open = 0n, ended = 0n, young = 0n, upToHour = 0n, upToDay = 0n, older = 0n } = lost ?? {}
  const more = young === 0n ? '' : `; ${formatCount(young)} more started too recently to tell`
  return open + ended === 0n && young === 0n
    ? 'none'
    : `${formatCount(open + ended)}: ${formatCount(open)} open, ${formatCount(ended)} ended; started up to an hour ago ${formatCount(upToHour)}, up to a day ${formatCount(upToDay)}, earlier ${formatCount(older)}${more}`
}

/** differences returns how many runs differ from Temporal in one of some ways. */
export const differences = (check: CheckRestoreResponse, ...kinds: string[]): bigint =>
  kinds.reduce((sum, kind) => sum + (check.differences[kind] ?? 0n), 0n)

/** reportedText says what a comparison only reports, because nothing can correct it. */
export const reportedText = (check: CheckRestoreResponse): string => {
  const foreign = (check.comparison?.foreign ?? []).reduce((sum, f) => sum + f.count, 0n)
  return `${plural(foreign, 'execution')} without a published workflow, ${plural(differences(check, 'reopened_in_temporal'), 'run')} that ended here and open in Temporal`
}

/** keysText says which keys have sealed values of open runs, and which of them the server lacks. */
export const keysText = ({ sealingKeys }: CheckRestoreResponse): string =>
  sealingKeys.length === 0
    ? 'nothing was sealed yet'
    : sealingKeys
        .map(
          ({ id, openRuns, configured }) =>
            `${id}: ${plural(openRuns, 'open run')}${configured ? '' : ', this server does not have it'}`,
        )
        .join('; ')

/** listText prints a number of things, and the names of up to five that need attention. */
export const listText = (all: bigint | undefined, noun: string, those: string[], what: string): string =>
  `${plural(all ?? 0n, noun)}${those.length === 0 ? '' : `, ${those.length} ${what}: ${those.slice(0, 5).join(', ')}`}`

/** backlogText prints how many tasks wait in a queue, and for how long. */
export function backlogText({ backlog, backlogAge }: QueueLine): string {
  if (backlog === undefined) return 'unknown'
  const age = durationMilliseconds(backlogAge)
  return backlog === 0n || age === undefined
    ? formatCount(backlog)
    : `${formatCount(backlog)}, the oldest for ${formatDuration(age)}`
}

/** pollersText prints how many pollers a queue has, and how many of them are busy. */
export const pollersText = ({ pollers, busy }: QueueLine): string =>
  `${formatCount(pollers)}${busy > 0n ? `, ${formatCount(busy)} busy` : ''}`

/** unknownLine says why the state of a queue is not known. */
export const unknownLine = ({ error }: Queue): string =>
  `unknown: ${error === '' ? 'the server did not report it' : error}`

const databases: Record<string, string> = { postgres: 'Postgres', sqlite: 'SQLite' }

/** databaseText names a database with its version. */
export const databaseText = ({ driver, version }: StoreFacts): string =>
  `${databases[driver] ?? driver} ${version === '' ? 'of unknown version' : version}`

/** schemaText prints the version of a schema, and the one that the server requires. */
export const schemaText = ({ schema, requiredSchema }: StoreFacts): string =>
  `${schema === undefined ? 'unknown' : String(schema)}, required ${String(requiredSchema)}`

/** poolText prints how much of a pool of connections is used. */
export const poolText = ({ inUse, limit, waits }: StoreFacts['pools'][number]): string =>
  `${formatCount(inUse)} of ${limit === 0n ? 'no limit' : formatCount(limit)} in use, ${plural(waits, 'wait')}`

/** pollingText says whether a set of workers polls. */
export const pollingText = ({ polling, running }: { polling: boolean; running: boolean }): string => {
  if (polling) return 'yes'
  return running ? 'no: it runs and does not poll' : 'no: it is stopped'
}
