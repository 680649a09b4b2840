import type { GraphEdge, GraphNode } from '../gen/signalbox/v1/workflow_pb'
import { plural } from '../kit'

/** What the steps of one task of a run amount to, for its node. */
export interface TaskState {
  /** The status that is shown: of open steps first, then failed ones. */
  status: string
  /** Numbers of steps by status, in words: "57 completed, 3 failed"; empty for a single step. */
  counts: string
  /** What it contains, for a folded node: "60 iterations: 3 failed, 57 completed"; empty if that is not known. */
  inside: string
  steps: number
}

/** A graph as it is drawn: folded containers have no children. */
export interface Shape {
  nodes: ShapeNode[]
  edges: ShapeEdge[]
}

export interface ShapeNode {
  node: GraphNode
  /** ID of the container that is drawn around it; empty at the top level. */
  parent: string
  container: boolean
  /** Number of nodes that are folded into it; 0 if it is open or has none. */
  folded: number
  foldable: boolean
}

export interface ShapeEdge {
  id: string
  from: string
  to: string
  kind: string
  label: string
  taken: boolean
}

/** Containers with more branches, or more nodes, are folded at first. */
const mostBranches = 12
const mostNodes = 60

/** A loop that was entered more often is folded at first. */
const mostIterations = 5

/**
 * shape decides what of a graph is drawn. `toggled` has the containers that a person folded or opened against the default. Edges into a
 * folded container lead to it; edges between a node and what contains it are shown by the frame instead.
 */
export function shape(
  nodes: GraphNode[],
  edges: GraphEdge[],
  toggled: ReadonlySet<string>,
  states: ReadonlyMap<string, TaskState>,
  taken: ReadonlySet<string>,
): Shape {
  const byId = new Map(nodes.map((node) => [node.id, node]))
  const children = new Map<string, GraphNode[]>()
  for (const node of nodes) {
    const siblings = children.get(node.parent)
    if (siblings === undefined) children.set(node.parent, [node])
    else siblings.push(node)
  }
  const within = (id: string): number => (children.get(id) ?? []).reduce((sum, child) => sum + 1 + within(child.id), 0)
  const closed = (node: GraphNode): boolean => {
    const inner = children.get(node.id) ?? []
    if (inner.length === 0) return false
    const entered = Math.max(0, ...inner.map((child) => states.get(child.id)?.steps ?? 0))
    const byDefault =
      inner.length > mostBranches ||
      within(node.id) > mostNodes ||
      ((node.kind === 'for' || node.kind === 'listen') && entered > mostIterations)
    return byDefault !== toggled.has(node.id)
  }
  const shown: ShapeNode[] = []
  const standsFor = new Map<string, string>()
  const hide = (id: string, at: string) => {
    for (const child of children.get(id) ?? []) {
      standsFor.set(child.id, at)
      hide(child.id, at)
    }
  }
  const visit = (node: GraphNode) => {
    const foldable = (children.get(node.id) ?? []).length > 0
    const fold = closed(node)
    standsFor.set(node.id, node.id)
    shown.push({
      node,
      parent: node.parent,
      container: foldable && !fold,
      folded: fold ? within(node.id) : 0,
      foldable,
    })
    if (fold) hide(node.id, node.id)
    else for (const child of children.get(node.id) ?? []) visit(child)
  }
  for (const node of children.get('') ?? []) visit(node)

  const contains = (outer: string, inner: string): boolean => {
    for (let at = byId.get(inner)?.parent ?? ''; at !== ''; at = byId.get(at)?.parent ?? '')
      if (at === outer) return true
    return false
  }
  const drawn = new Map<string, ShapeEdge>()
  for (const edge of edges) {
    if (contains(edge.from, edge.to) || contains(edge.to, edge.from)) continue
    const from = standsFor.get(edge.from) ?? edge.from
    const to = standsFor.get(edge.to) ?? edge.to
    if (contains(from, to) || contains(to, from) || (from === to && edge.from !== edge.to)) continue
    const id = `${from} ${to} ${edge.label}`
    const was = taken.has(`${edge.from} ${edge.to}`)
    const known = drawn.get(id)
    drawn.set(id, { id, from, to, kind: edge.kind, label: edge.label, taken: was || (known?.taken ?? false) })
  }
  return { nodes: shown, edges: [...drawn.values()] }
}

/** nodeTitle returns the name that a node is shown by. */
export const nodeTitle = (node: GraphNode): string => (node.name === '' ? node.kind : node.name)

/** structureOf returns a text that is the same for graphs with the same layout, however the states of their tasks change. */
export const structureOf = ({ nodes, edges }: Shape): string =>
  nodes.map((n) => `${n.node.id}${n.container}`).join() + edges.map((e) => e.id).join()

/** The longest label of an edge that is drawn whole. */
const longestLabel = 40

/** edgeLabel returns the label of an edge as it is drawn. */
export const edgeLabel = ({ label }: ShapeEdge): string =>
  label.length > longestLabel ? `${label.slice(0, longestLabel)}…` : label

/** isTerminal reports whether a node is the beginning or an end, not a task. */
export const isTerminal = ({ kind }: GraphNode): boolean => kind === 'start' || kind === 'end'

/** canSelect reports whether a node can be selected: a task, and in the graph of a run one that has steps. */
export const canSelect = (node: GraphNode, state: TaskState | undefined, ofRun: boolean): boolean =>
  !isTerminal(node) && node.kind !== 'catch' && (state !== undefined || !ofRun)

/** foldedText says what is folded into a node: what its steps amount to, or how many tasks there are; empty for an open one. */
export const foldedText = (folded: number, state: TaskState | undefined): string =>
  folded === 0 ? '' : state === undefined || state.inside === '' ? plural(folded, 'task') : state.inside

/** A node in the list: how deep it is, and the nodes after it, with the labels of the edges to them. */
export interface OutlineRow {
  depth: number
  next: string
}

/** outline returns the rows of a graph as a list, by the IDs of its nodes. */
export function outline({ nodes, edges }: Shape): Map<string, OutlineRow> {
  const names = new Map(nodes.map(({ node }) => [node.id, nodeTitle(node)]))
  const rows = new Map<string, OutlineRow>()
  for (const { node, parent } of nodes) {
    const next = edges
      .filter(({ from }) => from === node.id)
      .map(({ to, label }) => `${names.get(to) ?? ''}${label === '' ? '' : ` (${label})`}`)
    rows.set(node.id, {
      depth: parent === '' ? 0 : (rows.get(parent)?.depth ?? 0) + 1,
      next: next.length === 0 ? '' : `then ${next.join(', ')}`,
    })
  }
  return rows
}
