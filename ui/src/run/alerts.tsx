import { Link } from '@tanstack/react-router'
import { useState, type ReactNode } from 'react'
import { hasEnded, milliseconds, useConnection, useRun } from '../api'
import { RunId } from '../app'
import { type Alert, Ago, Button, Countdown, formatCount, Marked, plural, Since, statusWord, Time } from '../kit'
import type { Retry, Run, RunWarning, Step, Wait } from '../gen/signalbox/v1/run_pb'
import type { GetConnectionResponse } from '../gen/signalbox/v1/system_pb'
import { attemptCount } from './attempts'

/** useRunAlerts returns the alerts of a run, with the connection as the server reports it. */
export function useRunAlerts(
  run: Run,
  failures: Step[],
  onStep: (number: string) => void,
  onWaits: () => void,
): Alert[] {
  return runAlerts(run, useConnection().data, failures, onStep, onWaits)
}

/** runAlerts returns what a person must know of a run, the most important first. All of it, and all times, are the server's. */
export function runAlerts(
  run: Run,
  connection: GetConnectionResponse | undefined,
  failures: Step[],
  onStep: (number: string) => void,
  onWaits: () => void,
): Alert[] {
  const open = !hasEnded(run.status)
  const alerts: (Alert | undefined)[] = [
    open ? temporalDown(connection) : undefined,
    stuck(run),
    failed(run, failures, onStep),
    ...(open ? retries(run, onStep) : []),
    cancelRequested(run),
    ...(open ? [quota(run), queued(run)] : []),
    behind(run),
    ...run.warnings.map(warning),
    ...(open ? [waits(run, onStep, onWaits)] : []),
    run.status === 'canceled' && run.cancelReason !== ''
      ? { id: 'canceled', tone: 'blue', title: `Canceled: ${run.cancelReason}` }
      : undefined,
    relation(run),
  ]
  return alerts.filter((alert) => alert !== undefined)
}

function temporalDown(connection: GetConnectionResponse | undefined): Alert | undefined {
  if (connection === undefined || connection.state !== 'down') return undefined
  return {
    id: 'temporal',
    tone: 'red',
    title: `${connection.title}: the run goes on when Temporal is available again`,
    since: (
      <>
        since <Time at={milliseconds(connection.since)} />
      </>
    ),
    actions: <Link to="/system">System</Link>,
  }
}

function stuck(run: Run): Alert | undefined {
  if (run.stuck === undefined) return undefined
  const { code, cause, detail, advice, since, checkTime } = run.stuck
  const queue = run.temporal?.taskQueue ?? ''
  const waiting =
    run.status === 'queued' && run.queuedReason === 'worker' && (code === 'NO_POLLER' || code === 'POLLER_STALE')
  return {
    id: 'stuck',
    tone: 'amber',
    title: waiting
      ? `${statusWord('stuck', code).word}: queued, waiting for a worker${queue === '' ? '' : ` on ${queue}`}`
      : statusWord('stuck', code).word,
    since: (
      <>
        <Since at={milliseconds(since)} />, checked <Ago at={milliseconds(checkTime)} />
      </>
    ),
    detail: (
      <>
        <Marked text={detail} />
        {cause === '' ? null : (
          <>
            {' '}
            <code>{cause}</code>
          </>
        )}
        <br />
        <strong>What to do:</strong> <Marked text={advice} />
        <br />
        <strong>Code:</strong> <code>{code}</code>
      </>
    ),
    actions: <Link to="/workers">Workers</Link>,
  }
}

/** The error first: what, where, in which attempt; the rest on demand. */
function failed(run: Run, failures: Step[], onStep: (number: string) => void): Alert | undefined {
  if (run.error === undefined || !hasEnded(run.status)) return undefined
  const { title, status, type, detail, instance } = run.error
  const step =
    failures.findLast((s) => run.failedStep === undefined || s.number === run.failedStep.number) ??
    (run.failedStep === undefined ? failures.at(-1) : undefined)
  const number = run.failedStep?.number ?? step?.number
  const attempts = run.failedStep?.attempts ?? (step === undefined ? 0 : attemptCount(step))
  const task = run.failedStep?.task ?? step?.task ?? ''
  return {
    id: 'error',
    tone: run.status === 'terminated' ? 'amber' : 'red',
    title: (
      <>
        {status === 0 ? '' : `${status} `}
        {title === '' ? (type === '' ? 'The run failed without a message' : type) : title}
        {number === undefined ? null : (
          <>
            : step {String(number)} {task}
            {attempts > 1 ? `, attempt ${attempts}` : ''}
          </>
        )}
      </>
    ),
    since: <Time at={milliseconds(run.endTime)} />,
    detail: (
      <Detail
        rows={[
          ['Detail', detail],
          ['Type', type],
          ['Task', instance],
          ['Reason', run.terminateReason],
        ]}
      />
    ),
    actions: number === undefined ? undefined : <Button onClick={() => onStep(String(number))}>Go to step</Button>,
  }
}

