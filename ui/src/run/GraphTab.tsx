import { useQuery } from '@tanstack/react-query'
import { Suspense, useCallback, useMemo } from 'react'
import { clients, milliseconds } from '../api'
import { TaskGraph } from '../graph'
import { type Column, DataTable, Elapsed, ErrorView, plural, Skeleton, StateView, StatusBadge } from '../kit'
import type { Run, Step, StepSummary } from '../gen/signalbox/v1/run_pb'
import styles from './run.module.css'
import { ofTask } from './steps'
import { takenEdges, taskStates } from './taken'
import type { Node } from './tree'

interface Props {
  run: Run
  root: Node
  steps: Step[]
  summary: StepSummary | undefined
  selected: Step | undefined
  onSelect: (number: string) => void
}

/** The graph of the run's version, with the states of the steps. A task with many steps lists them, the failed first. */
export function GraphTab({ run, root, steps, summary, selected, onSelect }: Props) {
  const graph = useQuery({
    queryKey: ['version-graph', run.project, run.workflow, run.version],
    queryFn: ({ signal }) =>
      clients.workflows.getVersionGraph(
        { project: run.project, workflow: run.workflow, version: run.version },
        { signal },
      ),
    staleTime: Infinity,
  })
  const states = useMemo(() => taskStates(root, summary), [root, summary])
  const taken = useMemo(() => takenEdges(root, run.status === 'completed'), [root, run.status])
  const others = useMemo(() => ofTask(steps, selected?.pointer), [steps, selected])
  const select = useCallback(
    (pointer: string) => {
      const [step] = ofTask(steps, pointer)
      if (step !== undefined) onSelect(String(step.number))
    },
    [steps, onSelect],
  )
  if (graph.isError) {
    return run.legacyEngine === '' ? (
      <ErrorView
        error={graph.error}
        what={`The graph of ${run.workflow}@${run.version}`}
        onRetry={() => void graph.refetch()}
      />
    ) : (
      <StateView kind="empty" title="The document of an imported run is not stored here." />
    )
  }
  if (graph.data === undefined) return <Skeleton rows={6} height={40} />
  return (
    <>
      <Suspense fallback={<Skeleton rows={6} height={40} />}>
        <TaskGraph
          label={`Tasks of ${run.workflow}@${run.version}`}
          nodes={graph.data.nodes}
          edges={graph.data.edges}
          states={states}
          taken={taken}
          selected={selected?.pointer}
          onSelect={select}
        />
      </Suspense>
      {others.length > 1 && selected !== undefined ? (
        <div className={styles.ofTask}>
          <h3>
            {plural(others.length, 'step')} of {selected.task}
          </h3>
          <DataTable
            label={`Steps of ${selected.task}`}
            columns={columns}
            rows={others}
            rowKey={(step) => String(step.number)}
            active={String(selected.number)}
            onActive={onSelect}
          />
        </div>
      ) : null}
    </>
  )
}

const columns: Column<Step>[] = [
  { id: 'number', title: 'Step', width: 64, cell: (step) => String(step.number) },
  {
    id: 'status',
    title: 'Status',
    width: 140,
    cell: (step) => <StatusBadge of="step" status={step.status} detail={step.waitingKind} />,
  },
  { id: 'path', title: 'Path', width: 160, grow: true, cell: (step) => <code title={step.path}>{step.path}</code> },
  {
    id: 'duration',
    title: 'Duration',
    width: 80,
    align: 'end',
    cell: (step) => <Elapsed from={milliseconds(step.startTime)} to={milliseconds(step.endTime)} />,
  },
]
