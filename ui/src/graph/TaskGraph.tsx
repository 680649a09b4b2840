import {
  Background,
  Controls,
  type Edge,
  Handle,
  MarkerType,
  type Node,
  type NodeProps,
  Position,
  ReactFlow,
} from '@xyflow/react'
import '@xyflow/react/dist/base.css'
import { ChevronDown, ChevronRight } from 'lucide-react'
import { useEffect, useMemo, useState } from 'react'
import { Button, flipped, Skeleton, StateView, StatusBadge } from '../kit'
import type { GraphEdge, GraphNode } from '../gen/signalbox/v1/workflow_pb'
import type { Box } from './elk'
import { layout } from './layout'
import {
  canSelect,
  edgeLabel,
  foldedText,
  isTerminal,
  nodeTitle,
  outline,
  shape,
  type Shape,
  type ShapeNode,
  structureOf,
  type TaskState,
} from './model'
import styles from './graph.module.css'

export interface TaskGraphProps {
  label: string
  nodes: GraphNode[]
  edges: GraphEdge[]
  /** The states of the tasks of a run, by their pointers; absent for a workflow alone. */
  states?: ReadonlyMap<string, TaskState>
  /** Pairs of IDs that the run passed one after the other: "FROM TO". */
  taken?: ReadonlySet<string>
  selected?: string | undefined
  onSelect?: (id: string) => void
}

interface Data extends Record<string, unknown> {
  shape: ShapeNode
  state: TaskState | undefined
  /** Whether this is the graph of a run: tasks without a state were not reached. */
  ofRun: boolean
  selected: boolean
  onFold: (id: string) => void
  onSelect: ((id: string) => void) | undefined
}

const none: ReadonlyMap<string, TaskState> = new Map()
const noEdges: ReadonlySet<string> = new Set()

/** The tasks of a version as a graph, coloured by the states of a run's steps; also as a list, which the keyboard and a screen reader pass quickly. */
export default function TaskGraph({
  label,
  nodes,
  edges,
  states = none,
  taken = noEdges,
  selected,
  onSelect,
}: TaskGraphProps) {
  const [toggled, setToggled] = useState<ReadonlySet<string>>(new Set())
  const [list, setList] = useState(false)
  const drawn = useMemo(() => shape(nodes, edges, toggled, states, taken), [nodes, edges, toggled, states, taken])
  const fold = (id: string) => {
    setToggled((before) => flipped(before, id))
  }
  const ofRun = states !== none
  const shown = { label, drawn, states, ofRun, selected, onSelect, onFold: fold }
  return (
    <div className={styles.graph}>
      <div className={styles.tools}>
        <Button kind="quiet" aria-pressed={list} onClick={() => setList(!list)}>
          {list ? 'Show as graph' : 'Show as list'}
        </Button>
      </div>
      {list ? <List {...shown} /> : <Canvas {...shown} />}
    </div>
  )
}

interface Shown {
  label: string
  drawn: Shape
  states: ReadonlyMap<string, TaskState>
  ofRun: boolean
  selected: string | undefined
  onSelect: ((id: string) => void) | undefined
  onFold: (id: string) => void
}

const nodeTypes = { task: TaskNode }

function Canvas({ label, drawn, states, ofRun, selected, onSelect, onFold }: Shown) {
  const [placed, setPlaced] = useState<{ drawn: Shape; boxes: Map<string, Box> } | undefined>(undefined)
  const [problem, setProblem] = useState('')
  // The same nodes and edges have the same layout, however their states change.
  const structure = structureOf(drawn)
  useEffect(() => {
    let current = true
    layout(drawn).then(
      (boxes) => {
        if (current) setPlaced({ drawn, boxes })
      },
      (error: unknown) => {
        if (current) setProblem(error instanceof Error ? error.message : String(error))
      },
    )
    return () => {
      current = false
    }
    // eslint-disable-next-line react-hooks/exhaustive-deps -- by structure, see above
  }, [structure])
  const flow = useMemo(() => {
    if (placed === undefined) return undefined
    const nodes: Node<Data>[] = drawn.nodes.flatMap((shown) => {
      const box = placed.boxes.get(shown.node.id)
      if (box === undefined) return []
      return [
        {
          id: shown.node.id,
          type: 'task',
          position: { x: box.x, y: box.y },
          width: box.width,
          height: box.height,
          ...(shown.parent === '' ? {} : { parentId: shown.parent }),
          draggable: false,
          selectable: false,
          focusable: false,
          zIndex: shown.container ? 0 : 1,
          data: {
            shape: shown,
            state: states.get(shown.node.id),
            ofRun,
            selected: shown.node.id === selected,
            onFold,
            onSelect,
          },
        },
      ]
    })
    const edges: Edge[] = drawn.edges.map((edge) => ({
      id: edge.id,
      source: edge.from,
      target: edge.to,
      type: 'smoothstep',
      label: edgeLabel(edge),
      zIndex: 2,
      focusable: false,
      selectable: false,
      className: edge.taken ? (styles.taken ?? '') : (styles.edge ?? ''),
      markerEnd: { type: MarkerType.ArrowClosed, color: edge.taken ? 'var(--blue)' : 'var(--control)' },
    }))
    return { nodes, edges }
  }, [placed, drawn, states, ofRun, selected, onFold, onSelect])
  if (problem !== '')
    return (
      <StateView kind="error" title="The graph cannot be laid out.">
        {problem}
      </StateView>
    )
  if (flow === undefined)
    return (
      <div className={styles.canvas}>
        <Skeleton rows={6} height={40} />
      </div>
    )
  return (
    <div className={styles.canvas} role="group" aria-label={label}>
      <ReactFlow
        nodes={flow.nodes}
        edges={flow.edges}
        nodeTypes={nodeTypes}
        fitView
        fitViewOptions={{ maxZoom: 1, minZoom: 0.5, padding: 0.08 }}
        minZoom={0.05}
        maxZoom={1.5}
        nodesDraggable={false}
        nodesConnectable={false}
        nodesFocusable={false}
        edgesFocusable={false}
        elementsSelectable={false}
        zoomOnDoubleClick={false}
        onlyRenderVisibleElements={flow.nodes.length > 150}
      >
        <Background color="var(--border)" />
        <Controls showInteractive={false} />
      </ReactFlow>
    </div>
  )
}

