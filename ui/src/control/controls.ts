import { hasEnded } from '../api'
import type { Run } from '../gen/signalbox/v1/run_pb'
import { command, type Rest, restCall } from '../kit'

/** The controls of a run that ask for a confirmation, and replay and export, in the order of the reference. */
export type Control = 'cancel' | 'terminate' | 'pause' | 'unpause' | 'resume_quota' | 'replay' | 'export'

/** The controls that ask for a confirmation. */
export type Confirmed = Exclude<Control, 'replay' | 'export'>

export interface Words {
  /** The name in menus and on buttons. */
  name: string
  /** What it does, for the dialog. */
  text: string
  /** The label of the button that does it. */
  act: string
  reasonRequired: boolean
  danger: boolean
}

export const controlWords: Record<Confirmed, Words> = {
  cancel: {
    name: 'Cancel',
    act: 'Cancel the run',
    reasonRequired: false,
    danger: false,
    text: 'A worker ends the run: waits and calls in flight are abandoned, no further task starts, and child runs that it awaits are canceled, too. A request that was already sent may have reached its service. Until a worker has handled it, the run shows “Cancel requested”.',
  },
  terminate: {
    name: 'Terminate',
    act: 'Terminate the run',
    reasonRequired: true,
    danger: true,
    text: 'Temporal ends the run at once, without a worker. It works when no worker is left. Prefer Cancel as long as workers respond.',
  },
  pause: {
    name: 'Pause',
    act: 'Pause the run',
    reasonRequired: false,
    danger: false,
    text: 'The run stops before its next task until it is unpaused. Work in flight ends, timers continue, arriving events are kept. Child runs are not paused.',
  },
  unpause: {
    name: 'Unpause',
    act: 'Unpause the run',
    reasonRequired: false,
    danger: false,
    text: 'The run continues where it stopped.',
  },
  resume_quota: {
    name: 'Resume quota',
    act: 'Resume the run',
    reasonRequired: false,
    danger: false,
    text: 'The run continues although the steps of its project are used up. It is granted as many additional steps as the whole limit, in this period.',
  },
}

/** The reasons of refusals that a state of a run can have, in words; the server's own sentence comes first where there is one. */
const reasons: Record<string, string> = {
  RUN_ENDED: 'The run has ended.',
  RUN_NOT_STARTED: 'The run has not been submitted to Temporal yet.',
  RUN_STARTING: 'The run is being submitted to Temporal.',
  RUN_CANCELING: 'The run is being canceled.',
  RUN_IMPORTED: 'The run was imported: it cannot be controlled here.',
}

/** refusalOf returns why a control does nothing on a run, in the words of the server; undefined if it takes effect. */
export function refusalOf(run: Run, control: Control): string | undefined {
  const state = run.controlStates.find((s) => s.control === control)
  if (state === undefined)
    return run.controls.includes(control) ? undefined : 'It does not apply to the run in its current state.'
  if (state.effect === 'yes') return undefined
  if (state.detail !== '') return state.detail
  if (state.effect === 'no_effect') return 'It would not change the run in its current state.'
  return (
    reasons[state.reason] ?? (state.reason === '' ? 'It does not apply to the run in its current state.' : state.reason)
  )
}

/** noteOf returns what may still refuse a control that is possible. */
export const noteOf = (run: Run, control: Control): string => {
  const state = run.controlStates.find((s) => s.control === control && s.effect === 'yes')
  return state?.detail ?? ''
}

/** stateText prints the state of a run as the dialogs compare it: running; waiting: timer; running, cancel requested. */
export const stateText = (run: Run): string => {
  const detail = run.status === 'queued' ? run.queuedReason : run.status === 'waiting' ? run.waitingKind : ''
  return `${run.status.replaceAll('_', ' ')}${detail === '' ? '' : `: ${detail}`}${run.cancelRequested && !hasEnded(run.status) ? ', cancel requested' : ''}`
}

/** controlCommands returns how to control a run without the page: by the CLI and by REST. */
export const controlCommands = (
  control: Confirmed,
  project: string,
  id: string,
  reason: string,
): { cli: string; rest: Rest } =>
  control === 'resume_quota'
    ? {
        cli: command(['quota', 'resume', id], { project, reason }),
        rest: restCall('POST', '/v1/projects/{project}/quota:resume', { project, runIds: [id], reason }),
      }
    : {
        cli: command(['run', control, id], { project, reason }),
        rest: restCall('POST', `/v1/projects/{project}/runs/{id}:${control}`, { project, id, reason }),
      }

/** doneText says what became of a control that the server has accepted; `run` is the run in its answer. */
export const doneText = (control: Confirmed, run: Run | undefined): string =>
  run?.cancelRequested && run.status !== 'canceled'
    ? 'Cancel requested. A worker ends the run.'
    : `${controlWords[control].name}: the server has accepted it.`

/** answered returns what the answer to a control says about the run; the rest is read again. */
export const answered = (run: Run): Partial<Run> => ({
  status: run.status,
  queuedReason: run.queuedReason,
  waitingKind: run.waitingKind,
  cancelRequested: run.cancelRequested,
  cancelReason: run.cancelReason,
  terminateReason: run.terminateReason,
  sequence: run.sequence,
})
