import { useMutation, useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { callError, clients, fetchRun, runKey, useRun } from '../api'
import {
  Button,
  CallProblem,
  CloseButton,
  CopyCommand,
  Dialog,
  Id,
  StatusBadge,
  TextArea,
  toast,
  useLinkRefusal,
} from '../kit'
import type { Run } from '../gen/signalbox/v1/run_pb'
import styles from './control.module.css'
import {
  answered,
  type Confirmed,
  controlCommands,
  controlWords,
  doneText,
  noteOf,
  refusalOf,
  stateText,
} from './controls'

/** act calls the method of a control and returns the run as the server answered, where it did. */
async function act(control: Confirmed, project: string, id: string, reason: string): Promise<Run | undefined> {
  const request = { project, id, reason }
  switch (control) {
    case 'cancel':
      return (await clients.runs.cancelRun(request)).run
    case 'terminate':
      return (await clients.runs.terminateRun(request)).run
    case 'pause':
      return (await clients.runs.pauseRun(request)).run
    case 'unpause':
      return (await clients.runs.unpauseRun(request)).run
    case 'resume_quota':
      await clients.quotas.resumeQuota({ project, runIds: [id], reason })
      return undefined
  }
}

/** Confirms one control of one run. If the run has changed meanwhile, a person has to look again before it is sent. */
export function ControlDialog({ control, run: shown, onClose }: { control: Confirmed; run: Run; onClose: () => void }) {
  const { project, id } = shown
  const words = controlWords[control]
  const offline = useLinkRefusal()
  const queries = useQueryClient()
  const current = useRun(project, id, 3000).data ?? shown
  const [seen, setSeen] = useState(stateText(shown))
  const [reason, setReason] = useState('')
  const [asked, setAsked] = useState(false)
  const call = useMutation({
    mutationFn: async () => {
      // The page may be behind the server. Only a state that a person has seen is acted on.
      const latest = await fetchRun(project, id)
      queries.setQueryData<Run>(runKey(project, id), latest)
      return stateText(latest) === seen ? { run: await act(control, project, id, reason.trim()) } : undefined
    },
    onSuccess: async (answer) => {
      if (answer === undefined) return
      const { run } = answer
      if (run !== undefined)
        queries.setQueryData<Run>(runKey(project, id), (known) =>
          known === undefined ? undefined : { ...known, ...answered(run) },
        )
      await queries.invalidateQueries({ queryKey: runKey(project, id) })
      toast(doneText(control, run))
      onClose()
    },
    onError: () => void queries.invalidateQueries({ queryKey: runKey(project, id) }),
  })
  const state = stateText(current)
  const differs = state !== seen
  const refused = offline ?? (differs ? undefined : refusalOf(current, control))
  const missing = words.reasonRequired && reason.trim() === ''
  const note = noteOf(current, control)
  const fields = call.isError ? callError(call.error).fields : []
  const submit = () => {
    if (differs) {
      setSeen(state)
      return
    }
    setAsked(true)
    if (!missing && refused === undefined && !call.isPending) call.mutate()
  }
  return (
    <Dialog
      title={
        <>
          {words.name} <Id id={id} />
        </>
      }
      description={words.text}
      open
      size="small"
      onClose={onClose}
      onSubmit={submit}
      aside={<CopyCommand {...controlCommands(control, project, id, reason.trim())} />}
      actions={
        <>
          <CloseButton />
          <Button type="submit" kind={words.danger ? 'danger' : 'primary'} busy={call.isPending} refused={refused}>
            {differs ? `${seen} → ${state}: Review` : words.act}
          </Button>
        </>
      }
    >
      <div className={styles.form}>
        <div className={styles.line}>
          <span>
            {current.workflow}@{current.version}
          </span>
          <StatusBadge of="run" status={current.status} detail={current.queuedReason || current.waitingKind} />
        </div>
        {differs ? (
          <p className={styles.changed} role="status">
            The run has changed since this dialog was opened: {seen} → {state}. Review it before you go on.
          </p>
        ) : null}
        {note === '' ? null : <p className={styles.note}>{note}</p>}
        <TextArea
          label="Reason"
          required={words.reasonRequired}
          hint="For the audit log and the run."
          value={reason}
          autoFocus
          error={
            fields.find((f) => f.path === 'reason')?.message ?? (asked && missing ? 'A reason is required.' : undefined)
          }
          onChange={(event) => setReason(event.target.value)}
        />
        {call.isError ? <CallProblem error={call.error} /> : null}
      </div>
    </Dialog>
  )
}
