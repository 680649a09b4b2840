import { Link } from '@tanstack/react-router'
import { Ellipsis } from 'lucide-react'
import { milliseconds } from '../api'
import { refusalOf } from '../control'
import type { Run } from '../gen/signalbox/v1/run_pb'
import {
  Ago,
  Button,
  CancelRequestedBadge,
  Chip,
  type Column,
  command,
  copyCLI,
  copyText,
  Elapsed,
  formatCount,
  Id,
  Menu,
  shortId,
  StatusBadge,
  statusWord,
  Time,
  toast,
  type Zone,
} from '../kit'
import { type Label, LabelChips } from '../labels'
import { type Order, triggerWord } from './filter'
import styles from './runs.module.css'
import { cardLines } from './view'

/** What a run waits for while it is queued or waiting, in a word. */
export function statusDetail(run: Run): string {
  if (run.status === 'waiting') return run.waitingKind
  if (run.status !== 'queued') return ''
  const words: Record<string, string> = { admission: 'no slot' }
  const reason = words[run.queuedReason] ?? run.queuedReason
  return run.queuePosition === undefined ? reason : `${reason} #${formatCount(run.queuePosition)}`
}

/** The time from the start of a run to its end, ticking while it is open. */
export const RunDuration = ({ run }: { run: Run }) => (
  <Elapsed from={milliseconds(run.startTime)} to={milliseconds(run.endTime)} />
)

/** The time for which a run waited for its start, or until it ended without one; ticking while it waits. */
export const StartDelay = ({ run }: { run: Run }) => (
  <Elapsed from={milliseconds(run.createTime)} to={milliseconds(run.startTime ?? run.endTime)} />
)

/** Why a run does not go on, or why it ended: stuck, asked to cancel, or the error that ended it. */
function RunCause({ run }: { run: Run }) {
  if (run.stuck !== undefined) {
    return (
      <span className={styles.problem}>
        <Chip tone="amber" title={`${run.stuck.detail} ${run.stuck.advice}`}>
          {statusWord('stuck', run.stuck.code).word}
        </Chip>
        {run.cancelRequested ? <CancelRequestedBadge /> : null}
      </span>
    )
  }
  if (run.cancelRequested && run.endTime === undefined) return <CancelRequestedBadge />
  if (run.error === undefined) return null
  const status = run.error.status === 0 ? '' : `${run.error.status} `
  return (
    <span className={styles.failure} title={run.error.detail === '' ? undefined : run.error.detail}>
      {status}
      {run.error.title === '' ? run.error.type : run.error.title}
    </span>
  )
}

const copied = (done: boolean) => {
  toast(done ? 'ID copied.' : 'The browser did not allow to copy', done ? 'normal' : 'error')
}

/** The controls that a row offers; the page of the run has all of them. */
export type RowControl = 'replay' | 'cancel' | 'terminate'

const controlNames: [RowControl, string][] = [
  ['replay', 'Replay…'],
  ['cancel', 'Cancel…'],
  ['terminate', 'Terminate…'],
]

export interface ColumnOptions {
  project: string
  /** The columns between the box of the selection and the menu, by ID. */
  shown: readonly string[]
  /** Rows are cards in place of columns. */
  cards: boolean
  zone: Zone
  order: Order
  onOrder: (order: Order) => void
  onOpen: (run: Run) => void
  onControl: (control: RowControl, run: Run) => void
  /** Adds a label to the filter. */
  onLabel: (label: Label) => void
  /** Why no control can be used at the moment. */
  refused: string | undefined
  selected: ReadonlySet<string>
  allSelected: boolean
  onSelect: (key: string, range: boolean) => void
  onSelectAll: () => void
}