/** The first line of a detail, the rest folded. */
function Detail({ rows }: { rows: [string, string][] }) {
  const [open, setOpen] = useState(false)
  const given = rows.filter(([, text]) => text !== '')
  const [first] = given
  if (first === undefined) return null
  const long = given.length > 1 || first[1].length > 160 || first[1].includes('\n')
  return (
    <>
      {open ? (
        given.map(([name, text]) => (
          <div key={name}>
            {name}: <span style={{ whiteSpace: 'pre-wrap' }}>{text}</span>
          </div>
        ))
      ) : (
        <span>
          {first[1].split('\n')[0]?.slice(0, 160)}
          {first[1].length > 160 ? '…' : ''}
        </span>
      )}
      {long ? (
        <>
          {' '}
          <Button kind="quiet" aria-expanded={open} onClick={() => setOpen(!open)}>
            {open ? 'Less' : 'Details'}
          </Button>
        </>
      ) : null}
    </>
  )
}

const stepButton = (wait: Wait, onStep: (number: string) => void): ReactNode =>
  wait.step === 0n ? undefined : <Button onClick={() => onStep(String(wait.step))}>Go to step</Button>

/** The tasks that failed and are attempted again, each with its attempts, the last error and the next attempt. */
function retries(run: Run, onStep: (number: string) => void): Alert[] {
  const seen = new Map<bigint, Wait & { retry: Retry }>()
  for (const wait of run.waits) {
    const { retry } = wait
    if (retry !== undefined && !seen.has(retry.step)) seen.set(retry.step, { ...wait, retry })
  }
  return [...seen.values()].slice(0, 3).map(({ retry, kind, dueTime }) => ({
    id: `retry-${retry.step}`,
    tone: 'amber' as const,
    title: `Task ${retry.task} fails and is attempted again: ${
      retry.limit === 0n
        ? plural(Number(retry.failed), 'attempt')
        : `${retry.failed} of at most ${retry.limit} attempts`
    } failed`,
    since: (
      <>
        since <Time at={milliseconds(retry.since)} unknown="an unknown time" />
      </>
    ),
    detail: (
      <>
        {retry.lastError === undefined
          ? 'The last error is unknown. '
          : `Last error: ${[retry.lastError.title, retry.lastError.detail].filter(Boolean).join(': ')}. `}
        {kind !== 'retry' ? (
          `Attempt ${retry.failed + 1n} is in progress.`
        ) : dueTime === undefined ? (
          'When the next attempt begins is unknown.'
        ) : (
          <>
            Attempt {String(retry.failed + 1n)} begins in <Countdown at={milliseconds(dueTime)} />.
          </>
        )}
      </>
    ),
    actions: <Button onClick={() => onStep(String(retry.step))}>Go to step</Button>,
  }))
}

function cancelRequested(run: Run): Alert | undefined {
  if (!run.cancelRequested || hasEnded(run.status)) return undefined
  return {
    id: 'cancel',
    tone: 'amber',
    title: 'Cancel requested: a worker ends the run when it handles the request',
    detail: run.cancelReason === '' ? undefined : `Reason: ${run.cancelReason}`,
  }
}

function quota(run: Run): Alert | undefined {
  if (run.waitingKind !== 'quota') return undefined
  return {
    id: 'quota',
    tone: 'violet',
    title: 'Waiting for quota: the project has used up its steps of this period',
    detail:
      run.quota === undefined ? (
        'The usage is unknown.'
      ) : (
        <>
          {formatCount(run.quota.used)} of {formatCount(run.quota.limit)} steps used. The next period begins in{' '}
          <Countdown at={milliseconds(run.quota.resetTime)} /> (<Time at={milliseconds(run.quota.resetTime)} />
          ).
        </>
      ),
  }
}

function queued(run: Run): Alert | undefined {
  if (run.status !== 'queued' || run.stuck !== undefined) return undefined
  const since = (
    <>
      since <Time at={milliseconds(run.statusTime)} />
    </>
  )
  const position = run.queuePosition === undefined ? 'position unknown' : `position ${formatCount(run.queuePosition)}`
  switch (run.queuedReason) {
    case 'engine':
      return {
        id: 'queued',
        tone: 'violet',
        title: `Queued until Temporal is available, ${position} of all projects`,
        since,
        detail:
          run.queueExpireTime === undefined ? undefined : (
            <>
              Without Temporal, the run fails at <Time at={milliseconds(run.queueExpireTime)} />.
            </>
          ),
      }
    case 'admission':
      return { id: 'queued', tone: 'violet', title: `Queued for one of the project's slots, ${position}`, since }
    case 'worker':
      return {
        id: 'queued',
        tone: 'violet',
        title: `Queued, waiting for a worker${run.temporal === undefined ? '' : ` on ${run.temporal.taskQueue}`}`,
        since,
      }
    default:
      return { id: 'queued', tone: 'violet', title: 'Queued: the run is being submitted to Temporal', since }
  }
}

