import { useQueries, useQueryClient } from '@tanstack/react-query'
import { Link, useNavigate } from '@tanstack/react-router'
import { useMemo, useState } from 'react'
import { useRefusal } from '../app'
import { clients, usePages } from '../api'
import type { Project } from '../gen/signalbox/v1/project_pb'
import type { GetQuotaResponse } from '../gen/signalbox/v1/quota_pb'
import {
  ActionDialog,
  Button,
  type Column,
  command,
  Cut,
  formatCount,
  ListView,
  Page,
  PageHead,
  restCall,
  StateView,
  TextField,
  toast,
  useLinkRefusal,
} from '../kit'
import { nameRefusal } from './limits'
import { Use } from './Use'

interface Row {
  project: Project
  quota: GetQuotaResponse | undefined
}

const columns: Column<Row>[] = [
  {
    id: 'name',
    title: 'Project',
    width: 140,
    grow: true,
    cell: ({ project }) => (
      <Link to="/projects/$name" params={{ name: project.name }}>
        {project.name}
      </Link>
    ),
  },
  {
    id: 'description',
    title: 'Description',
    width: 200,
    grow: true,
    cell: ({ project }) => <Cut text={project.description} />,
  },
  {
    id: 'queue',
    title: 'Task queue',
    width: 160,
    grow: true,
    cell: ({ project }) => <span className="mono">{project.taskQueue}</span>,
  },
  {
    id: 'runs',
    title: 'Concurrent runs',
    width: 150,
    cell: ({ quota }) =>
      quota === undefined ? '…' : <Use used={quota.admittedRuns} limit={quota.quota?.concurrentRuns ?? 0n} />,
  },
  {
    id: 'steps',
    title: 'Steps in the period',
    width: 160,
    cell: ({ quota }) => (quota === undefined ? '…' : <Use used={quota.usedSteps} limit={quota.quota?.steps ?? 0n} />),
  },
  {
    id: 'waiting',
    title: 'Wait for quota',
    width: 110,
    align: 'end',
    cell: ({ quota }) => (quota === undefined ? '…' : formatCount(quota.queuedRuns + quota.waitingRuns)),
  },
]

/** The projects that the caller may see, with their quotas and how much of them is used. */
export function ProjectsPage() {
  const [creating, setCreating] = useState(false)
  const refusal = useRefusal()
  const offline = useLinkRefusal()
  const navigate = useNavigate()
  const list = usePages(
    ['projects-list'],
    async (pageToken, signal) => {
      const page = await clients.projects.listProjects({ pageSize: 50, pageToken }, { signal })
      return { rows: page.projects, nextPageToken: page.nextPageToken }
    },
    15_000,
  )
  const quotas = useQueries({
    queries: list.rows.map((p) => ({
      queryKey: ['quota', p.name],
      queryFn: ({ signal }: { signal: AbortSignal }) => clients.quotas.getQuota({ project: p.name }, { signal }),
      refetchInterval: 15_000,
    })),
  })
  const rows = useMemo(
    () => list.rows.map((project, i): Row => ({ project, quota: quotas[i]?.data })),
    [list.rows, quotas],
  )
  return (
    <Page title="Projects" fill>
      <PageHead
        title="Projects"
        actions={
          <Button refused={offline ?? refusal('admin', '*')} onClick={() => setCreating(true)}>
            Create…
          </Button>
        }
      >
        Each has its own workflows, runs, events, task queue and quota.
      </PageHead>
      <ListView
        list={{ ...list, rows }}
        what="projects"
        columns={columns}
        rowKey={({ project }) => project.name}
        onOpen={({ project }) => void navigate({ to: '/projects/$name', params: { name: project.name } })}
        empty={
          <StateView kind="empty" title="No project that you may see.">
            An administrator gives roles on the page Access.
          </StateView>
        }
      />
      {creating ? <CreateDialog onClose={() => setCreating(false)} /> : null}
    </Page>
  )
}

function CreateDialog({ onClose }: { onClose: () => void }) {
  const [name, setName] = useState('')
  const [description, setDescription] = useState('')
  const queries = useQueryClient()
  return (
    <ActionDialog
      title="Create a project"
      description="Workers that serve all projects serve it within seconds."
      action="Create"
      reason="none"
      refused={nameRefusal(name)}
      run={() => clients.projects.createProject({ name, description })}
      cli={() => command(['project', 'create', name], { description })}
      rest={() => restCall('POST', '/v1/projects', { name, description })}
      onDone={() => {
        toast(`Created ${name}.`)
        void queries.invalidateQueries({ queryKey: ['projects-list'] })
        void queries.invalidateQueries({ queryKey: ['projects'] })
        onClose()
      }}
      onClose={onClose}
    >
      <TextField
        label="Name"
        required
        value={name}
        onChange={(e) => setName(e.target.value)}
        hint="a-z, 0-9 and -"
        autoFocus
      />
      <TextField label="Description" value={description} onChange={(e) => setDescription(e.target.value)} />
    </ActionDialog>
  )
}
