import { useQuery, useQueryClient } from '@tanstack/react-query'
import { Link, useNavigate, useParams } from '@tanstack/react-router'
import { useState } from 'react'
import { chosenTab, useFilters, useProject, useRefusal, workflowParams } from '../app'
import { clients, milliseconds, usePages } from '../api'
import type { Function, GetFunctionResponse } from '../gen/signalbox/v1/workflow_pb'
import {
  ActionDialog,
  Button,
  command,
  CopyButton,
  ErrorView,
  Facts,
  formatBytes,
  Id,
  Menu,
  Page,
  PageHead,
  Panel,
  restCall,
  Skeleton,
  StateView,
  Table,
  Tabs,
  Time,
  toast,
  useLinkRefusal,
} from '../kit'
import { JsonView } from '../payload'
import { callersOf } from './function'
import { Code } from './Source'
import styles from './workflows.module.css'

const tabs = [
  { id: 'overview', label: 'Overview' },
  { id: 'source', label: 'Source' },
  { id: 'versions', label: 'Versions' },
]

/** One function of a project: what it is called with, its source, its versions, and the workflows that call it. */
export function FunctionPage() {
  const project = useProject()
  const { name = '' }: { name?: string } = useParams({ strict: false })
  const { values, change } = useFilters(['tab', 'version'])
  const [dialog, setDialog] = useState<'' | 'version' | 'all'>('')
  const query = useQuery({
    queryKey: ['function', project, name, values.version],
    queryFn: ({ signal }) => clients.workflows.getFunction({ project, name, version: values.version }, { signal }),
    refetchInterval: 15_000,
  })
  const data = query.data
  const shown = data?.function
  const tab = chosenTab(tabs, values.tab, 'overview')
  return (
    <Page title={name}>
      <PageHead
        title={
          <>
            <Link to="/p/$project/workflows" params={{ project }}>
              Workflows
            </Link>{' '}
            /{' '}
            <Link to="/p/$project/functions" params={{ project }}>
              Functions
            </Link>{' '}
            / {name}
          </>
        }
        actions={shown === undefined ? undefined : <Actions project={project} of={shown} onDialog={setDialog} />}
      >
        {shown === undefined ? null : <span>version {shown.version}</span>}
      </PageHead>
      {query.isError && data === undefined ? (
        <ErrorView error={query.error} what={`Function ${name}`} onRetry={() => void query.refetch()} />
      ) : data === undefined || shown === undefined ? (
        <Skeleton rows={12} />
      ) : (
        <Tabs
          label="Parts of the function"
          value={tab}
          onChange={(id) => change({ tab: id === 'overview' ? undefined : id })}
          tabs={tabs}
        >
          {tab === 'source' ? (
            <Panel
              title={`Version ${shown.version}`}
              actions={<CopyButton text={data.source} label="Copy the source" />}
              flush
            >
              <Code text={data.source} />
            </Panel>
          ) : tab === 'versions' ? (
            <Versions project={project} name={name} />
          ) : (
            <Overview project={project} of={shown} data={data} />
          )}
        </Tabs>
      )}
      {dialog === '' || shown === undefined ? null : (
        <DeleteDialog project={project} of={shown} all={dialog === 'all'} onClose={() => setDialog('')} />
      )}
    </Page>
  )
}

function Actions({
  project,
  of,
  onDialog,
}: {
  project: string
  of: Function
  onDialog: (dialog: 'version' | 'all') => void
}) {
  const refusal = useRefusal()
  const refused = useLinkRefusal() ?? refusal('publisher', project)
  return (
    <Menu
      trigger={<Button>More</Button>}
      items={[
        { label: `Delete version ${of.version}…`, danger: true, refused, onSelect: () => onDialog('version') },
        { label: 'Delete all versions…', danger: true, refused, onSelect: () => onDialog('all') },
      ]}
    />
  )
}

