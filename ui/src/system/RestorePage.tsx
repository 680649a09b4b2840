import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { type ReactNode, useState } from 'react'
import { useMay, useRefusal } from '../app'
import { clients, milliseconds } from '../api'
import type { CheckRestoreResponse } from '../gen/signalbox/v1/system_pb'
import {
  Ago,
  type Alert,
  AlertSlot,
  Button,
  ErrorView,
  Facts,
  formatCount,
  Page,
  PageHead,
  Panel,
  plural,
  Skeleton,
  Time,
  useLinkRefusal,
} from '../kit'
import { MaintenancePanel } from './MaintenancePanel'
import { ReconcileRunsDialog } from './ReconcileRunsDialog'

/** What a database that was restored from a backup lacks, compared with Temporal. */
export function RestorePage() {
  const [correcting, setCorrecting] = useState(false)
  const refusal = useRefusal()
  const offline = useLinkRefusal()
  const refused = offline ?? refusal('admin', '*')
  const may = useMay()
  const query = useQuery({
    queryKey: ['restore-check'],
    queryFn: ({ signal }) => clients.system.checkRestore({}, { signal }),
    enabled: may('admin', '*') && refused === undefined,
    staleTime: 60_000,
  })
  const check = query.data
  return (
    <Page title="Restore check">
      <PageHead
        title="Restore check"
        actions={
          <>
            <Button
              refused={refused ?? (query.isFetching ? 'The check is in progress.' : undefined)}
              onClick={() => void query.refetch()}
            >
              Check again
            </Button>
            <Button refused={refused} onClick={() => setCorrecting(true)}>
              Reconcile runs…
            </Button>
          </>
        }
      >
        {check === undefined ? null : (
          <span>
            checked <Ago at={milliseconds(check.time)} />
          </span>
        )}
      </PageHead>
      {refused !== undefined && check === undefined ? (
        <Panel title="Comparison">Unknown: {refused}</Panel>
      ) : query.isError && check === undefined ? (
        <ErrorView error={query.error} what="The check" onRetry={() => void query.refetch()} />
      ) : check === undefined ? (
        <Skeleton rows={12} />
      ) : (
        <>
          <AlertSlot alerts={[verdict(check)]} />
          <Panel title="Comparison">
            <Facts facts={comparison(check)} />
          </Panel>
          <Panel title="Beside the runs">
            <Facts facts={others(check)} />
          </Panel>
        </>
      )}
      <MaintenancePanel refused={refused} />
      {correcting ? <ReconcileRunsDialog onClose={() => setCorrecting(false)} /> : null}
    </Page>
  )
}

/** The result in one line. */
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

/** A value of a part of the check, or why the part is unknown. */
const known = (check: CheckRestoreResponse, part: string, value: () => ReactNode): ReactNode => {
  const why = check.errors[part]
  return why === undefined ? value() : `unknown: ${why}`
}

type Fact = [string, ReactNode] | undefined

