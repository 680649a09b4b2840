import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { Link, useNavigate, useParams } from '@tanstack/react-router'
import { useState } from 'react'
import { chosenTab, useFilters, useProject, useRefusal } from '../app'
import { clients, milliseconds } from '../api'
import type { GetWorkflowResponse, Workflow } from '../gen/signalbox/v1/workflow_pb'
import {
  ActionDialog,
  AlertSlot,
  Button,
  Chip,
  command,
  ErrorView,
  Facts,
  Menu,
  orDash,
  Page,
  PageHead,
  Panel,
  restCall,
  Skeleton,
  StatusBadge,
  Tabs,
  Time,
  toast,
  toastError,
  useLinkRefusal,
} from '../kit'
import { StartDialog } from '../start'
import { Source } from './Source'
import { Grid, Statistics } from './Statistics'
import { StopDialog } from './StopDialog'
import { Triggers } from './Triggers'
import { Versions } from './Versions'
import { unpublished, workflowAlerts } from './workflow'

const tabs = [
  { id: 'overview', label: 'Overview' },
  { id: 'source', label: 'Source' },
  { id: 'versions', label: 'Versions' },
  { id: 'triggers', label: 'Triggers' },
]

/** One workflow: its versions and what changed between them, what starts it, and its controls. */
export function WorkflowPage() {
  const project = useProject()
  const params: { namespace?: string; name?: string } = useParams({ strict: false })
  const name = `${params.namespace ?? ''}/${params.name ?? ''}`
  const { values, change } = useFilters(['tab', 'version', 'from', 'to'])
  const [dialog, setDialog] = useState<'' | 'start' | 'pause' | 'stop' | 'delete'>('')
  const query = useQuery({
    queryKey: ['workflow', project, name, values.version],
    queryFn: ({ signal }) =>
      clients.workflows.getWorkflow({ project, workflow: name, version: values.version }, { signal }),
    refetchInterval: 15_000,
  })
  const data = query.data
  const workflow = data?.workflow
  const tab = chosenTab(tabs, values.tab, 'overview')
  return (
    <Page title={name}>
      <PageHead
        title={
          <>
            <Link to="/p/$project/workflows" params={{ project }}>
              Workflows
            </Link>{' '}
            / {name}
          </>
        }
        actions={
          workflow === undefined ? undefined : <Actions project={project} workflow={workflow} onDialog={setDialog} />
        }
      >
        {workflow === undefined ? null : (
          <>
            <StatusBadge of="workflow" status={workflow.state} size="large" />
            {workflow.latestVersion === '' ? null : <span>latest {workflow.latestVersion}</span>}
            {workflow.hasDraft ? <Chip tone="slate">has a draft</Chip> : null}
          </>
        )}
      </PageHead>
      {query.isError && data === undefined ? (
        <ErrorView error={query.error} what={`Workflow ${name}`} onRetry={() => void query.refetch()} />
      ) : data === undefined || workflow === undefined ? (
        <Skeleton rows={12} />
      ) : (
        <>
          <AlertSlot alerts={workflowAlerts(workflow)} />
          <Tabs
            label="Parts of the workflow"
            value={tab}
            onChange={(id) => change({ tab: id === 'overview' ? undefined : id, from: undefined, to: undefined })}
            tabs={tabs}
          >
            {tab === 'source' ? (
              <Source data={data} />
            ) : tab === 'versions' ? (
              <Versions
                project={project}
                name={name}
                latest={workflow.latestVersion}
                from={values.from}
                to={values.to}
                onCompare={(from, to) => change({ from, to })}
              />
            ) : tab === 'triggers' ? (
              <Triggers project={project} data={data} />
            ) : (
              <Overview project={project} data={data} />
            )}
          </Tabs>
        </>
      )}
      {dialog === '' || workflow === undefined ? null : dialog === 'start' ? (
        <StartDialog
          fixed
          project={project}
          workflow={workflow.name}
          version={values.version}
          onClose={() => setDialog('')}
        />
      ) : dialog === 'stop' ? (
        <Stop project={project} workflow={workflow} onClose={() => setDialog('')} />
      ) : (
        <ControlDialog kind={dialog} project={project} workflow={workflow} onClose={() => setDialog('')} />
      )}
    </Page>
  )
}

