import { create } from '@bufbuild/protobuf'
import ELK from 'elkjs/lib/elk.bundled.js'
import { describe, expect, it, vi } from 'vitest'
import { GraphEdgeSchema, GraphNodeSchema } from '../gen/signalbox/v1/workflow_pb'
import { type Box, boxesOf, elkGraph, headHeight } from './elk'
import { type Shape, shape } from './model'

// The layout takes what it needs of JavaScript from the window.
vi.stubGlobal('window', globalThis)

const node = (id: string, kind = 'call', parent = '') => create(GraphNodeSchema, { id, kind, parent, name: id })
const edge = (from: string, to: string) => create(GraphEdgeSchema, { from, to, kind: 'next' })

const nodes = [
  node('start', 'start'),
  node('each', 'for'),
  node('price', 'call', 'each'),
  node('inner', 'try', 'each'),
  node('charge', 'call', 'inner'),
  node('refund', 'call', 'inner'),
  node('left', 'set'),
  node('right', 'set'),
  node('end', 'end'),
]
const edges = [
  edge('start', 'each'),
  edge('price', 'inner'),
  edge('charge', 'refund'),
  edge('each', 'left'),
  edge('each', 'right'),
  edge('left', 'end'),
  edge('right', 'end'),
]
const drawn = (toggled: string[] = []) => shape(nodes, edges, new Set(toggled), new Map(), new Set())

/** laidOut returns the boxes of a graph by the real layout, from the corner of the whole. */
async function laidOut(graph: Shape): Promise<Map<string, Box>> {
  const boxes = boxesOf(await new ELK().layout(elkGraph(graph)))
  const absolute = new Map<string, Box>()
  for (const { node: of, parent } of graph.nodes) {
    const box = boxes.get(of.id)
    const around = absolute.get(parent) ?? { x: 0, y: 0 }
    if (box !== undefined) absolute.set(of.id, { ...box, x: box.x + around.x, y: box.y + around.y })
  }
  return absolute
}

const of = (boxes: Map<string, Box>, id: string): Box => {
  const box = boxes.get(id)
  if (box === undefined) throw new Error(`no box of ${id}`)
  return box
}
const contains = (outer: Box, inner: Box) =>
  inner.x >= outer.x &&
  inner.y >= outer.y &&
  inner.x + inner.width <= outer.x + outer.width &&
  inner.y + inner.height <= outer.y + outer.height
const apart = (a: Box, b: Box) =>
  a.x + a.width <= b.x || b.x + b.width <= a.x || a.y + a.height <= b.y || b.y + b.height <= a.y

describe('the layout of a graph', () => {
  it('has a box for each node', async () => {
    const boxes = await laidOut(drawn())
    expect([...boxes.keys()]).toEqual(nodes.map(({ id }) => id))
  })

  it('keeps what a container contains within it, below its head', async () => {
    const boxes = await laidOut(drawn())
    for (const { id, parent } of nodes) {
      if (parent === '') continue
      const outer = of(boxes, parent)
      expect(contains(outer, of(boxes, id)), `${id} in ${parent}`).toBe(true)
      expect(of(boxes, id).y - outer.y, id).toBeGreaterThanOrEqual(headHeight)
    }
  })

  it('keeps what is side by side apart', async () => {
    const boxes = await laidOut(drawn())
    for (const a of nodes)
      for (const b of nodes)
        if (a.id < b.id && a.parent === b.parent)
          expect(apart(of(boxes, a.id), of(boxes, b.id)), `${a.id}, ${b.id}`).toBe(true)
  })

  it('goes down along the edges', async () => {
    const boxes = await laidOut(drawn())
    for (const { from, to } of edges) expect(of(boxes, to).y, `${from} to ${to}`).toBeGreaterThan(of(boxes, from).y)
  })

  it('gives a folded container the size of a task, and ends a smaller one', async () => {
    const boxes = await laidOut(drawn(['each']))
    expect([...boxes.keys()]).toEqual(['start', 'each', 'left', 'right', 'end'])
    const [task, end] = [of(boxes, 'left'), of(boxes, 'end')]
    expect(of(boxes, 'each')).toMatchObject({ width: task.width, height: task.height })
    expect(end.width).toBeLessThan(task.width)
    expect(end.height).toBeLessThan(task.height)
  })
})
