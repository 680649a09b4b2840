import { useMemo } from 'react'
import { printJson } from '../api'
import { Panel } from '../kit'
import { JsonView } from '../payload'
import type { Run } from '../gen/signalbox/v1/run_pb'
import { runDocument } from './document'
import styles from './run.module.css'

/** The run as the API returns it: input, output, and all the rest. Values are shown beside it: their numbers keep every digit. */
export function JsonTab({ run }: { run: Run }) {
  const rest = useMemo(() => printJson(runDocument(run), 2), [run])
  return (
    <div className={styles.json}>
      <Panel title="Input">
        <JsonView json={run.input?.json} label="the input" none="The run has no input." />
      </Panel>
      <Panel title="Output">
        <JsonView
          json={run.output?.json}
          label="the output"
          none={run.endTime === undefined ? 'No output yet: the run has not ended.' : 'The run has no output.'}
        />
      </Panel>
      {run.legacy === undefined ? null : (
        <Panel title="As the earlier engine stored it">
          <JsonView json={run.legacy.json} label="the original row" />
        </Panel>
      )}
      <Panel title="Run">
        <JsonView json={rest} label="the run" height={600} />
      </Panel>
    </div>
  )
}
