import { create } from '@bufbuild/protobuf'
import { describe, expect, it } from 'vitest'
import { GraphEdgeSchema, GraphNodeSchema } from '../gen/signalbox/v1/workflow_pb'
import {
  canSelect,
  edgeLabel,
  foldedText,
  isTerminal,
  nodeTitle,
  outline,
  shape,
  structureOf,
  type TaskState,
} from './model'

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

describe('containers of the graph', () => {
  const many = (n: number) => ({
    nodes: [
      node('d', 'do'),
      ...Array.from({ length: 6 }, (_, i) => node(`g${i}`, 'do', 'd')),
      ...Array.from({ length: n }, (_, i) => node(`t${i}`, 'set', `g${i % 6}`)),
    ],
    edges: [],
  })

  it('are folded where they contain more than sixty tasks, at any depth', () => {
    expect(draw(many(54)).nodes).toHaveLength(61)
    expect(draw(many(55)).nodes).toEqual(['d+61'])
  })

  it('are not folded because a branch of a fork was entered often', () => {
    const graph = { nodes: [node('f', 'fork'), node('b', 'call', 'f')], edges: [] }
    expect(draw(graph, [], entered('b', 60)).nodes).toContain('f/b')
  })

  it('have the edges of the tasks that are open in them', () => {
    const nodes = [node('t', 'try'), node('a', 'call', 't'), node('b', 'call', 't'), node('c')]
    const edges = [edge('a', 'b'), edge('b', 'c')]
    expect(draw({ nodes, edges }).edges).toEqual(['a>b', 'b>c'])
    expect(draw({ nodes, edges }, ['t'], none, ['b c']).edges).toEqual(['t>c!'])
  })
})

describe('the layout of a graph', () => {
  const of = (toggled: string[], taken: string[] = []) =>
    structureOf(shape(loop.nodes, loop.edges, new Set(toggled), none, new Set(taken)))

  it('stays while only states change', () => {
    expect(of([], ['start each'])).toBe(of([]))
  })

  it('is another one where a container is folded', () => {
    expect(of(['each'])).not.toBe(of([]))
  })
})

describe('a node', () => {
  const state: TaskState = { status: 'failed', counts: '', inside: '60 iterations: 3 failed', steps: 60 }

  it('is named by what it does where it has no name', () => {
    expect(nodeTitle(node('a'))).toBe('a')
    expect(nodeTitle(create(GraphNodeSchema, { id: '/do/0', kind: 'end' }))).toBe('end')
  })

  it('can be selected where it is a task, and in a run where it was reached', () => {
    expect(canSelect(node('a'), undefined, false)).toBe(true)
    expect(canSelect(node('a'), undefined, true)).toBe(false)
    expect(canSelect(node('a'), state, true)).toBe(true)
    expect(canSelect(node('a', 'catch'), state, true)).toBe(false)
    expect(canSelect(node('a', 'start'), undefined, false)).toBe(false)
    expect(['start', 'end', 'call'].map((kind) => isTerminal(node('a', kind)))).toEqual([true, true, false])
  })

  it('says what is folded into it', () => {
    expect(foldedText(0, state)).toBe('')
    expect(foldedText(1, undefined)).toBe('1 task')
    expect(foldedText(3, { ...state, inside: '' })).toBe('3 tasks')
    expect(foldedText(3, state)).toBe('60 iterations: 3 failed')
  })

  it('has edges with labels that are cut where they are long', () => {
    const label = (text: string) => edgeLabel({ id: '', from: '', to: '', kind: '', label: text, taken: false })
    expect(label('x'.repeat(40))).toBe('x'.repeat(40))
    expect(label('x'.repeat(41))).toBe(`${'x'.repeat(40)}…`)
  })
})

describe('the graph as a list', () => {
  it('has the depth of each node, and what follows it', () => {
    const nodes = [node('ask', 'switch'), node('each', 'for'), node('price', 'call', 'each'), node('end', 'end')]
    const edges = [edge('ask', 'each', 'case', 'many'), edge('ask', 'end'), edge('each', 'end')]
    const rows = outline(shape(nodes, edges, new Set(), none, new Set()))
    expect(Object.fromEntries(rows)).toEqual({
      ask: { depth: 0, next: 'then each (many), end' },
      each: { depth: 0, next: 'then end' },
      price: { depth: 1, next: '' },
      end: { depth: 0, next: '' },
    })
  })
})
