import { type Json, printJson, readJson } from '../api'
import { command, type Rest } from '../kit'
import { type Label, labelText } from '../labels'
import type { Edit } from './edit'

/** Which version the new run has: that of the earlier run, the latest one, or another one, which may not be chosen yet. */
export interface VersionChoice {
  kind: 'same' | 'latest' | 'other'
  other: string
}

/** versionOf returns the version of a request; empty for that of the earlier run. */
export const versionOf = ({ kind, other }: VersionChoice): string =>
  kind === 'same' ? '' : kind === 'latest' ? 'latest' : other

/** isUnchosen reports whether another version is wanted and none is chosen yet. */
export const isUnchosen = ({ kind, other }: VersionChoice): boolean => kind === 'other' && other === ''

/** What decides whether a replay can be sent. */
export interface ReplayForm {
  reason: string
  version: VersionChoice
  /** What is wrong with the labels. */
  labels: string | undefined
  /** Undefined while the input is not edited. */
  edit: Edit | undefined
}

/** canCheck reports whether the server can check a replay: all but the reason is complete. */
export const canCheck = ({ version, labels, edit }: Omit<ReplayForm, 'reason'>): boolean =>
  labels === undefined &&
  !isUnchosen(version) &&
  (edit === undefined || (edit.syntax === '' && edit.problems.length === 0))

/** canReplay reports whether a replay can be sent. */
export const canReplay = (form: ReplayForm): boolean => form.reason.trim() !== '' && canCheck(form)

/** A replay as a request. */
export interface ReplayRequest {
  project: string
  id: string
  reason: string
  /** Empty for that of the earlier run. */
  version: string
  /** The patch of the input as JSON; undefined for the same input. */
  patch: string | undefined
  labels: Label[]
  requestId: string
}

/** replayCommands returns how to replay a run without the page: by the CLI and by REST. */
export function replayCommands({ project, id, reason, version, patch, labels, requestId }: ReplayRequest): {
  cli: string
  rest: Rest
} {
  const body = new Map<string, Json>([
    ['reason', reason],
    ['version', version],
    ['requestId', requestId],
  ])
  if (labels.length > 0) body.set('labels', new Map(labels.map(({ key, value }) => [key, value])))
  if (patch !== undefined) body.set('patch', readJson(patch))
  return {
    cli: command(['run', 'replay', id], {
      project,
      reason,
      version,
      patch,
      label: labels.map(labelText),
      'request-id': requestId,
    }),
    rest: {
      method: 'POST',
      path: `/v1/projects/${encodeURIComponent(project)}/runs/${id}:replay`,
      body: printJson(body),
    },
  }
}

/** latestLabel names the choice of the latest version, which is known once the versions were read. */
export const latestLabel = (latest: string | undefined, ran: string): string =>
  latest === undefined ? 'latest' : latest === ran ? 'latest, now the same' : `${latest}, latest`
