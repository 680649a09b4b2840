import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { workflowParams } from '../app'
import { clients, milliseconds, usePages } from '../api'
import type { WorkflowVersion } from '../gen/signalbox/v1/workflow_pb'
import { Button, ErrorView, Id, Panel, Select, Skeleton, StateView, Table, Time } from '../kit'
import { Diff } from './Source'
import styles from './workflows.module.css'

/** The published versions, newest first, and the difference between two of them. */
export function Versions({
  project,
  name,
  latest,
  from,
  to,
  onCompare,
}: {
  project: string
  name: string
  latest: string
  from: string
  to: string
  onCompare: (from: string | undefined, to: string | undefined) => void
}) {
  const list = usePages(
    ['versions', project, name, latest],
    async (pageToken, signal) => {
      const page = await clients.workflows.listVersions(
        { project, workflow: name, pageSize: 50, pageToken },
        { signal },
      )
      return { rows: page.versions, nextPageToken: page.nextPageToken }
    },
    60_000,
  )
  if (list.failed) return <ErrorView error={list.error} what="The versions" onRetry={list.retry} />
  if (list.isPending) return <Skeleton rows={6} />
  if (list.rows.length === 0) return <StateView kind="empty" title="Nothing is published yet." />
  const options = list.rows.map((v) => ({ value: v.version, label: v.version }))
  return (
    <div className={styles.sources}>
      <Panel title="Versions" flush>
        <Table heads={['Version', 'Published', 'By', 'Hash', 'Compare']}>
          {list.rows.map((v, i) => (
            <Row
              key={v.version}
              project={project}
              name={name}
              version={v}
              before={list.rows[i + 1]}
              onCompare={onCompare}
            />
          ))}
        </Table>
        {list.hasMore ? (
          <div className={styles.more}>
            <Button onClick={list.more}>Older versions</Button>
          </div>
        ) : null}
      </Panel>
      {list.rows.length < 2 ? null : (
        <Panel
          title="Difference"
          actions={
            <div className={styles.pick}>
              <Select
                label="From"
                labelHidden
                options={[{ value: '', label: 'From version' }, ...options]}
                value={from}
                onChange={(e) => onCompare(e.target.value, to)}
              />
              <Select
                label="To"
                labelHidden
                options={[{ value: '', label: 'To version' }, ...options]}
                value={to}
                onChange={(e) => onCompare(from, e.target.value)}
              />
            </div>
          }
          flush
        >
          <Difference project={project} name={name} from={from} to={to} />
        </Panel>
      )}
    </div>
  )
}

function Row({
  project,
  name,
  version: v,
  before,
  onCompare,
}: {
  project: string
  name: string
  version: WorkflowVersion
  before: WorkflowVersion | undefined
  onCompare: (from: string, to: string) => void
}) {
  return (
    <tr>
      <td>
        <Link
          to="/p/$project/workflows/$namespace/$name"
          params={workflowParams(project, name)}
          search={{ tab: 'source', version: v.version } as never}
        >
          {v.version}
        </Link>
      </td>
      <td>
        <Time at={milliseconds(v.publishTime)} />
      </td>
      <td>{v.publisher}</td>
      <td>
        <Id id={v.hash} />
      </td>
      <td>
        {before === undefined ? (
          'the first one'
        ) : (
          <Button kind="quiet" onClick={() => onCompare(before.version, v.version)}>
            with {before.version}
          </Button>
        )}
      </td>
    </tr>
  )
}

function Difference({ project, name, from, to }: { project: string; name: string; from: string; to: string }) {
  const ready = from !== '' && to !== ''
  const query = useQuery({
    queryKey: ['diff', project, name, from, to],
    queryFn: ({ signal }) => clients.workflows.diffVersions({ project, workflow: name, from, to }, { signal }),
    enabled: ready,
    staleTime: Number.POSITIVE_INFINITY,
  })
  if (!ready) return <StateView kind="no-match" title="Choose two versions." />
  if (query.isError) return <ErrorView error={query.error} what="The difference" onRetry={() => void query.refetch()} />
  if (query.data === undefined)
    return (
      <div className={styles.more}>
        <Skeleton rows={6} />
      </div>
    )
  return query.data.unified === '' ? (
    <StateView kind="empty" title="The two documents are equal." />
  ) : (
    <Diff text={query.data.unified} />
  )
}
