import type { Step } from '../gen/signalbox/v1/run_pb'

/** Numbers of steps by status. */
export interface Counts {
  failed: number
  /** Failed, and the error was caught. */
  caught: number
  open: number
  completed: number
  skipped: number
  canceled: number
}

/**
 * A node of the tree of steps: a step, or what groups the steps of one iteration of a loop, one attempt of a try, or its catch. A group of
 * one step is shown with it in one row.
 */
export interface Node {
  /** The path of the step, or of the group in the notation of paths. */
  key: string
  kind: 'step' | 'iteration' | 'attempt' | 'catch'
  /** The number of an iteration or attempt, from 1. */
  number: number
  step: Step | undefined
  children: Node[]
  parent: Node | undefined
  /** Whether its step failed inside of a try that has completed: its catch or a later attempt handled the error. */
  caught: boolean
  /** Of the steps below, and of its own step. */
  counts: Counts
  /** Whether its children repeat one another: iterations, branches, attempts. Many of them are folded. */
  repeats: boolean
}

const noCounts = (): Counts => ({ failed: 0, caught: 0, open: 0, completed: 0, skipped: 0, canceled: 0 })

/** statusGroup returns the count that a status belongs to. */
export const statusGroup = (status: string): keyof Counts =>
  status === 'failed' || status === 'completed' || status === 'skipped' || status === 'canceled' ? status : 'open'

const newNode = (key: string, kind: Node['kind'], number: number, step: Step | undefined): Node => ({
  key,
  kind,
  number,
  step,
  children: [],
  parent: undefined,
  caught: false,
  counts: noCounts(),
  repeats: false,
})

/** buildTree arranges steps, in order of entry, by their paths. A step whose parent is not listed is below the nearest listed one. */
export function buildTree(steps: Step[]): Node {
  const root = newNode('', 'step', 0, undefined)
  const nodes = new Map<string, Node>([['', root]])
  for (const step of steps) {
    const node = newNode(step.path, 'step', 0, step)
    attach(root, nodes, node)
    nodes.set(step.path, node)
  }
  count(root)
  return root
}

function attach(root: Node, nodes: Map<string, Node>, node: Node): void {
  let end = node.key.lastIndexOf('/')
  while (end > 0 && !nodes.has(node.key.slice(0, end))) end = node.key.lastIndexOf('/', end - 1)
  const parent = end > 0 ? (nodes.get(node.key.slice(0, end)) ?? root) : root
  const rest = node.key.slice(Math.max(end, 0) + 1).split('/')
  const [word = '', index = ''] = rest
  if (parent.kind !== 'step' || parent === root) {
    add(parent, node)
    return
  }
  if (word === 'for' || word === 'foreach')
    add(group(nodes, parent, `${parent.key}/${word}/${index}`, 'iteration', Number(index) + 1), node)
  else if (word === 'retry') {
    wrapFirstAttempt(nodes, parent)
    add(group(nodes, parent, `${parent.key}/retry/${index}`, 'attempt', Number(index)), node)
  } else if (word === 'catch') add(group(nodes, parent, `${parent.key}/catch`, 'catch', 0), node)
  else {
    if (word === 'fork') parent.repeats = true
    add(parent, node)
  }
}

function add(parent: Node, node: Node): void {
  node.parent = parent
  parent.children.push(node)
}

function group(nodes: Map<string, Node>, parent: Node, key: string, kind: Node['kind'], number: number): Node {
  const known = nodes.get(key)
  if (known !== undefined) return known
  const made = newNode(key, kind, number, undefined)
  nodes.set(key, made)
  if (kind !== 'catch') parent.repeats = true
  add(parent, made)
  return made
}

/** The steps of a try are its first attempt once there is a second one. */
function wrapFirstAttempt(nodes: Map<string, Node>, parent: Node): void {
  const key = `${parent.key}/try`
  if (nodes.has(key)) return
  const first = newNode(key, 'attempt', 1, undefined)
  nodes.set(key, first)
  first.parent = parent
  const inside = (child: Node) => child.kind === 'step' && child.key.startsWith(`${parent.key}/try/`)
  first.children = parent.children.filter(inside)
  for (const child of first.children) child.parent = first
  parent.children = [first, ...parent.children.filter((child) => !inside(child))]
  parent.repeats = true
}

function count(node: Node): Counts {
  node.caught = node.step?.caught === true
  if (node.step !== undefined) node.counts[node.caught ? 'caught' : statusGroup(node.step.status)]++
  for (const child of node.children) {
    const below = count(child)
    for (const name of Object.keys(below) as (keyof Counts)[]) node.counts[name] += below[name]
  }
  return node.counts
}

/** total returns the number of all counted steps. */
export const total = (counts: Counts): number => Object.values(counts).reduce((sum: number, n: number) => sum + n, 0)

/** failures returns the failed steps in order of entry; a step that failed because of one below it is left out, and so are caught ones. */
export function failures(root: Node): Step[] {
  const found: Step[] = []
  const visit = (node: Node): boolean => {
    let below = false
    for (const child of node.children) below = visit(child) || below
    if (node.step?.status !== 'failed' || node.caught) return below
    if (!below) found.push(node.step)
    return true
  }
  visit(root)
  return found.sort((a, b) => Number(a.number - b.number))
}

/** A row of the tree as it is shown. */
export type Row =
  | {
      kind: 'node'
      key: string
      node: Node
      depth: number
      step: Step | undefined
      caught: boolean
      children: Node[]
      open: boolean
    }
  | { kind: 'fold'; key: string; of: Node; depth: number; open: boolean; hidden: Node[] }

export type Matches = (step: Step, caught: boolean) => boolean