/** runColumns returns the columns of the list. */
export function runColumns({
  project,
  shown,
  cards,
  zone,
  order,
  onOrder,
  onOpen,
  onControl,
  onLabel,
  refused,
  selected,
  allSelected,
  onSelect,
  onSelectAll,
}: ColumnOptions): Column<Run>[] {
  const utc = zone === 'utc' ? ' (UTC)' : ''
  const select: Column<Run> = {
    id: 'select',
    width: 24,
    title: (
      <input
        type="checkbox"
        className={styles.box}
        aria-label="Select the listed runs"
        checked={allSelected}
        onChange={onSelectAll}
      />
    ),
    cell: (run) => (
      <label className={styles.boxCell}>
        <input
          type="checkbox"
          className={styles.box}
          aria-label={`Select run ${shortId(run.id)}`}
          checked={selected.has(run.id)}
          onChange={(event) => onSelect(run.id, event.nativeEvent instanceof MouseEvent && event.nativeEvent.shiftKey)}
        />
      </label>
    ),
  }
  const sortQueued: Column<Run>['sort'] = {
    active: order === 'newest' ? 'descending' : order === 'oldest' ? 'ascending' : undefined,
    onSort: () => onOrder(order === 'newest' ? 'oldest' : 'newest'),
  }
  const known: Column<Run>[] = [
    {
      id: 'status',
      title: 'Status',
      width: 132,
      cell: (run) => <StatusBadge of="run" status={run.status} detail={statusDetail(run)} />,
    },
    {
      id: 'run',
      title: 'Run',
      width: 130,
      cell: (run) => (
        <Id id={run.id}>
          <Link to="/p/$project/runs/$id" params={{ project, id: run.id }}>
            {shortId(run.id)}
          </Link>
        </Id>
      ),
    },
    {
      id: 'workflow',
      title: 'Workflow',
      width: 168,
      grow: true,
      cell: (run) => (
        <span title={`${run.workflow}@${run.version}`}>
          {run.workflow}
          <span className={styles.weak}>@{run.version}</span>
        </span>
      ),
    },
    { id: 'trigger', title: 'Trigger', width: 60, cell: (run) => triggerWord(run.trigger) },
    {
      id: 'actor',
      title: 'Actor',
      width: 92,
      cell: (run) => (run.actor === '' ? '–' : <span title={run.actor}>{run.actor}</span>),
    },
    {
      id: 'queued',
      title: `Queued${utc}`,
      width: 82,
      sort: sortQueued,
      cell: (run) => <Time plain at={milliseconds(run.createTime)} />,
    },
    {
      id: 'started',
      title: `Started${utc}`,
      width: 82,
      cell: (run) => <Time plain at={milliseconds(run.startTime)} />,
    },
    { id: 'waited', title: 'Waited for start', width: 104, align: 'end', cell: (run) => <StartDelay run={run} /> },
    {
      id: 'duration',
      title: 'Duration',
      width: 70,
      align: 'end',
      sort: {
        active: order === 'longest' ? 'descending' : undefined,
        onSort: () => onOrder(order === 'longest' ? 'newest' : 'longest'),
      },
      cell: (run) => <RunDuration run={run} />,
    },
    {
      id: 'steps',
      title: 'Steps',
      width: 78,
      align: 'end',
      cell: (run) =>
        run.stepsDone === run.stepsTotal
          ? formatCount(run.stepsTotal)
          : `${formatCount(run.stepsDone)} of ${formatCount(run.stepsTotal)}`,
    },
    { id: 'cause', title: 'Cause', width: 104, grow: true, cell: (run) => <RunCause run={run} /> },
    {
      id: 'labels',
      title: 'Labels',
      width: 180,
      grow: true,
      cell: (run) =>
        Object.keys(run.labels).length === 0 ? (
          '–'
        ) : (
          <LabelChips labels={run.labels} project={project} onFilter={onLabel} most={2} />
        ),
    },
  ]
  // On a phone, the row is a card: two lines, one for what is chosen in addition, and one for the labels of a run that has some.
  const has = (id: string) => shown.includes(id)
  const cardColumn: Column<Run> = {
    id: 'card',
    title: `Queued${utc}`,
    width: 200,
    grow: true,
    sort: sortQueued,
    cell: (run) => {
      const lines = cardLines(shown, run)
      return (
        <>
          <span className={styles.cardLine}>
            {has('status') ? <StatusBadge of="run" status={run.status} detail={statusDetail(run)} /> : null}
            <span className={styles.cardText} title={`${run.workflow}@${run.version}`}>
              {has('workflow') ? run.workflow : ''}
            </span>
            {has('queued') ? (
              <span className={styles.weak}>
                <Ago at={milliseconds(run.createTime)} />
              </span>
            ) : null}
          </span>
          <span className={styles.cardLine}>
            <Link to="/p/$project/runs/$id" params={{ project, id: run.id }} className={styles.cardID} title={run.id}>
              {shortId(run.id)}
            </Link>
            <span className={styles.cardText}>{has('cause') ? <RunCause run={run} /> : null}</span>
          </span>
          {lines.facts.length === 0 ? null : (
            <span className={styles.cardLine}>
              {known
                .filter((column) => lines.facts.includes(column.id))
                .map((column) => (
                  <span key={column.id} className={styles.cardFact}>
                    <span className={styles.weak}>{column.title}</span> {column.cell(run)}
                  </span>
                ))}
            </span>
          )}
          {lines.labels ? (
            <span className={styles.cardLine}>
              <LabelChips labels={run.labels} project={project} onFilter={onLabel} most={2} />
            </span>
          ) : null}
        </>
      )
    },
  }
  const menu: Column<Run> = {
    id: 'menu',
    title: <span className="hidden">Actions</span>,
    width: 28,
    cell: (run) => (
      <Menu
        trigger={
          <Button
            kind="quiet"
            className={styles.menu}
            aria-label={`Actions of run ${shortId(run.id)}`}
            icon={<Ellipsis size={16} aria-hidden />}
          />
        }
        items={[
          {
            label: 'Open',
            onSelect: () => onOpen(run),
          },
          ...controlNames.map(([control, label]) => ({
            label,
            danger: control === 'terminate',
            refused: refused ?? refusalOf(run, control),
            onSelect: () => onControl(control, run),
          })),
          { kind: 'separator' as const, label: '' },
          {
            label: 'Copy the ID',
            onSelect: () => void copyText(run.id).then(copied),
          },
          {
            label: 'Copy the CLI command',
            onSelect: () => copyCLI(command(['run', 'show', run.id], { project })),
          },
        ]}
      />
    ),
  }
  return [select, ...(cards ? [cardColumn] : shown.flatMap((id) => known.filter((column) => column.id === id))), menu]
}
