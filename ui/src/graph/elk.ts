import type { ElkNode } from 'elkjs/lib/elk-api.js'
import type { Shape, ShapeNode } from './model'

/** The place and size of a node, relative to what contains it. */
export interface Box {
  x: number
  y: number
  width: number
  height: number
}

const nodeWidth = 208
const nodeHeight = 52

/** The height of the head of a container, above what it contains. */
export const headHeight = 52

const options = {
  'elk.algorithm': 'layered',
  'elk.direction': 'DOWN',
  'elk.hierarchyHandling': 'INCLUDE_CHILDREN',
  'elk.spacing.nodeNode': '28',
  'elk.layered.spacing.nodeNodeBetweenLayers': '36',
  'elk.spacing.edgeNode': '16',
  'elk.spacing.componentComponent': '28',
  'elk.layered.considerModelOrder.strategy': 'NODES_AND_EDGES',
  'elk.layered.nodePlacement.strategy': 'NETWORK_SIMPLEX',
}

const container = {
  'elk.padding': `[top=${headHeight + 12},left=16,bottom=16,right=16]`,
  'elk.nodeSize.constraints': 'MINIMUM_SIZE',
  'elk.nodeSize.minimum': `(${nodeWidth},${nodeHeight})`,
}

const made = ({ node, container: contains }: ShapeNode): ElkNode => {
  if (contains) return { id: node.id, children: [], layoutOptions: container }
  const terminal = node.kind === 'start' || node.kind === 'end'
  return { id: node.id, width: terminal ? 120 : nodeWidth, height: terminal ? 32 : nodeHeight }
}

/** elkGraph returns a graph as ELK takes it: nodes within their containers, and all edges at the root. */
export function elkGraph(graph: Shape): ElkNode {
  const root: ElkNode = {
    id: 'root',
    layoutOptions: options,
    children: [],
    edges: graph.edges.map((edge, i) => ({ id: `e${i}`, sources: [edge.from], targets: [edge.to] })),
  }
  const nodes = new Map<string, ElkNode>()
  for (const shown of graph.nodes) {
    const node = made(shown)
    nodes.set(node.id, node)
    ;(nodes.get(shown.parent) ?? root).children?.push(node)
  }
  return root
}

/** boxesOf returns the boxes of all nodes of a graph that ELK has laid out. */
export function boxesOf(root: ElkNode): Map<string, Box> {
  const boxes = new Map<string, Box>()
  const visit = ({ id, x = 0, y = 0, width = nodeWidth, height = nodeHeight, children = [] }: ElkNode) => {
    boxes.set(id, { x, y, width, height })
    children.forEach(visit)
  }
  root.children?.forEach(visit)
  return boxes
}
