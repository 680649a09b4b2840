import { Link } from '@tanstack/react-router'
import { clients, milliseconds, usePages } from '../api'
import { RunId } from '../app'
import type { Run, Wait } from '../gen/signalbox/v1/run_pb'
import { Ago, type Column, command, CopyCommand, Countdown, inWords, ListView, Panel, StateView, Time } from '../kit'
import styles from './run.module.css'

const columns = (project: string, id: string): Column<Wait>[] => [
  {
    id: 'step',
    title: 'Step',
    width: 160,
    grow: true,
    cell: (wait) =>
      wait.step === 0n ? (
        'the run as a whole'
      ) : (
        <Link
          to="/p/$project/runs/$id"
          params={{ project, id }}
          search={{ tab: 'steps', step: String(wait.step) }}
          title={wait.path}
        >
          {String(wait.step)} {wait.task}
        </Link>
      ),
  },
  { id: 'kind', title: 'Kind', width: 84, cell: (wait) => inWords(wait.kind) },
  {
    id: 'what',
    title: 'Waits for',
    width: 240,
    grow: true,
    cell: (wait) => <span title={wait.what}>{wait.what}</span>,
  },
  {
    id: 'child',
    title: 'Run',
    width: 128,
    cell: (wait) => (wait.child === undefined ? '–' : <RunId project={project} id={wait.child.id} />),
  },
  { id: 'since', title: 'Since', width: 84, cell: (wait) => <Ago at={milliseconds(wait.since)} unknown="unknown" /> },
  {
    id: 'due',
    title: 'Due in',
    width: 84,
    cell: (wait) => (wait.dueTime === undefined ? '–' : <Countdown at={milliseconds(wait.dueTime)} />),
  },
  {
    id: 'deadline',
    title: 'Ends with an error at',
    width: 150,
    cell: (wait) =>
      wait.deadline === undefined ? (
        wait.deadlineUnknown ? (
          'unknown'
        ) : (
          '–'
        )
      ) : (
        <>
          {wait.deadlineUnknown ? 'at the latest ' : ''}
          <Time at={milliseconds(wait.deadline)} />
        </>
      ),
  },
]

/** The newest events of the awaited types that the run has not taken, with the reason. */
function NearEvents({ project, waits }: { project: string; waits: Wait[] }) {
  return (
    <div className={styles.near}>
      <Panel title="Newest events that it has not taken">
        <ul>
          {waits.flatMap((wait) =>
            wait.near.map((e) => (
              <li key={`${wait.step} ${e.position}`}>
                Step {String(wait.step)} {wait.task}:{' '}
                <Link to="/p/$project/events/$position" params={{ project, position: String(e.position) }}>
                  event {e.id}
                </Link>{' '}
                of {e.source}, <Ago at={milliseconds(e.receiveTime)} unknown="received at an unknown time" />:{' '}
                {e.reason}
              </li>
            )),
          )}
        </ul>
      </Panel>
    </div>
  )
}

/** What an open run waits for: what holds it as a whole, then its open steps. A run that has ended waits for nothing. */
export function WaitsTab({ run }: { run: Run }) {
  // What the run waits for changes with its sequence; between changes the pages stay.
  const list = usePages(['run-waits', run.project, run.id, String(run.sequence)], async (pageToken, signal) => {
    const page = await clients.runs.listWaits(
      { project: run.project, id: run.id, pageSize: 100, pageToken },
      { signal },
    )
    return { rows: page.waits, nextPageToken: page.nextPageToken }
  })
  return (
    <div className={styles.events}>
      <ListView
        list={list}
        what="waits"
        columns={columns(run.project, run.id)}
        rowKey={(wait) => `${wait.step} ${wait.kind}`}
        empty={
          <StateView kind="empty" title="The run waits for nothing.">
            {run.endTime === undefined ? 'It is executing tasks.' : 'It has ended.'}
          </StateView>
        }
      />
      {list.rows.some((wait) => wait.near.length > 0) ? <NearEvents project={run.project} waits={list.rows} /> : null}
      <div>
        <CopyCommand cli={command(['run', 'waits', run.id], { project: run.project })} />
      </div>
    </div>
  )
}
