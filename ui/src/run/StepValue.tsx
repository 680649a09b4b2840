import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { clients } from '../api'
import { Button, ErrorView } from '../kit'
import { JsonView } from '../payload'
import type { Run, Step } from '../gen/signalbox/v1/run_pb'
import { join } from './value'

const pageBytes = 1 << 20

interface Props {
  step: Step
  run: Run
  of: 'input' | 'output'
  none: string
}

/** The input or output of a step. A shortened one has its real size, and a button that reads the whole value. */
export function StepValue({ step, run, of, none }: Props) {
  const [asked, setAsked] = useState(false)
  const shortened = of === 'input' ? step.inputShortened : step.outputShortened
  const whole = useQuery({
    queryKey: ['step-value', run.project, run.id, of, String(step.number), String(step.sequence)],
    queryFn: ({ signal }) =>
      join((offset) =>
        clients.runs.getStepValue(
          { project: run.project, id: run.id, number: step.number, value: of, offset, limit: pageBytes },
          { signal },
        ),
      ),
    enabled: asked && shortened !== undefined,
    staleTime: Infinity,
    gcTime: 0, // it may be large
  })
  const label = `the ${of}`
  const json = of === 'input' ? step.input?.json : step.output?.json
  if (shortened === undefined) return <JsonView json={json} label={label} none={none} />
  return (
    <>
      <JsonView
        json={whole.data ?? json}
        label={label}
        none={none}
        open={whole.data !== undefined}
        whole={whole.data === undefined ? Number(shortened.size) : undefined}
        more={
          <Button refused={whole.isFetching ? 'The value is being read.' : undefined} onClick={() => setAsked(true)}>
            {whole.isFetching ? 'Reading…' : 'Show all'}
          </Button>
        }
      />
      {whole.isError ? (
        <ErrorView error={whole.error} what={`The whole ${of}`} onRetry={() => void whole.refetch()} />
      ) : null}
    </>
  )
}
