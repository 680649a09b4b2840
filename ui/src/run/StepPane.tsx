import { X } from 'lucide-react'
import { Fragment } from 'react'
import { milliseconds } from '../api'
import { chosenTab, useFilters } from '../app'
import {
  Button,
  CopyButton,
  Drawer,
  Elapsed,
  ErrorView,
  Facts,
  Skeleton,
  StateView,
  StatusBadge,
  type Tab,
  Table,
  Tabs,
  Time,
  useNarrow,
} from '../kit'
import type { Run, Step } from '../gen/signalbox/v1/run_pb'
import type { RunError } from '../gen/signalbox/v1/types_pb'
import { attemptCount, attemptRows, outcome } from './attempts'
import { useStep } from './live'
import { LogsTab } from './LogsTab'
import { StepValue } from './StepValue'
import styles from './run.module.css'

interface Props {
  step: Step
  run: Run
  onClose: () => void
}

/** One step: what went in, what came out, what failed, what was sent. A panel beside the steps; a full screen on a phone. */
export function StepPane({ step, run, onClose }: Props) {
  const narrow = useNarrow()
  const title = (
    <>
      Step {String(step.number)} {step.task}
    </>
  )
  if (narrow)
    return (
      <Drawer title={title} open onClose={onClose}>
        <Content step={step} run={run} />
      </Drawer>
    )
  return (
    <section className={styles.pane} aria-label={`Step ${step.number} ${step.task}`}>
      <header className={styles.paneHead}>
        <h2>{title}</h2>
        <Button kind="quiet" aria-label="Close the step" icon={<X size={16} aria-hidden />} onClick={onClose} />
      </header>
      <div className={styles.paneBody}>
        <Content step={step} run={run} />
      </div>
    </section>
  )
}

function Content({ step: listed, run }: { step: Step; run: Run }) {
  const { values, change } = useFilters(['pane'])
  const read = useStep(run.project, run.id, listed)
  // What the list and the watch send has no payloads for a long run, and no waits.
  const step = read.data ?? listed
  const loading = read.data === undefined && !read.isError
  const tabs: Tab[] = [
    { id: 'input', label: 'Input' },
    { id: 'output', label: 'Output' },
    ...(step.error === undefined ? [] : [{ id: 'error', label: 'Error' }]),
    { id: 'attempts', label: 'Attempts', count: loading ? undefined : String(attemptCount(step)) },
    ...(step.kind === 'run' ? [{ id: 'logs', label: 'Logs' }] : []),
  ]
  const pane = chosenTab(tabs, values.pane, step.error === undefined ? 'input' : 'error')
  return (
    <div className={styles.paneContent}>
      <div className={styles.paneFacts}>
        <StatusBadge of="step" status={step.status} detail={step.waitingKind} />
        <span>{step.kind}</span>
        <span>
          <Time at={milliseconds(step.startTime)} />
        </span>
        <span>
          <Elapsed from={milliseconds(step.startTime)} to={milliseconds(step.endTime)} />
        </span>
        <span className={styles.path}>
          <code>{step.path}</code>
          <CopyButton text={step.path} label="Copy the path" />
        </span>
      </div>
      {step.wait === undefined ? null : (
        <p className={styles.wait}>
          Waits for {step.wait.what}
          {step.wait.dueTime === undefined ? null : (
            <>
              , due at <Time at={milliseconds(step.wait.dueTime)} />
            </>
          )}
          {step.wait.deadline === undefined ? null : (
            <>
              , until <Time at={milliseconds(step.wait.deadline)} />
            </>
          )}
        </p>
      )}
      <Tabs tabs={tabs} value={pane} onChange={(id) => change({ pane: id })} label="Parts of the step">
        {read.isError ? <ErrorView error={read.error} what="The step" onRetry={() => void read.refetch()} /> : null}
        {loading && pane !== 'error' ? <Skeleton rows={4} /> : null}
        {pane === 'input' && !loading ? (
          <StepValue key="input" step={step} run={run} of="input" none="The step has no input." />
        ) : null}
        {pane === 'output' && !loading ? (
          <StepValue
            key="output"
            step={step}
            run={run}
            of="output"
            none={step.endTime === undefined ? 'No output yet: the step has not ended.' : 'The step has no output.'}
          />
        ) : null}
        {pane === 'error' && step.error !== undefined ? (
          <ErrorFacts error={step.error} uncaught={step.uncaught} />
        ) : null}
        {pane === 'attempts' && !loading ? <Attempts step={step} /> : null}
        {pane === 'logs' && !loading ? <LogsTab step={step} run={run} /> : null}
      </Tabs>
      {run.redacted && (pane === 'input' || pane === 'output') ? (
        <p className={styles.faint}>Sensitive values of this run are sealed.</p>
      ) : null}
    </div>
  )
}

export function ErrorFacts({ error, uncaught = '' }: { error: RunError; uncaught?: string }) {
  return (
    <div className={styles.error}>
      <p className={styles.errorTitle}>{error.title === '' ? 'No title' : error.title}</p>
      {error.detail === '' ? null : <pre className={styles.detail}>{error.detail}</pre>}
      {uncaught === '' ? null : <p>Not handled by its catch: {uncaught}</p>}
      <Facts
        facts={[
          ['Status', error.status === 0 ? 'none' : String(error.status)],
          ['Type', <code key="type">{error.type}</code>],
          ['Task', <code key="task">{error.instance === '' ? 'unknown' : error.instance}</code>],
        ]}
      />
    </div>
  )
}

/** The attempts of a step; those of a call are the requests that left the process. */
function Attempts({ step }: { step: Step }) {
  const call = step.kind === 'call'
  if (step.attempts.length === 0) {
    return (
      <StateView kind="empty" title="No attempts.">
        {call
          ? 'No request has left the process yet.'
          : `Attempts are recorded for calls, and for tasks that are tried again; this is a ${step.kind}.`}
      </StateView>
    )
  }
  const heads = ['No.', 'Start', ...(call ? ['Request', 'HTTP'] : []), 'Duration', 'Outcome', 'Next attempt']
  return (
    <Table heads={heads} label="Attempts">
      {attemptRows(step).map(({ attempt, next }) => (
        <Fragment key={attempt.number}>
          <tr>
            <td>{attempt.number}</td>
            <td>
              <Time at={milliseconds(attempt.startTime)} unknown="unknown" />
            </td>
            {call ? (
              <>
                <td className={styles.request}>
                  {attempt.method === '' && attempt.host === '' ? 'unknown' : `${attempt.method} ${attempt.host}`}
                </td>
                <td>{attempt.httpStatus ?? '–'}</td>
              </>
            ) : null}
            <td>
              <Elapsed from={milliseconds(attempt.startTime)} to={milliseconds(attempt.endTime)} />
            </td>
            <td>{outcome(attempt)}</td>
            <td>
              <Time at={next} />
            </td>
          </tr>
          {attempt.error === undefined ? null : (
            <tr>
              <td colSpan={heads.length} className={styles.attemptError}>
                {attempt.error.title}
                {attempt.error.detail === '' ? '' : `: ${attempt.error.detail}`}
              </td>
            </tr>
          )}
        </Fragment>
      ))}
    </Table>
  )
}
