import type { Run, Step, StepSummary } from '../gen/signalbox/v1/run_pb'

/** mergeSteps adds changed steps to a list in order of entry. Of two states of a step, the one of the later sequence counts. */
export function mergeSteps(steps: Step[], changed: Step[]): Step[] {
  if (changed.length === 0) return steps
  const last = steps.at(-1)?.number ?? 0n
  const ascending = changed.every((step, i) => step.number > (changed[i - 1]?.number ?? last))
  if (ascending) return [...steps, ...changed]
  const byNumber = new Map(steps.map((step) => [step.number, step]))
  for (const step of changed) {
    const known = byNumber.get(step.number)
    // A watch repeats steps without what only ListSteps returns.
    if (known === undefined || known.sequence < step.sequence) byNumber.set(step.number, step)
  }
  return [...byNumber.values()].sort((a, b) => Number(a.number - b.number))
}

/** markCaught marks the failed steps that a watch names as caught: their own rows do not change when the try around them completes. */
export function markCaught(steps: Step[], numbers: bigint[]): Step[] {
  if (numbers.length === 0) return steps
  const caught = new Set(numbers)
  return steps.map((step) => (caught.has(step.number) && step.caught !== true ? { ...step, caught: true } : step))
}

/** mergeRun keeps what only GetRun returns when a watch sends a run again. */
export function mergeRun(known: Run | undefined, next: Run): Run {
  if (known === undefined || known.id !== next.id) return next
  if (next.sequence < known.sequence) return known
  return {
    ...next,
    input: next.input ?? known.input,
    output: next.output ?? known.output,
    waits:
      next.sequence === known.sequence || next.waits.length > 0
        ? next.waits.length > 0
          ? next.waits
          : known.waits
        : [],
    children: next.children.length > 0 ? next.children : known.children,
    replays: next.replays.length > 0 ? next.replays : known.replays,
    replayOf: next.replayOf === '' ? known.replayOf : next.replayOf,
    parentRunId: next.parentRunId === '' ? known.parentRunId : next.parentRunId,
    parentPath: next.parentPath === '' ? known.parentPath : next.parentPath,
    depth: next.depth === 0 ? known.depth : next.depth,
    legacy: next.legacy ?? known.legacy,
    quota: next.quota ?? (next.waitingKind === 'quota' ? known.quota : undefined),
    controlStates: next.controlStates.length > 0 ? next.controlStates : known.controlStates,
    failedStep: next.failedStep ?? known.failedStep,
    stepSummary: next.stepSummary ?? known.stepSummary,
  }
}

/** mergeSummary replaces the counts of the tasks that have changed. */
export function mergeSummary(known: StepSummary | undefined, change: StepSummary | undefined): StepSummary | undefined {
  if (change === undefined || known === undefined) return change ?? known
  const tasks = new Map(known.tasks.map((task) => [task.pointer, task]))
  for (const task of change.tasks) tasks.set(task.pointer, task)
  return { ...change, tasks: [...tasks.values()] }
}
