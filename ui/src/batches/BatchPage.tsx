import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { Link, useParams } from '@tanstack/react-router'
import { RunId, useFilters, useProject, useRefusal } from '../app'
import { clients, milliseconds, usePages } from '../api'
import type { BatchItem } from '../gen/signalbox/v1/batch_pb'
import {
  AlertSlot,
  Button,
  type Column,
  command,
  CopyCommand,
  Cut,
  Elapsed,
  ErrorView,
  Facts,
  FilterFields,
  formatCount,
  Id,
  inWords,
  ListView,
  Page,
  PageHead,
  Panel,
  shortId,
  Skeleton,
  StateView,
  StatusBadge,
  statusOptions,
  Time,
  toastError,
  useLinkRefusal,
  usePreferences,
} from '../kit'
import { conditions } from './conditions'
import { isOpen, pauseRefusal, retryRefusal, shownStatus } from './outcomes'
import { StartedRuns } from './StartedRuns'
import { Progress } from './Progress'

const columns = (project: string, replays: boolean): Column<BatchItem>[] => {
  const run = (id: string) => (id === '' ? '–' : <RunId project={project} id={id} />)
  return [
    { id: 'status', title: 'Result', width: 120, cell: (i) => <StatusBadge of="item" status={i.status} /> },
    { id: 'run', title: 'Run', width: 150, cell: (i) => run(i.runId) },
    ...(replays
      ? [
          { id: 'new', title: 'New run', width: 150, cell: (i: BatchItem) => run(i.newRunId) },
          {
            id: 'outcome',
            title: 'What became of it',
            width: 170,
            cell: (i: BatchItem) => (i.outcome === '' ? '–' : <StatusBadge of="outcome" status={i.outcome} />),
          },
        ]
      : []),
    {
      id: 'error',
      title: 'Why',
      width: 300,
      grow: true,
      cell: (i) => <Cut text={i.error} />,
    },
    { id: 'end', title: 'Done', width: 100, cell: (i) => <Time at={milliseconds(i.endTime)} /> },
  ]
}

/** One batch: its progress and the result of each run. */
export function BatchPage() {
  const project = useProject()
  const { zone } = usePreferences()
  const { id = '' }: { id?: string } = useParams({ strict: false })
  const { values, change, filtered, clear } = useFilters(['status', 'outcome'])
  const refusal = useRefusal()
  const offline = useLinkRefusal()
  const queries = useQueryClient()
  const query = useQuery({
    queryKey: ['batch', project, id],
    queryFn: ({ signal }) => clients.batches.getBatch({ project, id }, { signal }),
    refetchInterval: ({ state }) => (state.data?.batch?.status === 'completed' ? false : 1500),
  })
  const batch = query.data?.batch
  const items = usePages(
    ['batch-items', project, id, values.status, values.outcome, batch?.status],
    async (pageToken, signal) => {
      const page = await clients.batches.listBatchItems(
        { project, id, pageSize: 200, pageToken, ...values },
        { signal },
      )
      return { rows: page.items, nextPageToken: page.nextPageToken }
    },
    isOpen(batch) ? 2000 : 60_000,
  )
  const act = useMutation({
    mutationFn: async (what: 'pause' | 'unpause' | 'retry'): Promise<unknown> =>
      ({ pause: clients.batches.pauseBatch, unpause: clients.batches.unpauseBatch, retry: clients.batches.retryBatch })[
        what
      ]({ project, id }),
    onSuccess: () => void queries.invalidateQueries({ queryKey: ['batch', project, id] }),
    onError: toastError,
  })
  const denied = offline ?? refusal('operator', project)
  return (
    <Page title={`Batch ${shortId(id)}`} fill>
      <PageHead
        title={
          <>
            <Link to="/p/$project/batches" params={{ project }}>
              Batches
            </Link>{' '}
            / {batch === undefined ? shortId(id) : inWords(batch.action)}
          </>
        }
        actions={
          <>
            <CopyCommand cli={command(['batch', 'show', id], { project })} />
            {batch?.status === 'paused' ? (
              <Button refused={denied} busy={act.isPending} onClick={() => act.mutate('unpause')}>
                Go on
              </Button>
            ) : (
              <Button refused={denied ?? pauseRefusal(batch)} busy={act.isPending} onClick={() => act.mutate('pause')}>
                Pause
              </Button>
            )}
            <Button refused={denied ?? retryRefusal(batch)} busy={act.isPending} onClick={() => act.mutate('retry')}>
              Retry the failed
            </Button>
          </>
        }
      >
        {batch === undefined ? null : <StatusBadge of="batch" status={shownStatus(batch)} size="large" />}
        <Id id={id} />
      </PageHead>
      {query.isError && batch === undefined ? (
        <ErrorView error={query.error} what={`Batch ${shortId(id)}`} onRetry={() => void query.refetch()} />
      ) : batch === undefined ? (
        <Skeleton rows={10} />
      ) : (
        <>
          <AlertSlot
            alerts={
              batch.waiting === ''
                ? []
                : [
                    {
                      id: 'waiting',
                      tone: 'amber',
                      title: 'The batch makes no progress at present.',
                      detail: batch.waiting,
                    },
                  ]
            }
          />
          <Panel>
            <Facts
              facts={[
                ['Progress', <Progress key="p" batch={batch} />],
                batch.outcomes === undefined ? undefined : ['Runs started', <StartedRuns key="o" batch={batch} />],
                ['Runs', formatCount(batch.total)],
                ['Reason', batch.reason],
                ['Actor', batch.actor],
                ['Selected by', conditions(batch.filter, zone)],
                ['Rate', `${batch.rate} per second at most`],
                ['Started', <Time key="t" at={milliseconds(batch.createTime)} />],
                [
                  'Duration',
                  <Elapsed key="d" from={milliseconds(batch.createTime)} to={milliseconds(batch.endTime)} />,
                ],
                batch.action === 'replay'
                  ? ['Version', batch.version === '' ? 'of each run' : batch.version]
                  : undefined,
              ]}
            />
          </Panel>
          <FilterFields
            fields={[
              {
                name: 'status',
                label: 'Result',
                options: statusOptions('item'),
              },
              ...(batch.outcomes === undefined
                ? []
                : [
                    {
                      name: 'outcome',
                      label: 'What became of it',
                      options: statusOptions('outcome'),
                    },
                  ]),
            ]}
            values={values}
            onChange={change}
          />
          <ListView
            list={items}
            what="items"
            columns={columns(project, batch.action === 'replay')}
            rowKey={(i) => i.runId}
            filtered={filtered}
            onClear={clear}
            empty={
              <StateView
                kind="empty"
                title={batch.status === 'selecting' ? 'The runs are being selected.' : 'No run matched.'}
              />
            }
          />
        </>
      )}
    </Page>
  )
}