function comparison(check: CheckRestoreResponse): Fact[] {
  const { lost } = check
  const count = (kind: string) => check.differences[kind] ?? 0n
  const foreign = (check.comparison?.foreign ?? []).reduce((sum, f) => sum + f.count, 0n)
  return [
    [
      'Restore',
      known(check, 'restore', () =>
        check.restoredTime === undefined ? (
          'no restore was found'
        ) : (
          <>
            found <Time at={milliseconds(check.restoredTime)} />; the backup is of{' '}
            <Time at={milliseconds(check.backupTime)} /> or later
          </>
        ),
      ),
    ],
    ['Newest row', known(check, 'rows', () => <Time at={milliseconds(check.newestRowTime)} unknown="there is none" />)],
    [
      'Newest execution without a row',
      known(check, 'comparison', () => <Time at={milliseconds(lost?.newestTime)} unknown="there is none" />),
    ],
    [
      'Executions without a row',
      known(check, 'comparison', () => {
        const all = (lost?.open ?? 0n) + (lost?.ended ?? 0n)
        const young =
          (lost?.young ?? 0n) === 0n ? '' : `; ${formatCount(lost?.young ?? 0n)} more started too recently to tell`
        return all === 0n && young === ''
          ? 'none'
          : `${formatCount(all)}: ${formatCount(lost?.open ?? 0n)} open, ${formatCount(lost?.ended ?? 0n)} ended; started up to an hour ago ${formatCount(lost?.upToHour ?? 0n)}, up to a day ${formatCount(lost?.upToDay ?? 0n)}, earlier ${formatCount(lost?.older ?? 0n)}${young}`
      }),
    ],
    check.comparison?.searchedUntil === undefined
      ? undefined
      : [
          'Not searched yet',
          <>
            executions that ended after <Time at={milliseconds(check.comparison.searchedUntil)} />
          </>,
        ],
    lost?.forgottenFrom === undefined
      ? undefined
      : [
          'Forgotten by Temporal',
          <>
            runs that ended from <Time at={milliseconds(lost.forgottenFrom)} /> to{' '}
            <Time at={milliseconds(lost.forgottenUntil)} /> are unknown; a start that repeats one of their request IDs
            starts a new run
          </>,
        ],
    check.adopted === undefined ? undefined : ['Adopted since the backup', plural(check.adopted, 'run')],
    ['Rows without an execution', known(check, 'comparison', () => plural(count('execution_missing'), 'run'))],
    check.failedMissing === undefined
      ? undefined
      : ['Failed since the backup', `${plural(check.failedMissing, 'run')} with execution_missing`],
    ['Behind Temporal', known(check, 'comparison', () => plural(count('finished') + count('caught_up'), 'run'))],
    [
      'Only reported',
      known(
        check,
        'comparison',
        () =>
          `${plural(foreign, 'execution')} without a published workflow, ${plural(count('reopened_in_temporal'), 'run')} that ended here and open in Temporal`,
      ),
    ],
    (check.comparison?.failed ?? 0n) === 0n
      ? undefined
      : ['Not compared', `${plural(check.comparison?.failed ?? 0n, 'run')}: ${check.comparison?.failedBecause ?? ''}`],
    (check.comparison?.withheld ?? 0n) === 0n
      ? undefined
      : [
          'Left alone',
          `${plural(check.comparison?.withheld ?? 0n, 'open run')}: ${check.comparison?.withheldBecause ?? ''}`,
        ],
  ]
}

function others(check: CheckRestoreResponse): Fact[] {
  const list = (all: bigint | undefined, noun: string, those: string[], what: string) =>
    `${plural(all ?? 0n, noun)}${those.length === 0 ? '' : `, ${those.length} ${what}: ${those.slice(0, 5).join(', ')}`}`
  return [
    [
      'Large values',
      known(check, 'payloads', () => {
        const { runs = 0n, searched = 0n, sampleRunIds = [], allSearched = false } = check.lostPayloads ?? {}
        const others = allSearched ? '' : '; there was no time for the others'
        return runs === 0n ? (
          `none is lost of the ${plural(searched, 'open run')} searched${others}`
        ) : (
          <>
            {formatCount(runs)} of {plural(searched, 'open run')} searched <Link to="/problems">get stuck</Link> with
            PAYLOAD_MISSING: {sampleRunIds.join(', ')}
            {others}
          </>
        )
      }),
    ],
    [
      'Sealing keys',
      known(check, 'keys', () =>
        check.sealingKeys.length === 0
          ? 'nothing was sealed yet'
          : check.sealingKeys
              .map(
                (k) =>
                  `${k.id}: ${plural(k.openRuns, 'open run')}${k.configured ? '' : ', this server does not have it'}`,
              )
              .join('; '),
      ),
    ],
    [
      'Schedules',
      known(check, 'schedules', () => list(check.schedules, 'schedule', check.lackingSchedules, 'not as in Temporal')),
    ],
    [
      'Dispatchers',
      known(check, 'dispatchers', () =>
        list(check.dispatchers, 'dispatcher', check.unownedDispatchers, 'without an owner'),
      ),
    ],
  ]
}
