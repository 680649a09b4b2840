import { Link, useNavigate } from '@tanstack/react-router'
import { useFilters, useProject, workflowParams } from '../app'
import { clients, durationMilliseconds, milliseconds, usePages } from '../api'
import type { Workflow } from '../gen/signalbox/v1/workflow_pb'
import { type Column, FilterFields, formatCount, formatDuration, formatPercent, ListView, Page, PageHead, StateView, StatusBadge, Time, vocabularies } from '../kit'
import { LastRuns } from './Statistics'

const columns = (project: string): Column<Workflow>[] => [
  { id: 'state', title: 'State', width: 100, cell: (w) => <StatusBadge of="workflow" status={w.state} /> },
  { id: 'name', title: 'Workflow', width: 150, grow: true, cell: (w) => <Link to="/p/$project/workflows/$namespace/$name" params={workflowParams(project, w.name)}>{w.name}</Link> },
  { id: 'title', title: 'Title', width: 120, grow: true, cell: (w) => <span title={w.summary}>{w.title === '' ? '–' : w.title}</span> },
  { id: 'version', title: 'Latest', width: 64, cell: (w) => (w.latestVersion === '' ? 'none' : w.latestVersion) },
  { id: 'draft', title: 'Draft', width: 40, cell: (w) => (w.hasDraft ? 'yes' : '–') },
  { id: 'last', title: 'Last 20 runs', width: 120, cell: (w) => <LastRuns project={project} runs={w.stats?.lastRuns ?? []} /> },
  { id: 'open', title: 'Open', width: 52, align: 'end', cell: (w) => (w.stats === undefined ? 'unknown' : formatCount(w.stats.open, w.stats.more.includes('open'))) },
  { id: 'rate', title: 'Success', width: 68, align: 'end', cell: (w) => (w.stats?.successRate === undefined ? 'unknown' : formatPercent(w.stats.successRate)) },
  {
    id: 'p95', title: 'p95', width: 76, align: 'end',
    cell: (w) => {
      const p95 = durationMilliseconds(w.stats?.p95)
      return p95 === undefined ? 'unknown' : formatDuration(p95)
    },
  },
  { id: 'updated', title: 'Changed', width: 76, cell: (w) => <Time at={milliseconds(w.updateTime)} /> },
  { id: 'runs', title: <span className="hidden">Actions</span>, width: 44, align: 'end', cell: (w) => <Link to="/p/$project/runs" params={{ project }} search={{ workflow: w.name } as never}>Runs</Link> },
]

/** The workflows of a project. */
export function WorkflowsPage() {
  const project = useProject()
  const navigate = useNavigate()
  const { values, change, filtered, clear } = useFilters(['q', 'state'])
  const list = usePages(['workflows', project, values], async (pageToken, signal) => {
    const page = await clients.workflows.listWorkflows({ project, pageSize: 50, pageToken, stats: true, text: values.q ?? '', states: values.state === undefined || values.state === '' ? [] : [values.state] }, { signal })
    return { rows: page.workflows, nextPageToken: page.nextPageToken }
  })
  return (
    <Page title="Workflows" fill>
      <PageHead title="Workflows">What can be run in {project}. Rates and durations are of the last 24 hours.</PageHead>
      <FilterFields
        fields={[{ name: 'q', label: 'Name or title' }, { name: 'state', label: 'State', options: Object.entries(vocabularies.workflow).map(([value, { word }]) => ({ value, label: word })) }]}
        values={values}
        onChange={change}
      />
      <ListView
        list={list}
        what="workflows"
        columns={columns(project)}
        rowKey={(w) => w.name}
        onOpen={(w) => { void navigate({ to: '/p/$project/workflows/$namespace/$name', params: workflowParams(project, w.name) }) }}
        filtered={filtered}
        onClear={clear}
        empty={<StateView kind="empty" title={`No workflows in ${project} yet.`}>Publish one: <code>signalbox workflow publish FILE --project {project}</code></StateView>}
      />
    </Page>
  )
}