function DeleteDialog({
  project,
  of,
  all,
  onClose,
}: {
  project: string
  of: Function
  all: boolean
  onClose: () => void
}) {
  const queries = useQueryClient()
  const navigate = useNavigate()
  const request = { project, name: of.name, version: all ? '' : of.version }
  const what = all ? `all versions of ${of.name}` : `${of.name}:${of.version}`
  return (
    <ActionDialog
      title={`Delete ${what}`}
      description="Workflows that were published with it keep it, and so do their runs. New versions of workflows cannot call it."
      action="Delete"
      danger
      reason="none"
      run={() => clients.workflows.deleteFunction(request)}
      cli={() => command(['function', 'delete', all ? of.name : `${of.name}:${of.version}`], { project })}
      rest={() => restCall('DELETE', '/v1/projects/{project}/functions/{name}', request)}
      onDone={() => {
        toast(`Deleted ${what}.`)
        void queries.invalidateQueries({ queryKey: ['functions', project] })
        onClose()
        void navigate({ to: '/p/$project/functions', params: { project } })
      }}
      onClose={onClose}
    />
  )
}

function Overview({ project, of, data }: { project: string; of: Function; data: GetFunctionResponse }) {
  const reference = `${of.name}:${of.version}@default`
  return (
    <>
      <Panel title="Function">
        <Facts
          facts={[
            [
              'Call',
              <span key="c" className="mono">
                {reference} <CopyButton text={reference} label="Copy the name for calls" />
              </span>,
            ],
            ['Size', formatBytes(Number(of.size))],
            ['Hash', <Id key="h" id={of.hash} />],
            ['Published', <Time key="t" at={milliseconds(of.publishTime)} />],
            ['Published by', of.publisher],
          ]}
        />
      </Panel>
      <Panel title="Workflows that call this version" flush>
        <Callers project={project} reference={reference} data={data} />
      </Panel>
      <Panel title="Input schema">
        <JsonView
          json={data.inputSchema?.json}
          label="the input schema"
          none="The source has no schema: any input is accepted."
        />
      </Panel>
      <Panel title="Output schema">
        <JsonView
          json={data.outputSchema?.json}
          label="the output schema"
          none="The source has no schema: the output is not checked."
        />
      </Panel>
    </>
  )
}

function Callers({ project, reference, data }: { project: string; reference: string; data: GetFunctionResponse }) {
  const callers = callersOf(data.usedBy)
  if (callers.length === 0)
    return (
      <StateView kind="empty" title="No published workflow calls it.">
        A workflow calls it with <code>call: {reference}</code>.
      </StateView>
    )
  return (
    <>
      <Table heads={['Workflow', 'Versions that call it', 'Its latest version calls it']}>
        {callers.map(({ workflow, versions, latest }) => (
          <tr key={workflow}>
            <td>
              <Link to="/p/$project/workflows/$namespace/$name" params={workflowParams(project, workflow)}>
                {workflow}
              </Link>
            </td>
            <td>
              {versions.map((version, i) => (
                <span key={version}>
                  {i === 0 ? '' : ', '}
                  <Link
                    to="/p/$project/workflows/$namespace/$name"
                    params={workflowParams(project, workflow)}
                    search={{ tab: 'source', version } as never}
                  >
                    {version}
                  </Link>
                </span>
              ))}
            </td>
            <td>{latest ? 'yes' : 'no'}</td>
          </tr>
        ))}
      </Table>
      {data.usedBy.length < 200 ? null : <div className={styles.more}>The 200 newest versions are shown.</div>}
    </>
  )
}

function Versions({ project, name }: { project: string; name: string }) {
  const list = usePages(
    ['functions', project, 'versions', name],
    async (pageToken, signal) => {
      const page = await clients.workflows.listFunctions({ project, name, pageSize: 50, pageToken }, { signal })
      return { rows: page.functions, nextPageToken: page.nextPageToken }
    },
    60_000,
  )
  if (list.failed) return <ErrorView error={list.error} what="The versions" onRetry={list.retry} />
  if (list.isPending) return <Skeleton rows={6} />
  return (
    <Panel title="Versions" flush>
      <Table heads={['Version', 'Published', 'By', 'Size', 'Hash']}>
        {list.rows.map((f) => (
          <tr key={f.version}>
            <td>
              <Link
                to="/p/$project/functions/$name"
                params={{ project, name }}
                search={{ version: f.version } as never}
              >
                {f.version}
              </Link>
            </td>
            <td>
              <Time at={milliseconds(f.publishTime)} />
            </td>
            <td>{f.publisher}</td>
            <td>{formatBytes(Number(f.size))}</td>
            <td>
              <Id id={f.hash} />
            </td>
          </tr>
        ))}
      </Table>
      {list.hasMore ? (
        <div className={styles.more}>
          <Button onClick={list.more}>Older versions</Button>
        </div>
      ) : null}
    </Panel>
  )
}
