import { useNavigate } from '@tanstack/react-router'
import { listed, useFilters, useProjects } from '../app'
import {
  clients,
  durationMilliseconds,
  milliseconds,
  problemsKey,
  usePages,
  useProblem,
  useProblemCounts,
} from '../api'
import type { Problem } from '../gen/signalbox/v1/problem_pb'
import {
  Ago,
  cardHeight,
  type Column,
  FilterFields,
  formatCount,
  formatDuration,
  ListView,
  Page,
  PageHead,
  StateView,
  Tabs,
  usePhone,
} from '../kit'
import { ActionMenu } from './ActionMenu'
import { ProblemDrawer } from './ProblemDrawer'
import { KindBadge, Series, title, where } from './problem'
import styles from './problems.module.css'

const states = ['open', 'acknowledged', 'snoozed', 'resolved'] as const
const words = { open: 'Open', acknowledged: 'Acknowledged', snoozed: 'Snoozed', resolved: 'Resolved, 24 h' }

const columns: Column<Problem>[] = [
  { id: 'kind', title: 'Kind', width: 84, cell: (p) => <KindBadge problem={p} /> },
  { id: 'title', title: 'Problem', width: 150, grow: true, cell: (p) => <span title={title(p)}>{title(p)}</span> },
  { id: 'where', title: 'Where', width: 170, grow: 2, cell: (p) => <span title={where(p)}>{where(p)}</span> },
  {
    id: 'count',
    title: 'Count',
    width: 48,
    align: 'end',
    cell: (p) => (p.count === undefined ? '–' : formatCount(p.count, p.more)),
  },
  { id: 'series', title: 'Over time', width: 100, cell: (p) => <Series series={p.series} /> },
  { id: 'first', title: 'Since', width: 76, cell: (p) => <Ago at={milliseconds(p.firstTime)} /> },
  { id: 'last', title: 'Last seen', width: 80, cell: (p) => <Ago at={milliseconds(p.lastTime)} /> },
  { id: 'owner', title: 'Owner', width: 72, cell: (p) => (p.owner === '' ? 'none' : p.owner) },
  {
    id: 'act',
    title: <span className="hidden">Actions</span>,
    width: 152,
    align: 'end',
    cell: (p) => <ActionMenu problem={p} />,
  },
]

/** On a phone, the row is a card of two lines; it opens the problem, with all that can be done. */
const cards: Column<Problem>[] = [
  {
    id: 'card',
    title: 'Problem',
    width: 200,
    grow: true,
    cell: (p) => (
      <>
        <span className={styles.cardLine}>
          <KindBadge problem={p} />
          <span className={styles.cardText} title={title(p)}>
            {title(p)}
          </span>
          <span className={styles.weak}>
            <Ago at={milliseconds(p.firstTime)} />
          </span>
        </span>
        <span className={styles.cardLine}>
          <span className={styles.cardText} title={where(p)}>
            {where(p)}
          </span>
          {p.count === undefined ? null : <span className={styles.weak}>count {formatCount(p.count, p.more)}</span>}
        </span>
      </>
    ),
  },
]

/** What an operator has to act on, in all projects: stuck runs, failures by cause, and the platform. */
export function ProblemsPage() {
  const { values, change, filtered, clear } = useFilters(['kind', 'project', 'owner', 'q'])
  const view = useFilters(['state', 'id'])
  const projects = useProjects()
  const navigate = useNavigate()
  const phone = usePhone()
  const state = states.find((s) => s === view.values.state) ?? 'open'
  const { kind, project, owner, q: text } = values
  const counts = useProblemCounts(project)
  const list = usePages([...problemsKey, state, kind, project, owner, text], async (pageToken, signal) => {
    const page = await clients.problems.listProblems(
      { project, kinds: listed(kind), states: [state], owner, text, pageSize: 100, pageToken },
      { signal },
    )
    return { rows: page.problems, nextPageToken: page.nextPageToken, errors: page.errors }
  })
  const mean = durationMilliseconds(counts.data?.meanTimeToAcknowledge)
  // The drawer follows the problem itself, which may leave the list while it is read.
  const { id } = view.values
  const selected = useProblem(
    id,
    list.rows.find((p) => p.id === id),
  )
  return (
    <Page title="Problems" fill>
      <PageHead title="Problems">
        What an operator has to act on.{' '}
        {mean === undefined
          ? 'Nothing was acknowledged in the last 24 hours.'
          : `Mean time to acknowledge: ${formatDuration(mean)}.`}
      </PageHead>
      <FilterFields
        fields={[
          {
            name: 'kind',
            label: 'Kind',
            options: [
              { value: 'stuck', label: 'Stuck runs' },
              { value: 'retrying', label: 'Retries' },
              { value: 'failure', label: 'Failures' },
              { value: 'platform', label: 'Platform' },
            ],
          },
          {
            name: 'project',
            label: 'Project',
            options: (projects.data ?? []).map((p) => ({ value: p.name, label: p.name })),
          },
          { name: 'owner', label: 'Owner' },
          { name: 'q', label: 'Text' },
        ]}
        values={values}
        onChange={change}
      />
      <Tabs
        label="State of the problems"
        value={state}
        onChange={(id) => view.change({ state: id === 'open' ? undefined : id, id: undefined })}
        tabs={states.map((id) => ({
          id,
          label: words[id],
          count: counts.data === undefined ? undefined : formatCount(counts.data.states[id] ?? 0n),
        }))}
      >
        <ListView
          list={list}
          what="problems"
          columns={phone ? cards : columns}
          {...(phone ? { rowHeight: cardHeight() } : {})}
          rowKey={(p) => p.id}
          highlighted={selected?.id}
          onOpen={(p) => view.change({ id: p.id })}
          filtered={filtered}
          onClear={clear}
          empty={
            <StateView kind="empty" title={state === 'open' ? 'No open problems.' : `No ${state} problems.`}>
              Checked <Ago at={milliseconds(counts.data?.time)} />.
            </StateView>
          }
        />
      </Tabs>
      {selected === undefined ? null : (
        <ProblemDrawer
          problem={selected}
          onClose={() => view.change({ id: undefined })}
          onRuns={(to, search) => void navigate({ to, search: search as never })}
        />
      )}
    </Page>
  )
}
