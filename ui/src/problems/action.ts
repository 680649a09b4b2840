import type { Problem } from '../gen/signalbox/v1/problem_pb'

const hour = 3_600_000

/** The times for which a problem can be snoozed. */
export const snoozes = [
  { label: 'For an hour', milliseconds: hour },
  { label: 'For 8 hours', milliseconds: 8 * hour },
  { label: 'For 3 days', milliseconds: 72 * hour },
]

/** isSettled reports whether an operator has taken note of a problem, so that it can be reopened. */
export const isSettled = ({ state }: Problem): boolean => state === 'acknowledged' || state === 'snoozed'

/** goneRefusal returns why nothing can be done about a problem that is resolved. */
export const goneRefusal = ({ state }: Problem): string | undefined =>
  state === 'resolved' ? 'The problem no longer exists.' : undefined

/** roleProject returns the project in which an operator acts on a problem; "*" for one of the platform. */
export const roleProject = ({ project }: Problem): string => (project === '' ? '*' : project)

/** leftRuns returns how many runs of a failure have no replay; none of a resolved one is to be replayed. */
export const leftRuns = ({ state, notReplayed }: Problem): bigint => (state === 'resolved' ? 0n : (notReplayed ?? 0n))

/** A text that is edited while others may change it, too. */
export interface EditedText {
  /** The text of the server that the edit began with. */
  first: string
  text: string
}

/** followed returns the edit when the server has another text: a text that was not changed here follows it. */
export const followed = (edit: EditedText, current: string): EditedText =>
  edit.text === edit.first && current !== edit.first ? { first: current, text: current } : edit

/** otherText returns what another operator wrote meanwhile, which saving would replace; undefined for nothing. */
export const otherText = ({ first, text }: EditedText, current: string): string | undefined =>
  text !== first && current !== first && current !== text ? current : undefined
