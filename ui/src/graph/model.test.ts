import { create } from '@bufbuild/protobuf'
import { describe, expect, it } from 'vitest'
import { GraphEdgeSchema, GraphNodeSchema } from '../gen/signalbox/v1/workflow_pb'
import { shape, type TaskState } from './model'

const node = (id: string, kind = 'call', parent = '') => create(GraphNodeSchema, { id, kind, parent, name: id })
const edge = (from: string, to: string, kind = 'next', label = '') => create(GraphEdgeSchema, { from, to, kind, label })
const none = new Map<string, TaskState>()
const entered = (id: string, steps: number) => new Map([[id, { status: 'completed', counts: '', inside: '', steps }]])

const loop = {
  nodes: [node('start', 'start'), node('each', 'for'), node('price', 'call', 'each'), node('end', 'end')],
  edges: [edge('start', 'each'), edge('each', 'price', 'enter'), edge('price', 'each'), edge('each', 'end')],
}

const draw = (
  graph: { nodes: ReturnType<typeof node>[]; edges: ReturnType<typeof edge>[] },
  toggled: string[] = [],
  states = none,
  taken: string[] = [],
) => {
  const { nodes, edges } = shape(graph.nodes, graph.edges, new Set(toggled), states, new Set(taken))
  return {
    nodes: nodes.map(
      (n) =>
        `${n.parent === '' ? '' : `${n.parent}/`}${n.node.id}${n.container ? '[]' : ''}${n.folded > 0 ? `+${n.folded}` : ''}`,
    ),
    edges: edges.map((e) => `${e.from}>${e.to}${e.taken ? '!' : ''}`),
  }
}

describe('the graph of a version', () => {
  it('draws what a task contains within it; the frame stands for the edges in and out of the list', () => {
    expect(draw(loop)).toEqual({ nodes: ['start', 'each[]', 'each/price', 'end'], edges: ['start>each', 'each>end'] })
  })

  it('folds a loop that was entered often, until a person opens it', () => {
    expect(draw(loop, [], entered('price', 60)).nodes).toEqual(['start', 'each+1', 'end'])
    expect(draw(loop, ['each'], entered('price', 60)).nodes).toContain('each/price')
    expect(draw(loop, [], entered('price', 5)).nodes).toContain('each/price')
    expect(draw(loop, ['each']).nodes).toEqual(['start', 'each+1', 'end'])
  })

  it('folds more than twelve branches', () => {
    const branches = (n: number) => ({
      nodes: [node('f', 'fork'), ...Array.from({ length: n }, (_, i) => node(`b${i}`, 'set', 'f'))],
      edges: [],
    })
    expect(draw(branches(12)).nodes).toHaveLength(13)
    expect(draw(branches(200)).nodes).toEqual(['f+200'])
  })

  it('leads edges of folded nodes to what they are folded into, once', () => {
    const nodes = [node('t', 'try'), node('a', 'call', 't'), node('b', 'raise', 't'), node('end', 'end')]
    const edges = [edge('a', 'end', 'end'), edge('b', 'end', 'end'), edge('a', 'b')]
    expect(draw({ nodes, edges }, ['t'])).toEqual({ nodes: ['t+2', 'end'], edges: ['t>end'] })
  })

  it('marks the edges that the run took', () => {
    expect(draw(loop, [], none, ['start each']).edges).toEqual(['start>each!', 'each>end'])
  })

  it('keeps a jump back', () => {
    const nodes = [node('a'), node('b', 'switch')]
    expect(draw({ nodes, edges: [edge('a', 'b'), edge('b', 'a', 'case', 'pending')] }).edges).toEqual(['a>b', 'b>a'])
  })
})
