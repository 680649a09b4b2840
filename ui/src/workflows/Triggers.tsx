import { useQuery, useQueryClient } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { useState } from 'react'
import { useRefusal } from '../app'
import { clients, milliseconds, now } from '../api'
import type { DueTime, GetWorkflowResponse, WorkflowTimer } from '../gen/signalbox/v1/workflow_pb'
import {
  ActionDialog,
  AlertSlot,
  Button,
  Countdown,
  durationText,
  ErrorView,
  Facts,
  inWords,
  Panel,
  Select,
  Skeleton,
  StateView,
  Table,
  TextField,
  Time,
  toast,
  useLinkRefusal,
} from '../kit'
import {
  backfillCommands,
  fieldOf,
  formOf,
  formProblem,
  ofOperators,
  overlaps,
  periodOf,
  periodProblem,
  settingsCommands,
  settingsOf,
  timesText,
} from './schedule'
import { noNextTime, timerCount } from './workflow'
import styles from './workflows.module.css'

/** What starts a workflow by the clock, the outcomes of its due times, and what operators change about that. */
export function Triggers({ project, data: { timer, workflow } }: { project: string; data: GetWorkflowResponse }) {
  const [dialog, setDialog] = useState<'' | 'settings' | 'backfill'>('')
  const refusal = useRefusal()
  const offline = useLinkRefusal()
  const refused = offline ?? refusal('operator', project)
  if (timer === undefined || workflow === undefined)
    return (
      <Panel>
        No clock starts runs of this version. Events that start runs are in its source under <code>schedule.on</code>.
      </Panel>
    )
  const byClock = timer.after === undefined
  return (
    <div className={styles.sources}>
      <AlertSlot alerts={timerAlerts(timer)} />
      <Panel
        title="Clock"
        actions={
          byClock ? (
            <div className={styles.pick}>
              <Button refused={refused} onClick={() => setDialog('settings')}>
                Settings…
              </Button>
              <Button refused={refused} onClick={() => setDialog('backfill')}>
                Backfill…
              </Button>
            </div>
          ) : undefined
        }
      >
        <Facts
          facts={[
            timer.cron === '' ? undefined : ['Cron', <code key="c">{timer.cron}</code>],
            timer.every === undefined ? undefined : ['Every', durationText(timer.every)],
            timer.after === undefined ? undefined : ['After the end of a run', durationText(timer.after)],
            timer.timeZone === '' ? undefined : ['Time zone', timer.timeZone],
            timer.overlap === '' ? undefined : ['Overlap', timer.overlap],
            timer.jitter === undefined ? undefined : ['Jitter', `up to ${durationText(timer.jitter)}`],
            timer.catchUp === undefined ? undefined : ['Catch-up window', durationText(timer.catchUp)],
            ofOperators(timer) === '' ? undefined : ['Set beside the document', ofOperators(timer)],
            [
              'Next',
              timer.nextTimes.length === 0
                ? noNextTime(workflow)
                : timer.nextTimes.map((t, i) => (
                    <div key={i}>
                      <Time at={milliseconds(t)} /> (in <Countdown at={milliseconds(t)} />)
                    </div>
                  )),
            ],
            [
              'Last',
              <Time
                key="l"
                at={milliseconds(timer.lastTime)}
                unknown={timer.unknownBecause === '' ? 'not yet' : 'unknown'}
              />,
            ],
            ['Fired', timerCount(timer, timer.fired)],
            ['Missed', timerCount(timer, timer.missed)],
            byClock ? ['Skipped for an open run', timerCount(timer, timer.skipped)] : undefined,
          ]}
        />
      </Panel>
      {byClock ? <NotFired project={project} name={workflow.name} /> : null}
      {dialog === 'settings' ? (
        <SettingsDialog project={project} name={workflow.name} timer={timer} onClose={() => setDialog('')} />
      ) : dialog === 'backfill' ? (
        <BackfillDialog project={project} name={workflow.name} onClose={() => setDialog('')} />
      ) : null}
    </div>
  )
}