function Actions({
  project,
  workflow: w,
  onDialog,
}: {
  project: string
  workflow: Workflow
  onDialog: (dialog: 'start' | 'pause' | 'stop' | 'delete') => void
}) {
  const refusal = useRefusal()
  const offline = useLinkRefusal()
  const queries = useQueryClient()
  const publisher = offline ?? refusal('publisher', project)
  const unpause = useMutation({
    mutationFn: () => clients.workflows.unpauseWorkflow({ project, workflow: w.name }),
    onSuccess: () => {
      toast(`${w.name} starts runs again.`)
      void queries.invalidateQueries({ queryKey: ['workflow', project, w.name] })
    },
    onError: toastError,
  })
  return (
    <>
      <Link to="/p/$project/runs" params={{ project }} search={{ workflow: w.name } as never}>
        Runs
      </Link>
      <Button kind="primary" refused={offline ?? refusal('operator', project)} onClick={() => onDialog('start')}>
        Run…
      </Button>
      {w.state === 'paused' ? (
        <Button refused={publisher} busy={unpause.isPending} onClick={() => unpause.mutate()}>
          Unpause
        </Button>
      ) : (
        <Button refused={publisher ?? unpublished(w)} onClick={() => onDialog('pause')}>
          Pause…
        </Button>
      )}
      <Button
        kind="danger"
        refused={offline ?? stopperRefusal(refusal, project) ?? unpublished(w)}
        onClick={() => onDialog('stop')}
      >
        Stop…
      </Button>
      <Menu
        trigger={<Button>More</Button>}
        items={[
          {
            label: 'Delete…',
            danger: true,
            refused: publisher,
            onSelect: () => onDialog('delete'),
          },
        ]}
      />
    </>
  )
}

/** stopperRefusal says why the caller may not stop workflows: a stop pauses, as publishers may, and cancels, as operators may. */
const stopperRefusal = (refusal: ReturnType<typeof useRefusal>, project: string): string | undefined =>
  refusal('publisher', project) ?? refusal('operator', project)

function Stop({ project, workflow, onClose }: { project: string; workflow: Workflow; onClose: () => void }) {
  return (
    <StopDialog
      project={project}
      workflow={workflow}
      refusal={stopperRefusal(useRefusal(), project)}
      onClose={onClose}
    />
  )
}

function ControlDialog({
  kind,
  project,
  workflow: w,
  onClose,
}: {
  kind: 'pause' | 'delete'
  project: string
  workflow: Workflow
  onClose: () => void
}) {
  const queries = useQueryClient()
  const navigate = useNavigate()
  const done = (text: string) => {
    toast(text)
    void queries.invalidateQueries({ queryKey: ['workflows', project] })
    void queries.invalidateQueries({ queryKey: ['workflow', project, w.name] })
    onClose()
  }
  if (kind === 'pause') {
    return (
      <ActionDialog
        title={`Pause ${w.name}`}
        description="No new run starts: starts are refused, its schedule and triggers do nothing. Open runs go on."
        action="Pause"
        reason="optional"
        run={(reason) => clients.workflows.pauseWorkflow({ project, workflow: w.name, reason })}
        cli={(reason) => command(['workflow', 'pause', w.name], { project, reason })}
        rest={(reason) =>
          restCall('POST', '/v1/projects/{project}/workflows/{workflow}:pause', { project, workflow: w.name, reason })
        }
        onDone={() => done(`${w.name} is paused.`)}
        onClose={onClose}
      />
    )
  }
  return (
    <ActionDialog
      title={`Delete ${w.name}`}
      description="No new run starts, and the name leaves the list. Its runs stay readable, and open ones go on."
      action="Delete"
      danger
      reason="none"
      run={() => clients.workflows.deleteWorkflow({ project, workflow: w.name })}
      cli={() => command(['workflow', 'delete', w.name], { project })}
      rest={() => restCall('DELETE', '/v1/projects/{project}/workflows/{workflow}', { project, workflow: w.name })}
      onDone={() => {
        done(`${w.name} is deleted.`)
        void navigate({ to: '/p/$project/workflows', params: { project } })
      }}
      onClose={onClose}
    />
  )
}

function Overview({ project, data: { workflow: w, version } }: { project: string; data: GetWorkflowResponse }) {
  if (w === undefined) return null
  return (
    <>
      <Statistics project={project} name={w.name} stats={w.stats} />
      {w.latestVersion === '' ? null : <Grid project={project} name={w.name} version="" />}
      <Panel title="Document">
        <Facts
          facts={[
            ['Title', orDash(w.title)],
            ['Summary', orDash(w.summary)],
            ['Latest version', w.latestVersion === '' ? 'none is published' : w.latestVersion],
            version === undefined ? undefined : ['Published', <Time key="t" at={milliseconds(version.publishTime)} />],
            version === undefined ? undefined : ['Published by', version.publisher],
            ['Created', <Time key="c" at={milliseconds(w.createTime)} />],
          ]}
        />
      </Panel>
    </>
  )
}
