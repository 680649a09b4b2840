import { Link, useNavigate } from '@tanstack/react-router'
import { useFilters, useProject } from '../app'
import { clients, milliseconds, usePages } from '../api'
import type { Function } from '../gen/signalbox/v1/workflow_pb'
import { type Column, FilterFields, formatBytes, ListView, Page, PageHead, StateView, Time } from '../kit'

const columns = (project: string): Column<Function>[] => [
  {
    id: 'name',
    title: 'Function',
    width: 180,
    grow: true,
    cell: (f) => (
      <Link to="/p/$project/functions/$name" params={{ project, name: f.name }}>
        {f.name}
      </Link>
    ),
  },
  { id: 'version', title: 'Latest', width: 100, cell: (f) => f.version },
  { id: 'size', title: 'Size', width: 80, align: 'end', cell: (f) => formatBytes(Number(f.size)) },
  { id: 'published', title: 'Published', width: 90, cell: (f) => <Time at={milliseconds(f.publishTime)} /> },
  { id: 'publisher', title: 'By', width: 120, grow: true, cell: (f) => f.publisher },
]

/** The functions that the workflows of a project call by name and version. */
export function FunctionsPage() {
  const project = useProject()
  const navigate = useNavigate()
  const { values, change, filtered, clear } = useFilters(['q'])
  const list = usePages(
    ['functions', project, values],
    async (pageToken, signal) => {
      const page = await clients.workflows.listFunctions(
        { project, pageSize: 50, pageToken, text: values.q, latest: true },
        { signal },
      )
      return { rows: page.functions, nextPageToken: page.nextPageToken }
    },
    15_000,
  )
  return (
    <Page title="Functions" fill>
      <PageHead
        title={
          <>
            <Link to="/p/$project/workflows" params={{ project }}>
              Workflows
            </Link>{' '}
            / Functions
          </>
        }
      >
        What workflows of {project} call by name and version.
      </PageHead>
      <FilterFields fields={[{ name: 'q', label: 'Name' }]} values={values} onChange={change} />
      <ListView
        list={list}
        what="functions"
        columns={columns(project)}
        rowKey={(f) => f.name}
        onOpen={(f) => void navigate({ to: '/p/$project/functions/$name', params: { project, name: f.name } })}
        filtered={filtered}
        onClear={clear}
        empty={
          <StateView kind="empty" title={`No functions in ${project} yet.`}>
            Publish one: <code>signalbox function publish NAME:VERSION FILE --project {project}</code>, and call it as{' '}
            <code>NAME:VERSION@default</code>.
          </StateView>
        }
      />
    </Page>
  )
}
