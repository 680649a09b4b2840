import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { useState } from 'react'
import { callError, clients, milliseconds, newRequestID } from '../api'
import type { StopWorkflowResponse, Workflow } from '../gen/signalbox/v1/workflow_pb'
import { Button, CloseButton, CopyCommand, Countdown, Dialog, TextArea, Time, useLinkRefusal } from '../kit'
import { canceled, openRuns, openStatuses, stopCommands, stopped, stopRefusal } from './stop'
import styles from './workflows.module.css'

/** Pauses a workflow and cancels its open runs, after it showed what that touches. */
export function StopDialog({
  project,
  workflow: w,
  refusal,
  onClose,
}: {
  project: string
  workflow: Workflow
  refusal: string | undefined
  onClose: () => void
}) {
  const queries = useQueryClient()
  const offline = useLinkRefusal()
  const [requestId] = useState(newRequestID)
  const [reason, setReason] = useState('')
  const preview = useQuery({
    queryKey: ['stop-preview', project, w.name, requestId],
    queryFn: ({ signal }) => clients.workflows.stopWorkflow({ project, workflow: w.name, dryRun: true }, { signal }),
  })
  const open = preview.data?.batch?.total
  const stop = useMutation({
    mutationFn: () =>
      clients.workflows.stopWorkflow({
        project,
        workflow: w.name,
        reason: reason.trim(),
        requestId,
        ...(open === undefined ? {} : { expectedOpen: open }),
      }),
    // More runs are open by now: they are shown before the next attempt.
    onError: (failure) => {
      if (callError(failure).reason === 'BATCH_TOTAL_CHANGED') void preview.refetch()
    },
    onSuccess: () => {
      void queries.invalidateQueries({ queryKey: ['workflows', project] })
      void queries.invalidateQueries({ queryKey: ['workflow', project, w.name] })
    },
  })
  const error = stop.isError ? callError(stop.error) : undefined
  const reasonError = error?.fields.find((f) => f.path === 'reason')?.message
  const refused = offline ?? refusal ?? stopRefusal(open, reason)
  const done = stop.data
  return (
    <Dialog
      open
      onClose={onClose}
      title={done === undefined ? `Stop ${w.name}` : `${w.name} is stopped`}
      description="The workflow is paused, so that no new run starts, and its open runs are canceled as one batch. Both happen, or neither."
      onSubmit={() => {
        if (done === undefined && refused === undefined && !stop.isPending) stop.mutate()
      }}
      aside={done === undefined ? <CopyCommand {...stopCommands(project, w.name, reason.trim(), open)} /> : undefined}
      actions={
        <>
          <CloseButton />
          {done === undefined ? (
            <Button type="submit" kind="danger" refused={refused} busy={stop.isPending}>
              Stop
            </Button>
          ) : null}
        </>
      }
    >
      {done === undefined ? (
        <div className={styles.form}>
          {preview.isError ? (
            <p className={styles.red} role="alert">
              What the stop touches is not known: {callError(preview.error).message}{' '}
              <Button onClick={() => void preview.refetch()}>Retry</Button>
            </p>
          ) : null}
          {preview.data === undefined ? (
            preview.isError ? null : (
              <p className={styles.touched}>The open runs are being counted.</p>
            )
          ) : (
            <Touched answer={preview.data} />
          )}
          <TextArea
            label="Reason"
            required
            value={reason}
            hint="The audit log, the pause and each run keep it."
            error={reasonError}
            onChange={(event) => setReason(event.target.value)}
            autoFocus
          />
          {error === undefined ? null : (
            <p className={styles.red} role="alert">
              {error.message} {error.reason === '' ? null : <code>{error.reason}</code>}
            </p>
          )}
        </div>
      ) : (
        <Done project={project} name={w.name} answer={done} />
      )}
    </Dialog>
  )
}

/** What a stop would do now. */
function Touched({ answer }: { answer: StopWorkflowResponse }) {
  const { workflow: w, timer, startedBy } = answer
  const next = timer?.nextTimes[0]
  return (
    <ul aria-label="What it would do now" className={styles.touched}>
      <li>
        {w?.state === 'paused'
          ? 'The workflow is paused already and stays so.'
          : 'The workflow is paused: requests to start it are refused.'}
      </li>
      {startedBy === '' ? (
        <li>Nothing else starts runs of it.</li>
      ) : (
        <li>
          What starts its runs does nothing: <code>{startedBy}</code>
          {next === undefined ? null : (
            <>
              , next <Time at={milliseconds(next)} /> (in <Countdown at={milliseconds(next)} />)
            </>
          )}
          {timer === undefined || timer.unknownBecause === '' ? null : `, next time unknown: ${timer.unknownBecause}`}
        </li>
      )}
      <li>{openRuns(answer)}</li>
      {canceled(answer).map(({ text, code }) => (
        <li key={text}>
          {text} {code === '' ? null : <code>{code}</code>}
        </li>
      ))}
    </ul>
  )
}

function Done({ project, name, answer }: { project: string; name: string; answer: StopWorkflowResponse }) {
  return (
    <div className={styles.form} role="status">
      <p>{stopped(answer)}</p>
      <p>
        {answer.batch === undefined ? null : (
          <Link to="/p/$project/batches/$id" params={{ project, id: answer.batch.id }}>
            Show the batch
          </Link>
        )}
        {' · '}
        <Link to="/p/$project/runs" params={{ project }} search={{ workflow: name, status: openStatuses } as never}>
          Show open runs
        </Link>
      </p>
    </div>
  )
}
