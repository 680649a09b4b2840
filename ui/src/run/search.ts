import type { ListStepsResponse, Run, StepSummary } from '../gen/signalbox/v1/run_pb'

/** What a search by the server has found so far. The server also reads inputs and outputs, which the list of a long run does not have. */
export interface Found {
  numbers: ReadonlySet<bigint>
  /** How many of the listed steps have been read. */
  searched: number
  complete: boolean
}

/** The number of steps that the server reads for a page of a search that is not full and not the last. */
const readPerPage = 2000
export const searchPageSize = 500

export const noneFound: Found = { numbers: new Set(), searched: 0, complete: false }

/** listedSteps returns the number of steps of a run that are listed; the others are counted only. */
export const listedSteps = (run: Run, summary: StepSummary | undefined): number => Number(BigInt(run.stepsTotal) - (summary?.steps ?? 0n))

/** addPage adds a page of a search to what was found before it. */
export function addPage(found: Found, page: Pick<ListStepsResponse, 'steps' | 'nextPageToken'>, listed: number, summary: StepSummary | undefined, size = searchPageSize): Found {
  const numbers = new Set([...found.numbers, ...page.steps.map((step) => step.number)])
  const last = page.steps.at(-1)?.number
  const complete = page.nextPageToken === ''
  // A full page ends at its last step.
  const searched = complete ? listed : page.steps.length >= size && last !== undefined ? listedUpTo(last, summary) : found.searched + readPerPage
  return { numbers, searched: Math.min(listed, searched), complete }
}

/** listedUpTo returns how many listed steps there are up to a number. */
const listedUpTo = (number: bigint, summary: StepSummary | undefined): number =>
  Number(summary !== undefined && summary.steps > 0n && number > summary.to ? number - summary.steps : number)