export interface View {
  /** Keys of nodes that a person opened or closed, against the default. */
  toggled: ReadonlySet<string>
  /** Keys of nodes of which all children are shown. */
  unfolded: ReadonlySet<string>
  /** Steps to show; undefined shows all. Those around a shown step are shown, too. */
  matches: Matches | undefined
  /** Path of a step that is shown in any case: the selected one. */
  reveal: string
}

/** The number of repeated siblings that are shown before the others are folded. */
export const shownSiblings = 5

const needsAttention = (node: Node) => node.counts.failed > 0 || node.counts.open > 0

const openByDefault = (node: Node): boolean =>
  node.kind === 'step' ||
  node.kind === 'catch' ||
  needsAttention(node) ||
  (node.parent?.children.length ?? 0) <= shownSiblings

/** flatten returns the rows of the tree in order. */
export function flatten(root: Node, view: View): Row[] {
  const rows: Row[] = []
  const wanted = view.matches === undefined ? undefined : matching(root, view.matches)
  const visit = (node: Node, depth: number) => {
    const shown = wanted === undefined ? node.children : node.children.filter((child) => wanted.has(child))
    const hidden =
      wanted === undefined && node.repeats && shown.length > shownSiblings ? folded(shown, view.reveal) : []
    const unfolded = view.unfolded.has(node.key)
    const left = new Set(unfolded ? [] : hidden)
    for (const child of hidden.length > 0 && !unfolded ? byAttention(shown.filter((c) => !left.has(c))) : shown)
      row(child, depth)
    if (hidden.length > 0) rows.push({ kind: 'fold', key: `${node.key}/…`, of: node, depth, open: unfolded, hidden })
  }
  const row = (node: Node, depth: number) => {
    // A group of one step is one row: the iteration and its task.
    const only =
      node.kind !== 'step' && node.kind !== 'catch' && node.children.length === 1 ? node.children[0] : undefined
    const inner = only ?? node
    const inside = view.reveal !== '' && view.reveal !== inner.step?.path && view.reveal.startsWith(`${inner.key}/`)
    const open =
      inner.children.length > 0 &&
      (inside || wanted !== undefined || openByDefault(inner) !== view.toggled.has(node.key))
    rows.push({
      kind: 'node',
      key: node.key,
      node,
      depth,
      step: inner.step,
      caught: inner.caught,
      children: inner.children,
      open,
    })
    if (open) visit(inner, depth + 1)
  }
  visit(root, 0)
  return rows
}

/** byAttention puts failed nodes first, then open ones, each in order of entry. */
const byAttention = (nodes: Node[]): Node[] => [
  ...nodes.filter((n) => n.counts.failed > 0),
  ...nodes.filter((n) => n.counts.failed === 0 && n.counts.open > 0),
  ...nodes.filter((n) => !needsAttention(n)),
]

/** folded returns the siblings that are not shown at first. The revealed one is always shown. */
function folded(siblings: Node[], reveal: string): Node[] {
  const keep = new Set(byAttention(siblings).slice(0, shownSiblings))
  return siblings.filter(
    (node) => !keep.has(node) && !(reveal !== '' && (reveal === node.key || reveal.startsWith(`${node.key}/`))),
  )
}

function matching(root: Node, matches: Matches): Set<Node> {
  const wanted = new Set<Node>()
  const visit = (node: Node): boolean => {
    let keep = node.step !== undefined && matches(node.step, node.caught)
    for (const child of node.children) keep = visit(child) || keep
    if (keep) wanted.add(node)
    return keep
  }
  visit(root)
  return wanted
}

/** countMatches returns how many steps match. */
export const countMatches = (node: Node, matches: Matches): number =>
  node.children.reduce(
    (sum, child) => sum + countMatches(child, matches),
    node.step !== undefined && matches(node.step, node.caught) ? 1 : 0,
  )

/** sumCounts adds the counts of nodes. */
export function sumCounts(nodes: Node[]): Counts {
  const sum = noCounts()
  for (const node of nodes) {
    const worst =
      node.counts.failed > 0
        ? 'failed'
        : node.counts.open > 0
          ? 'open'
          : node.counts.canceled > 0
            ? 'canceled'
            : node.counts.completed > 0
              ? 'completed'
              : 'skipped'
    sum[worst]++
  }
  return sum
}

/** countsText prints counts, the failed first: "3 failed, 57 completed". */
export const countsText = (counts: Counts): string =>
  (['failed', 'open', 'caught', 'canceled', 'skipped', 'completed'] as const)
    .filter((name) => counts[name] > 0)
    .map((name) => `${counts[name]} ${name}`)
    .join(', ')

/** textMatches reports whether a lower-case text is in the step's name, path, kind, number or error. */
export const textMatches = (step: Step, text: string): boolean =>
  [step.task, step.path, step.kind, String(step.number), step.error?.title ?? '', step.error?.detail ?? ''].some(
    (part) => part.toLowerCase().includes(text),
  )

/**
 * stepMatches returns the filter of the URL's parameters: `only` is failed, caught or open, `q` a text in name, path, kind, number or
 * error. The steps that the server found by the text, such as in their outputs, match, too.
 */
export function stepMatches(only: string, q: string, found: ReadonlySet<bigint> = new Set()): Matches | undefined {
  const text = q.trim().toLowerCase()
  if (only === '' && text === '') return undefined
  return (step, caught) => {
    if (only === 'failed' && (step.status !== 'failed' || caught)) return false
    if (only === 'caught' && !caught) return false
    if (only === 'open' && statusGroup(step.status) !== 'open') return false
    return text === '' || found.has(step.number) || textMatches(step, text)
  }
}
