import type { ListStepsResponse, Run, StepSummary } from '../gen/signalbox/v1/run_pb'

/** What a search by the server has found so far. The server also reads inputs and outputs, which the list of a long run does not have. */
export interface Found {
  numbers: ReadonlySet<bigint>
  /** How many of the listed steps have been read. */
  searched: number
  complete: boolean
}

export const noneFound: Found = { numbers: new Set(), searched: 0, complete: false }

/** listedSteps returns the number of steps of a run that are listed; the others are counted only. */
export const listedSteps = (run: Run, summary: StepSummary | undefined): number =>
  Number(BigInt(run.stepsTotal) - (summary?.steps ?? 0n))

/** addPage adds a page of a search to what was found before it. */
export const addPage = (
  found: Found,
  page: Pick<ListStepsResponse, 'steps' | 'nextPageToken' | 'searched'>,
): Found => ({
  numbers: new Set([...found.numbers, ...page.steps.map((step) => step.number)]),
  searched: found.searched + Number(page.searched),
  complete: page.nextPageToken === '',
})
