import ELK, { type ElkNode } from 'elkjs/lib/elk-api.js'
import workerUrl from 'elkjs/lib/elk-worker.min.js?url'
import type { Shape } from './model'

export interface Box {
  x: number
  y: number
  width: number
  height: number
}

export const nodeWidth = 208
export const nodeHeight = 52

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

let elk: InstanceType<typeof ELK> | undefined

/** layout computes the boxes of all nodes, relative to their containers. It runs in a worker, so the page stays usable. */
export async function layout(graph: Shape): Promise<Map<string, Box>> {
  elk ??= new ELK({ workerUrl })
  const nodes = new Map<string, ElkNode>()
  const root: ElkNode = {
    id: 'root',
    layoutOptions: options,
    children: [],
    edges: graph.edges.map((edge, i) => ({ id: `e${i}`, sources: [edge.from], targets: [edge.to] })),
  }
  for (const { node, parent, container } of graph.nodes) {
    const made: ElkNode = container
      ? {
          id: node.id,
          children: [],
          layoutOptions: {
            'elk.padding': `[top=${headHeight + 12},left=16,bottom=16,right=16]`,
            'elk.nodeSize.constraints': 'MINIMUM_SIZE',
            'elk.nodeSize.minimum': `(${nodeWidth},${nodeHeight})`,
          },
        }
      : {
          id: node.id,
          width: node.kind === 'start' || node.kind === 'end' ? 120 : nodeWidth,
          height: node.kind === 'start' || node.kind === 'end' ? 32 : nodeHeight,
        }
    nodes.set(node.id, made)
    const around = nodes.get(parent) ?? root
    around.children?.push(made)
  }
  const done = await elk.layout(root)
  const boxes = new Map<string, Box>()
  const visit = (node: ElkNode) => {
    boxes.set(node.id, {
      x: node.x ?? 0,
      y: node.y ?? 0,
      width: node.width ?? nodeWidth,
      height: node.height ?? nodeHeight,
    })
    for (const child of node.children ?? []) visit(child)
  }
  for (const child of done.children ?? []) visit(child)
  return boxes
}
