import { Link, useNavigate } from '@tanstack/react-router'
import { listed, useFilters, useProject, workflowParams } from '../app'
import { clients, milliseconds, usePages } from '../api'
import type { Workflow } from '../gen/signalbox/v1/workflow_pb'
import {
  type Column,
  durationText,
  FilterFields,
  formatCount,
  formatPercent,
  ListView,
  orDash,
  Page,
  PageHead,
  StateView,
  StatusBadge,
  statusOptions,
  Time,
} from '../kit'
import { LastRuns } from './Statistics'

const about: Column<Workflow>[] = [
  { id: 'state', title: 'State', width: 100, cell: (w) => <StatusBadge of="workflow" status={w.state} /> },
  {
    id: 'name',
    title: 'Workflow',
    width: 150,
    grow: true,
    cell: (w) => (
      <Link to="/p/$project/workflows/$namespace/$name" params={workflowParams(w.project, w.name)}>
        {w.name}
      </Link>
    ),
  },
  {
    id: 'title',
    title: 'Title',
    width: 120,
    grow: true,
    cell: (w) => <span title={w.summary}>{orDash(w.title)}</span>,
  },
  { id: 'version', title: 'Latest', width: 64, cell: (w) => (w.latestVersion === '' ? 'none' : w.latestVersion) },
  { id: 'draft', title: 'Draft', width: 40, cell: (w) => (w.hasDraft ? 'yes' : '–') },
]

const changed: Column<Workflow> = {
  id: 'updated',
  title: 'Changed',
  width: 76,
  cell: (w) => <Time at={milliseconds(w.updateTime)} />,
}

const columns = (project: string): Column<Workflow>[] => [
  ...about,
  {
    id: 'last',
    title: 'Last 20 runs',
    width: 120,
    cell: (w) => <LastRuns project={project} runs={w.stats?.lastRuns ?? []} />,
  },
  {
    id: 'open',
    title: 'Open',
    width: 52,
    align: 'end',
    cell: (w) => (w.stats === undefined ? 'unknown' : formatCount(w.stats.open, w.stats.more.includes('open'))),
  },
  {
    id: 'rate',
    title: 'Success',
    width: 68,
    align: 'end',
    cell: (w) => (w.stats?.successRate === undefined ? 'unknown' : formatPercent(w.stats.successRate)),
  },
  {
    id: 'p95',
    title: 'p95',
    width: 76,
    align: 'end',
    cell: (w) => durationText(w.stats?.p95),
  },
  changed,
  {
    id: 'runs',
    title: <span className="hidden">Actions</span>,
    width: 44,
    align: 'end',
    cell: (w) => (
      <Link to="/p/$project/runs" params={{ project }} search={{ workflow: w.name } as never}>
        Runs
      </Link>
    ),
  },
]

const allColumns: Column<Workflow>[] = [
  ...about.slice(0, 1),
  {
    id: 'project',
    title: 'Project',
    width: 120,
    grow: true,
    cell: (w) => (
      <Link to="/p/$project/workflows" params={{ project: w.project }}>
        {w.project}
      </Link>
    ),
  },
  ...about.slice(1),
  changed,
]

const fields = [
  { name: 'q', label: 'Name' },
  {
    name: 'state',
    label: 'State',
    options: statusOptions('workflow'),
  },
]

/** filterOf returns the part of a request that the filters of a page are. */
const filterOf = ({ q, state }: Record<'q' | 'state', string>) => ({ text: q, states: listed(state) })

/** The workflows of a project. */
export function WorkflowsPage() {
  const project = useProject()
  const navigate = useNavigate()
  const { values, change, filtered, clear } = useFilters(['q', 'state'])
  const list = usePages(['workflows', project, values], async (pageToken, signal) => {
    const page = await clients.workflows.listWorkflows(
      { project, pageSize: 50, pageToken, stats: true, ...filterOf(values) },
      { signal },
    )
    return { rows: page.workflows, nextPageToken: page.nextPageToken }
  })
  return (
    <Page title="Workflows" fill>
      <PageHead title="Workflows">
        <span>What can be run in {project}. Rates and durations are of the last 24 hours.</span>
        <Link to="/p/$project/functions" params={{ project }}>
          Functions
        </Link>
        <Link to="/workflows">All projects</Link>
      </PageHead>
      <FilterFields fields={fields} values={values} onChange={change} />
      <ListView
        list={list}
        what="workflows"
        columns={columns(project)}
        rowKey={(w) => w.name}
        onOpen={(w) =>
          void navigate({ to: '/p/$project/workflows/$namespace/$name', params: workflowParams(project, w.name) })
        }
        filtered={filtered}
        onClear={clear}
        empty={
          <StateView kind="empty" title={`No workflows in ${project} yet.`}>
            Publish one: <code>signalbox workflow publish FILE --project {project}</code>
          </StateView>
        }
      />
    </Page>
  )
}

/** The workflows of all projects in which the user has a role. */
export function AllWorkflowsPage() {
  const navigate = useNavigate()
  const { values, change, filtered, clear } = useFilters(['q', 'state'])
  const list = usePages(['all-workflows', values], async (pageToken, signal) => {
    const page = await clients.workflows.findWorkflows({ pageSize: 100, pageToken, ...filterOf(values) }, { signal })
    return { rows: page.workflows, nextPageToken: page.nextPageToken }
  })
  return (
    <Page title="Workflows of all projects" fill>
      <PageHead title="Workflows of all projects">What can be run in the projects in which you have a role.</PageHead>
      <FilterFields fields={fields} values={values} onChange={change} />
      <ListView
        list={list}
        what="workflows"
        columns={allColumns}
        rowKey={(w) => `${w.project} ${w.name}`}
        onOpen={(w) =>
          void navigate({ to: '/p/$project/workflows/$namespace/$name', params: workflowParams(w.project, w.name) })
        }
        filtered={filtered}
        onClear={clear}
        empty={
          <StateView kind="empty" title="No workflows yet.">
            Publish one: <code>signalbox workflow publish FILE</code>
          </StateView>
        }
      />
    </Page>
  )
}