const handle = { opacity: 0, pointerEvents: 'none' as const }

function TaskNode({ data }: NodeProps<Node<Data>>) {
  const { shape: shown, state, ofRun, selected, onFold, onSelect } = data
  const { node, container, foldable, folded } = shown
  const terminal = isTerminal(node)
  const classes = [
    styles.node,
    container ? styles.container : '',
    terminal ? styles.terminal : '',
    selected ? styles.selected : '',
    ofRun && state === undefined && !terminal ? styles.unreached : '',
  ]
  return (
    <div className={classes.join(' ')} data-node={node.id}>
      <Handle type="target" position={Position.Top} style={handle} isConnectable={false} />
      <Handle type="source" position={Position.Bottom} style={handle} isConnectable={false} />
      <div className={styles.head}>
        {foldable ? (
          <button
            type="button"
            className={`nodrag nopan ${styles.fold}`}
            aria-label={folded > 0 ? `Open ${nodeTitle(node)}` : `Fold ${nodeTitle(node)}`}
            aria-expanded={folded === 0}
            onClick={() => onFold(node.id)}
          >
            {folded > 0 ? <ChevronRight size={14} aria-hidden /> : <ChevronDown size={14} aria-hidden />}
          </button>
        ) : null}
        <Body node={node} state={state} ofRun={ofRun} folded={folded} onSelect={onSelect} />
      </div>
    </div>
  )
}

/** The name, what it does, and its state: a button where it can be selected. */
function Body({
  node,
  state,
  ofRun,
  folded,
  onSelect,
}: {
  node: GraphNode
  state: TaskState | undefined
  ofRun: boolean
  folded: number
  onSelect: ((id: string) => void) | undefined
}) {
  const content = (
    <>
      <span className={styles.name}>
        <strong>{nodeTitle(node)}</strong>
        {node.name === '' ? null : <span className={styles.kind}>{node.kind}</span>}
      </span>
      {isTerminal(node) ? (
        node.label === '' ? null : (
          <span className={styles.text}>{node.label}</span>
        )
      ) : (
        <span className={styles.text} title={node.label}>
          {state !== undefined ? (
            <StatusBadge of="step" status={state.status} detail={state.counts} />
          ) : ofRun && node.kind !== 'catch' ? (
            <StatusBadge of="step" status="not_reached" />
          ) : (
            node.label
          )}
          {folded > 0 ? ` ${foldedText(folded, state)}` : null}
        </span>
      )}
    </>
  )
  if (onSelect === undefined || !canSelect(node, state, ofRun)) return <span className={styles.body}>{content}</span>
  return (
    <button type="button" className={`nodrag nopan ${styles.body}`} onClick={() => onSelect(node.id)}>
      {content}
    </button>
  )
}

/** The same as a list. */
function List({ label, drawn, states, ofRun, selected, onSelect, onFold }: Shown) {
  const rows = useMemo(() => outline(drawn), [drawn])
  return (
    <ul className={styles.list} aria-label={label}>
      {drawn.nodes.map(({ node, foldable, folded }) => {
        const state = states.get(node.id)
        return (
          <li
            key={node.id}
            className={node.id === selected ? styles.listSelected : undefined}
            style={{ paddingLeft: 8 + (rows.get(node.id)?.depth ?? 0) * 20 }}
          >
            {foldable ? (
              <Button
                kind="quiet"
                aria-label={folded > 0 ? `Open ${nodeTitle(node)}` : `Fold ${nodeTitle(node)}`}
                icon={folded > 0 ? <ChevronRight size={14} aria-hidden /> : <ChevronDown size={14} aria-hidden />}
                onClick={() => onFold(node.id)}
              />
            ) : null}
            <Body node={node} state={state} ofRun={ofRun} folded={folded} onSelect={onSelect} />
            <span className={styles.next}>{rows.get(node.id)?.next}</span>
          </li>
        )
      })}
    </ul>
  )
}
