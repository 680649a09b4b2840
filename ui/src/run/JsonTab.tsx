import { toJson } from '@bufbuild/protobuf'
import { useMemo } from 'react'
import { type Json, JsonNumber, printJson, readJson } from '../api'
import { Panel } from '../kit'
import { JsonView } from '../payload'
import { type Run, RunSchema } from '../gen/signalbox/v1/run_pb'
import styles from './run.module.css'

/** The run as the API returns it: input, output, and all the rest. Values are shown beside it: their numbers keep every digit. */
export function JsonTab({ run }: { run: Run }) {
  const rest = useMemo(() => printJson(asJson(run), 2), [run])
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

/** asJson returns the run as REST returns it, with payloads inline. */
function asJson(run: Run): Json {
  const document = readJson(JSON.stringify(toJson(RunSchema, run)))
  return inline(document)
}

/** A message of the type JsonValue has one member, `json`, with the text of the value. */
function inline(value: Json): Json {
  if (Array.isArray(value)) return value.map(inline)
  if (!(value instanceof Map)) return value
  const text = value.get('json')
  if (value.size === 1 && typeof text === 'string') {
    try {
      return readJson(text)
    } catch {
      return text
    }
  }
  return new Map(
    [...value].map(([name, item]) => [
      name,
      counts.has(name) && typeof item === 'string' ? new JsonNumber(item) : inline(item),
    ]),
  )
}

/** Numbers of 64 bits, which the JSON of protobuf writes as texts and REST writes as numbers. */
const counts = new Set([
  'stepsTotal',
  'stepsDone',
  'sequence',
  'queuePosition',
  'number',
  'step',
  'used',
  'limit',
  'from',
  'to',
  'steps',
  'count',
  'completed',
  'failed',
  'skipped',
  'canceled',
])
