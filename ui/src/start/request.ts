import { type Json, printJson } from '../api'
import { command, type Rest } from '../kit'
import { type Label, labelText } from '../labels'
import { fieldErrors, type Problems } from './check'

/** What decides whether a run can be started. */
export interface Readiness {
  /** Why this browser or its caller cannot start runs; undefined if it can. */
  caller: string | undefined
  /** What was chosen; empty if nothing was. */
  name: string
  /** The workflow as it was read last; undefined before. */
  workflow: { state: string; latestVersion: string } | undefined
  /** Whether the chosen version is still being read. */
  reading: boolean
  /** Why the text of the input is not JSON. */
  problem: string | undefined
  /** The number of fields with a text that is not JSON. */
  broken: number
  /** The number of numbers that are none. */
  wrong: number
  /** What is wrong with the labels. */
  labels: string | undefined
}

/** startRefusal returns why the run cannot be started now; undefined if it can. */
export function startRefusal({ caller, name, workflow, reading, problem, broken, wrong, labels }: Readiness) {
  if (caller !== undefined) return caller
  if (workflow === undefined) return name === '' ? 'Choose a workflow' : 'The workflow has not been read'
  if (workflow.state === 'paused') return 'The workflow is paused'
  if (workflow.latestVersion === '') return 'Nothing is published'
  if (reading) return 'The version is being read'
  if (problem !== undefined) return 'The input is not JSON'
  if (broken > 0) return 'A field contains text that is not JSON'
  if (wrong > 0) return 'A number is not a number'
  return labels
}

/** canCheck reports whether the server can check what is typed: it would refuse a workflow without versions for another reason. */
export const canCheck = ({ caller, workflow, problem, broken, wrong, labels }: Readiness): boolean =>
  caller === undefined &&
  workflow !== undefined &&
  workflow.latestVersion !== '' &&
  problem === undefined &&
  broken === 0 &&
  wrong === 0 &&
  labels === undefined

const concerns = (path: string, of: string) => path === of || path.startsWith(`${of}/`)

/**
 * shownErrors returns the errors at the fields, and whether they are all that the server reported, so that its sentence would repeat them.
 * What is missing is marked once a person thought to be done, and nothing is marked while a person types.
 */
export function shownErrors(input: {
  /** Undefined for an input without a form. */
  schema: Json | undefined
  value: Json | undefined
  /** What the server reported of this input. */
  reported: { path: string; message: string }[]
  /** Pointers to numbers that are none. */
  wrong: string[]
  /** Whether this input was submitted, and whether the server has checked it. */
  submitted: boolean
  checked: boolean
}): { errors: Problems; complete: boolean } {
  const { errors, hidden } = fieldErrors(input.schema ?? true, input.value, input.reported)
  if (!input.submitted)
    for (const [pointer, message] of errors) if (message === 'Required' || !input.checked) errors.delete(pointer)
  for (const pointer of input.wrong) errors.set(pointer, 'not a number')
  const fields = input.reported.every(({ path }) => concerns(path, 'labels') || concerns(path, 'input'))
  return { errors, complete: input.schema !== undefined && !hidden && input.reported.length > 0 && fields }
}

/** A run to start. */
export interface StartRequest {
  project: string
  workflow: string
  /** Empty for the latest. */
  version: string
  /** Undefined for none. */
  input: Json | undefined
  labels: Label[]
  requestId: string
}

/** startCommands returns how to start the run without the page: by the CLI and by REST. */
export function startCommands({ project, workflow, version, input, labels, requestId }: StartRequest): {
  cli: string
  rest: Rest
} {
  const body = new Map<string, Json>([['workflow', workflow]])
  if (version !== '') body.set('version', version)
  if (input !== undefined) body.set('input', input)
  if (labels.length > 0) body.set('labels', new Map(labels.map(({ key, value }) => [key, value])))
  body.set('requestId', requestId)
  return {
    cli: command(['run', 'start', workflow], {
      project,
      version,
      input: input === undefined ? '' : printJson(input),
      label: labels.map(labelText),
      'request-id': requestId,
    }),
    rest: { method: 'POST', path: `/v1/projects/${encodeURIComponent(project)}/runs`, body: printJson(body) },
  }
}

/** What is known of the installation before a run is started. */
export interface Surroundings {
  /** Why the workflow is paused; undefined if it is not. */
  paused: string | undefined
  unpublished: boolean
  connection: { state: string; title: string; mismatch: string; queuesRuns: boolean } | undefined
  /** The number of workers of the project; undefined if it is not known. */
  workers: number | undefined
}

/** A reason why a run would be refused or wait. */
export interface StartAlert {
  id: 'paused' | 'unpublished' | 'engine' | 'mismatch' | 'worker'
  tone: 'red' | 'amber'
  title: string
  detail?: string
}

/** startAlerts returns what would refuse or delay a run of the project. */
export function startAlerts(project: string, { paused, unpublished, connection, workers }: Surroundings): StartAlert[] {
  const alerts: StartAlert[] = []
  if (paused !== undefined)
    alerts.push({ id: 'paused', tone: 'amber', title: 'The workflow is paused: new runs are refused', detail: paused })
  if (unpublished)
    alerts.push({
      id: 'unpublished',
      tone: 'amber',
      title: 'Nothing is published: there is no version to run',
      detail: 'Publish the draft of the workflow first.',
    })
  if (connection !== undefined && connection.state !== 'connected' && connection.state !== 'degraded') {
    alerts.push({
      id: 'engine',
      tone: 'red',
      title: `${connection.title}: the run will be ${connection.queuesRuns ? 'queued' : 'refused'}`,
      detail: connection.queuesRuns
        ? 'It starts when Temporal is available again.'
        : 'Try again when Temporal is available again.',
    })
  }
  if (connection !== undefined && connection.mismatch !== '')
    alerts.push({ id: 'mismatch', tone: 'red', title: `${connection.mismatch}: the run will be refused` })
  if (workers === 0)
    alerts.push({ id: 'worker', tone: 'amber', title: `No worker serves ${project}: the run waits until one starts` })
  return alerts
}
