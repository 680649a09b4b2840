import type { TaskState } from '../graph'
import type { StepSummary } from '../gen/signalbox/v1/run_pb'
import { countsText, type Counts, type Node, statusGroup, sumCounts } from './tree'

/** taskStates returns the states of the tasks of a run by their pointers, the counted steps of long runs included. */
export function taskStates(root: Node, summary: StepSummary | undefined): Map<string, TaskState> {
  const tasks = new Map<string, { counts: Counts; open: string; last: string; steps: number; inside: Node[] }>()
  const of = (pointer: string) => {
    const known = tasks.get(pointer)
    if (known !== undefined) return known
    const made = {
      counts: { failed: 0, caught: 0, open: 0, completed: 0, skipped: 0, canceled: 0 },
      open: '',
      last: '',
      steps: 0,
      inside: [] as Node[],
    }
    tasks.set(pointer, made)
    return made
  }
  const visit = (node: Node) => {
    if (node.step !== undefined) {
      const task = of(node.step.pointer)
      const group = node.caught ? 'caught' : statusGroup(node.step.status)
      task.counts[group]++
      task.steps++
      task.last = node.caught ? 'caught' : node.step.status
      if (group === 'open') task.open = node.step.status
      if (node.repeats) task.inside.push(...node.children)
    }
    node.children.forEach(visit)
  }
  visit(root)
  for (const part of summary?.tasks ?? []) {
    const task = of(part.pointer)
    for (const name of ['completed', 'failed', 'skipped', 'canceled'] as const) task.counts[name] += Number(part[name])
    task.steps += Number(part.count)
    if (task.last === '') task.last = 'completed'
  }
  return new Map(
    [...tasks].map(([pointer, { counts, open, last, steps: n, inside }]) => [
      pointer,
      // A task that was tried again and completed in the end is not shown as failed.
      {
        status: open !== '' ? open : last,
        counts: n > 1 ? countsText(counts) : '',
        inside: insideText(inside),
        steps: n,
      },
    ]),
  )
}

const insideText = (nodes: Node[]): string => {
  const [first] = nodes
  if (first === undefined) return ''
  const kind = first.kind === 'step' ? 'branches' : `${first.kind}s`
  return `${nodes.length} ${kind}: ${countsText(sumCounts(nodes))}`
}

/** takenEdges returns the pairs of pointers that the run passed one after the other in one list; also from the start and to the end. */
export function takenEdges(root: Node, completed: boolean): Set<string> {
  const taken = new Set<string>()
  const pass = (list: Node[]) => {
    for (let i = 1; i < list.length; i++) {
      const [before, after] = [list[i - 1]?.step, list[i]?.step]
      if (before !== undefined && after !== undefined) taken.add(`${before.pointer} ${after.pointer}`)
    }
  }
  const visit = (node: Node) => {
    if (!node.repeats) pass(node.children.filter((child) => child.kind === 'step'))
    for (const child of node.children) {
      if (child.kind === 'catch' && node.step !== undefined)
        taken.add(`${node.step.pointer} ${node.step.pointer}/catch`)
      visit(child)
    }
  }
  visit(root)
  const [first] = root.children
  if (first?.step !== undefined) taken.add(`start ${first.step.pointer}`)
  // A run ends after its last task, or inside of another one by a directive.
  for (let last = root.children.at(-1); completed && last !== undefined; last = last.children.at(-1)) {
    if (last.step !== undefined) taken.add(`${last.step.pointer} end`)
  }
  return taken
}