function behind(run: Run): Alert | undefined {
  if (run.behind === undefined) return undefined
  const { since, reason, failure } = run.behind
  return {
    id: 'behind',
    tone: 'amber',
    title: `The rows of the run are behind Temporal: ${reason}`,
    since: (
      <>
        since <Time at={milliseconds(since)} />
      </>
    ),
    detail:
      failure === ''
        ? 'A worker repairs them.'
        : `The last repair failed: ${failure}. It is tried again at growing intervals.`,
  }
}

function warning({ code, detail, time }: RunWarning): Alert {
  const titles: Record<string, string> = {
    EVENTS_NOT_SEARCHED:
      'A listen task has not looked through all earlier events: it may wait for one that has arrived',
    INPUT_MISSING: 'The input is lost: the database was restored from a backup that is older than the run',
    INPUT_FORMAT: 'Texts of the input are not of the formats that the schema names',
  }
  const title = titles[code] ?? code
  return {
    id: `warning-${code}`,
    tone: 'amber',
    title,
    since: (
      <>
        since <Time at={milliseconds(time)} />
      </>
    ),
    detail,
  }
}

/** What an open run waits for; a retry and the quota have alerts of their own. */
function waits(run: Run, onStep: (number: string) => void, onWaits: () => void): Alert | undefined {
  const list = run.waits.filter(
    (wait) => !['retry', 'quota', 'worker', 'engine', 'starting', 'call', 'program', 'publication'].includes(wait.kind),
  )
  const [first] = list
  if (first === undefined) return undefined
  const more = list.length - 1
  return {
    id: 'waits',
    tone: 'violet',
    title: (
      <>
        Waits for {first.what}
        {more > 0 ? ` and ${more}${run.moreWaits ? '+' : ''} more` : ''}
      </>
    ),
    since: (
      <>
        since <Time at={milliseconds(first.since)} />
      </>
    ),
    detail: <Until wait={first} />,
    actions: (
      <>
        {first.child === undefined ? null : <RunLink project={run.project} id={first.child.id} />}
        {stepButton(first, onStep)}
        {more > 0 || run.moreWaits ? <Button onClick={onWaits}>All waits</Button> : null}
      </>
    ),
  }
}

function Until({ wait }: { wait: Wait }) {
  const due = milliseconds(wait.dueTime)
  const deadline = milliseconds(wait.deadline)
  return (
    <>
      {due === undefined ? null : (
        <>
          Due in <Countdown at={due} /> (<Time at={due} />
          ).{' '}
        </>
      )}
      {deadline === undefined ? (
        wait.deadlineUnknown ? (
          'The deadline is unknown. '
        ) : null
      ) : (
        <>
          {wait.deadlineUnknown ? 'Ends at the latest at ' : 'Ends with an error at '}
          <Time at={deadline} />.{' '}
        </>
      )}
      {wait.child === undefined ? null : (
        <>
          {wait.child.workflow}@{wait.child.version} is {wait.child.status}.{' '}
        </>
      )}
    </>
  )
}

function relation(run: Run): Alert | undefined {
  if (run.replayOf === '' && run.replays.length === 0 && run.parentRunId === '') return undefined
  return {
    id: 'relation',
    tone: 'blue',
    title: (
      <>
        {run.replayOf === '' ? null : (
          <>
            Replay of <RunLink project={run.project} id={run.replayOf} />{' '}
          </>
        )}
        {run.replays.length === 0 ? null : (
          <>
            Replayed as{' '}
            {run.replays.slice(0, 3).map((id) => (
              <span key={id}>
                <RunLink project={run.project} id={id} />{' '}
              </span>
            ))}
            {run.replays.length > 3 ? `and ${run.replays.length - 3} more ` : null}
          </>
        )}
        {run.parentRunId === '' ? null : (
          <>
            Started by run <RunLink project={run.project} id={run.parentRunId} />
          </>
        )}
      </>
    ),
  }
}

/** A link to a run with its status. */
function RunLink({ project, id }: { project: string; id: string }) {
  const run = useRun(project, id)
  return (
    <RunId project={project} id={id}>
      {run.data === undefined ? null : ` (${run.data.status.replaceAll('_', ' ')})`}
    </RunId>
  )
}
