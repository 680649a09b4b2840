import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { ChevronDown, ChevronUp } from 'lucide-react'
import { clients, hasEnded, milliseconds, useRun } from '../api'
import type { Run, Step } from '../gen/signalbox/v1/run_pb'
import {
  type Alert,
  AlertSlot,
  Ago,
  Button,
  CancelRequestedBadge,
  Drawer,
  Elapsed,
  ErrorView,
  Facts,
  formatCount,
  Id,
  inWords,
  shortId,
  Skeleton,
  StatusBadge,
  statusWord,
  Time,
} from '../kit'
import { RunDuration, StartDelay, statusDetail } from './columns'
import { type Label, LabelChips } from '../labels'
import { triggerWord } from './filter'
import styles from './runs.module.css'

const shownSteps = 8

/** A run beside the list: what is wrong, its error, its last steps. */
export function Peek({
  project,
  id,
  listed,
  onLabel,
  onClose,
  onPrevious,
  onNext,
}: {
  project: string
  id: string
  listed: Run | undefined
  onLabel: (label: Label) => void
  onClose: () => void
  onPrevious: (() => void) | undefined
  onNext: (() => void) | undefined
}) {
  const run = useRun(project, id, listed === undefined || !hasEnded(listed.status) ? 5000 : false)
  const shown = run.data ?? listed
  return (
    <Drawer
      open
      onClose={onClose}
      title={<Id id={id}>Run {shortId(id)}</Id>}
      tools={
        <>
          <Button
            kind="quiet"
            aria-label="Previous run"
            icon={<ChevronUp size={16} aria-hidden />}
            refused={onPrevious === undefined ? 'This is the first run of the list' : undefined}
            onClick={onPrevious}
          />
          <Button
            kind="quiet"
            aria-label="Next run"
            icon={<ChevronDown size={16} aria-hidden />}
            refused={onNext === undefined ? 'This is the last run that is listed' : undefined}
            onClick={onNext}
          />
        </>
      }
    >
      {shown === undefined ? (
        run.isError ? (
          <ErrorView error={run.error} what={`Run ${shortId(id)}`} onRetry={() => void run.refetch()} />
        ) : (
          <Skeleton rows={8} />
        )
      ) : (
        <div className={styles.peek}>
          <AlertSlot alerts={runAlerts(shown)} />
          {shown.error === undefined ? null : (
            <section className={styles.error} aria-label="Error">
              <strong>
                {shown.error.status === 0 ? '' : `${shown.error.status} `}
                {shown.error.title === '' ? shown.error.type : shown.error.title}
              </strong>
              {shown.error.detail === '' ? null : <p>{shown.error.detail}</p>}
              {shown.error.instance === '' ? null : (
                <p>
                  at <code>{shown.error.instance}</code>
                </p>
              )}
            </section>
          )}
          <Facts
            facts={[
              [
                'Status',
                <>
                  {<StatusBadge of="run" status={shown.status} detail={statusDetail(shown)} />}{' '}
                  {shown.cancelRequested && shown.endTime === undefined ? <CancelRequestedBadge /> : null}
                </>,
              ],
              ['Workflow', `${shown.workflow}@${shown.version}`],
              ['Trigger', triggerWord(shown.trigger)],
              ['Queued', <Time at={milliseconds(shown.createTime)} />],
              ['Started', <Time at={milliseconds(shown.startTime)} unknown="Not started" />],
              ['Waited for start', <StartDelay run={shown} />],
              ['Duration', <RunDuration run={shown} />],
            ]}
          />
          {Object.keys(shown.labels).length === 0 ? null : (
            <section>
              <h3>Labels</h3>
              <LabelChips labels={shown.labels} project={project} onFilter={onLabel} />
            </section>
          )}
          {run.data === undefined || run.data.waits.length === 0 ? null : (
            <section>
              <h3>Waits for</h3>
              <ul className={styles.steps}>
                {run.data.waits.slice(0, 5).map((wait, index) => (
                  <li key={index}>
                    <span title={wait.what}>{wait.what}</span>
                    <span>{inWords(wait.kind)}</span>
                    <Elapsed from={milliseconds(wait.since)} />
                  </li>
                ))}
              </ul>
            </section>
          )}
          <LastSteps project={project} run={shown} />
          <Link to="/p/$project/runs/$id" params={{ project, id }}>
            Open the run
          </Link>
        </div>
      )}
    </Drawer>
  )
}

function runAlerts(run: Run): Alert[] {
  if (run.stuck === undefined) return []
  return [
    {
      id: run.stuck.code,
      tone: 'amber',
      title: `${statusWord('stuck', run.stuck.code).word}: ${run.stuck.detail}`,
      since: <Ago at={milliseconds(run.stuck.since)} />,
      detail: run.stuck.advice,
    },
  ]
}

const mostSteps = 1000

function LastSteps({ project, run }: { project: string; run: Run }) {
  const steps = useQuery({
    queryKey: ['last-steps', project, run.id, String(run.sequence)],
    queryFn: async ({ signal }) =>
      await clients.runs.listSteps({ project, id: run.id, pageSize: mostSteps }, { signal }),
    enabled: run.stepsTotal <= mostSteps,
    placeholderData: (before, query) => (query?.queryKey[2] === run.id ? before : undefined),
  })
  return (
    <section>
      <h3>Last steps, of {formatCount(run.stepsTotal)}</h3>
      {run.stepsTotal > mostSteps ? (
        <p className={styles.weak}>The run has too many steps for this preview.</p>
      ) : run.stepsTotal === 0n ? (
        <p className={styles.weak}>Nothing has run yet.</p>
      ) : steps.isError ? (
        <ErrorView error={steps.error} what="Steps" onRetry={() => void steps.refetch()} />
      ) : steps.data === undefined ? (
        <Skeleton rows={Math.min(shownSteps, Number(run.stepsTotal))} />
      ) : (
        <ul className={styles.steps}>
          {steps.data.steps.slice(-shownSteps).map((step) => (
            <StepLine key={String(step.number)} step={step} />
          ))}
        </ul>
      )}
    </section>
  )
}

function StepLine({ step }: { step: Step }) {
  return (
    <li>
      <span title={step.path}>
        {step.task} <span className={styles.weak}>{step.kind}</span>
      </span>
      <StatusBadge of="step" status={step.status} />
      <Elapsed from={milliseconds(step.startTime)} to={milliseconds(step.endTime)} />
    </li>
  )
}