const timerAlerts = (timer: WorkflowTimer) => {
  const until = milliseconds(timer.settings?.pausedUntil)
  return [
    ...(timer.unknownBecause === ''
      ? []
      : [
          {
            id: 'timer',
            tone: 'amber' as const,
            title: 'Whether the clock runs is not known.',
            detail: timer.unknownBecause,
          },
        ]),
    ...(until === undefined || until <= now()
      ? []
      : [
          {
            id: 'schedule-paused',
            tone: 'amber' as const,
            title: 'The schedule is paused: it does not fire before this time.',
            detail: <Time at={until} />,
          },
        ]),
  ]
}

const dueTimesKey = (project: string, name: string) => ['due-times', project, name]

/** The newest due times at which the schedule did not fire. */
function NotFired({ project, name }: { project: string; name: string }) {
  const query = useQuery({
    queryKey: dueTimesKey(project, name),
    queryFn: ({ signal }) =>
      clients.workflows.listDueTimes(
        { project, workflow: name, outcomes: ['paused', 'skipped', 'missed'], limit: 1000 },
        { signal },
      ),
    refetchInterval: 60_000,
  })
  return (
    <Panel title="Did not fire" flush>
      {query.isError && query.data === undefined ? (
        <ErrorView error={query.error} what="The due times" onRetry={() => void query.refetch()} />
      ) : query.data === undefined ? (
        <Skeleton rows={3} />
      ) : (
        <DueTimes
          list={query.data.dueTimes}
          none="No fire is missing among the newest 1,000 due times since the publication of this version."
        />
      )}
    </Panel>
  )
}

/** Most due times that are drawn. */
const shown = 50

function DueTimes({ list, none }: { list: DueTime[]; none: string }) {
  if (list.length === 0) return <StateView kind="empty" title={none} />
  return (
    <>
      <Table heads={['Time', 'Outcome', 'Reason']} label="Due times">
        {list.slice(0, shown).map((d) => (
          <tr key={String(milliseconds(d.time))}>
            <td>
              <Time at={milliseconds(d.time)} />
            </td>
            <td>{inWords(d.outcome)}</td>
            <td>{d.reason}</td>
          </tr>
        ))}
      </Table>
      {list.length > shown ? <p className={styles.more}>And {timesText(list.length - shown)} more.</p> : null}
    </>
  )
}

function SettingsDialog({
  project,
  name,
  timer,
  onClose,
}: {
  project: string
  name: string
  timer: WorkflowTimer
  onClose: () => void
}) {
  const queries = useQueryClient()
  const [form, setForm] = useState(() => formOf(timer.settings))
  const set = (change: Partial<typeof form>) => setForm({ ...form, ...change })
  const cron = timer.cron !== ''
  const refused = formProblem(form, 'jitter') ?? formProblem(form, 'catchUp')
  return (
    <ActionDialog
      title={`Schedule of ${name}`}
      description="What is set here takes precedence over the document, also over versions that are published later. An empty field is as the document has it."
      action="Save"
      reason="none"
      refused={refused === undefined ? undefined : 'A length of time cannot be read'}
      fields={['timeZone', 'overlap', 'jitter', 'catchUp', 'pausedUntil']}
      run={() => clients.workflows.setSchedule({ project, workflow: name, settings: settingsOf(form) })}
      cli={() => settingsCommands(project, name, form, cron).cli}
      rest={() => settingsCommands(project, name, form, cron).rest}
      onDone={() => {
        toast(`The schedule of ${name} is changed.`)
        void queries.invalidateQueries({ queryKey: ['workflow', project, name] })
        void queries.invalidateQueries({ queryKey: dueTimesKey(project, name) })
        onClose()
      }}
      onClose={onClose}
    >
      {(problemOf) => (
        <div className={styles.form}>
          {cron ? (
            <TextField
              label="Time zone"
              hint="A name of the IANA database, such as Europe/Berlin."
              value={form.timeZone}
              error={problemOf('timeZone')}
              onChange={(event) => set({ timeZone: event.target.value })}
            />
          ) : null}
          <Select
            label="Overlap"
            hint="What a fire does while a run that the schedule started is open."
            options={[{ value: '', label: 'as in the document' }, ...overlaps.map((o) => ({ value: o, label: o }))]}
            value={form.overlap}
            error={problemOf('overlap')}
            onChange={(event) => set({ overlap: event.target.value })}
          />
          <TextField
            label="Jitter"
            hint="The longest random delay of a fire, such as 30s."
            value={form.jitter}
            error={formProblem(form, 'jitter') ?? problemOf('jitter')}
            onChange={(event) => set({ jitter: event.target.value })}
          />
          <TextField
            label="Catch-up window"
            hint="The age up to which a missed fire is made up for, such as 2h."
            value={form.catchUp}
            error={formProblem(form, 'catchUp') ?? problemOf('catchUp')}
            onChange={(event) => set({ catchUp: event.target.value })}
          />
          <TextField
            type="datetime-local"
            step={1}
            label="Paused until (UTC)"
            hint="The schedule does not fire before this time."
            value={form.pausedUntil}
            error={problemOf('pausedUntil')}
            onChange={(event) => set({ pausedUntil: event.target.value })}
          />
        </div>
      )}
    </ActionDialog>
  )
}

