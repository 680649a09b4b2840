import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { type ReactNode, useState } from 'react'
import { useMay, useRefusal } from '../app'
import { clients, milliseconds } from '../api'
import type { CheckRestoreResponse } from '../gen/signalbox/v1/system_pb'
import {
  Ago,
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
import { differences, keysText, known, listText, lostText, reportedText, verdict } from './words'

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

type Fact = [string, ReactNode] | undefined

function comparison(check: CheckRestoreResponse): Fact[] {
  const { lost } = check
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
    ['Executions without a row', known(check, 'comparison', () => lostText(check))],
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
    [
      'Rows without an execution',
      known(check, 'comparison', () => plural(differences(check, 'execution_missing'), 'run')),
    ],
    check.failedMissing === undefined
      ? undefined
      : ['Failed since the backup', `${plural(check.failedMissing, 'run')} with execution_missing`],
    ['Behind Temporal', known(check, 'comparison', () => plural(differences(check, 'finished', 'caught_up'), 'run'))],
    ['Only reported', known(check, 'comparison', () => reportedText(check))],
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
    ['Sealing keys', known(check, 'keys', () => keysText(check))],
    [
      'Schedules',
      known(check, 'schedules', () =>
        listText(check.schedules, 'schedule', check.lackingSchedules, 'not as in Temporal'),
      ),
    ],
    [
      'Dispatchers',
      known(check, 'dispatchers', () =>
        listText(check.dispatchers, 'dispatcher', check.unownedDispatchers, 'without an owner'),
      ),
    ],
  ]
}