const minute = 60_000
const day = 24 * 60 * minute

function BackfillDialog({ project, name, onClose }: { project: string; name: string; onClose: () => void }) {
  const queries = useQueryClient()
  const [period, setPeriod] = useState(() => {
    const until = Math.floor(now() / minute) * minute
    return { since: fieldOf(until - day), until: fieldOf(until) }
  })
  const problem = periodProblem(period)
  const preview = useQuery({
    queryKey: ['backfill-preview', project, name, period],
    queryFn: ({ signal }) =>
      clients.workflows.backfillWorkflow({ project, workflow: name, ...periodOf(period), dryRun: true }, { signal }),
    enabled: problem === undefined,
    retry: false,
  })
  const times = problem === undefined ? preview.data?.dueTimes : undefined
  return (
    <ActionDialog
      title={`Backfill ${name}`}
      description="The schedule fires at the due times of the period at which it did not fire. Each fire is an event with the ID of its time, so that none starts a second run."
      action={times === undefined || times.length === 0 ? 'Fire' : `Fire at ${timesText(times.length)}`}
      reason="none"
      size="wide"
      refused={
        problem ??
        (times === undefined ? 'The due times are not known' : times.length === 0 ? 'None is left' : undefined)
      }
      run={() => clients.workflows.backfillWorkflow({ project, workflow: name, ...periodOf(period) })}
      cli={() => backfillCommands(project, name, period).cli}
      rest={() => backfillCommands(project, name, period).rest}
      onDone={(answer) => {
        toast(`The schedule of ${name} fires at ${timesText(answer.dueTimes.length)}.`)
        void queries.invalidateQueries({ queryKey: ['workflow', project, name] })
        void queries.invalidateQueries({ queryKey: dueTimesKey(project, name) })
        onClose()
      }}
      onClose={onClose}
    >
      <div className={styles.form}>
        <TextField
          type="datetime-local"
          label="From (UTC)"
          value={period.since}
          onChange={(event) => setPeriod({ ...period, since: event.target.value })}
        />
        <TextField
          type="datetime-local"
          label="To (UTC)"
          value={period.until}
          error={problem}
          onChange={(event) => setPeriod({ ...period, until: event.target.value })}
        />
        {problem !== undefined ? null : preview.isError ? (
          <ErrorView error={preview.error} what="The due times" onRetry={() => void preview.refetch()} />
        ) : times === undefined ? (
          <Skeleton rows={3} />
        ) : (
          <DueTimes list={times} none="The schedule fired at all due times of the period." />
        )}
        <Link to="/p/$project/runs" params={{ project }} search={{ workflow: name, trigger: 'schedule' } as never}>
          Runs that the schedule started
        </Link>
      </div>
    </ActionDialog>
  )
}
