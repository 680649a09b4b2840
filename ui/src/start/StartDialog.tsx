import { useQuery } from '@tanstack/react-query'
import { Play } from 'lucide-react'
import { useEffect, useRef } from 'react'
import { clients, milliseconds, useConnection } from '../api'
import {
  AlertSlot,
  Button,
  byteLength,
  CallProblem,
  CloseButton,
  CodeEditor,
  CopyCommand,
  Dialog,
  ErrorView,
  formatBytes,
  Select,
  Skeleton,
  StateView,
  TextField,
  Time,
} from '../kit'
import { LabelEditor } from '../labels'
import { startAlerts } from './request'
import { SchemaForm } from './SchemaForm'
import styles from './start.module.css'
import { useStart } from './useStart'

export interface StartDialogProps {
  project: string
  /** The workflow and version that the dialog begins with. */
  workflow?: string
  version?: string
  /** Whether the workflow cannot be changed, because the page is about it. */
  fixed?: boolean
  onClose: () => void
}

/** Starts a run: which workflow and version, with which input. */
export default function StartDialog({
  project,
  workflow: given = '',
  version: givenVersion = '',
  fixed = false,
  onClose,
}: StartDialogProps) {
  const start = useStart(project, { workflow: given, version: givenVersion, fixed }, onClose)
  const { name, names, known, versions, definition, workflow, draft, schema, form, problem, errors } = start
  const fields = useRef<HTMLDivElement>(null)
  useEffect(() => {
    if (start.attempt !== undefined) fields.current?.querySelector<HTMLElement>('[aria-invalid=true]')?.focus()
  }, [start.attempt])
  // The first field has the keyboard once it is there, unless a person is in another one.
  const begun = draft.version !== '' && form !== undefined
  useEffect(() => {
    if (begun && document.activeElement?.matches('input, select, textarea') !== true)
      fields.current?.querySelector<HTMLElement>('input, select, textarea')?.focus()
  }, [begun])

  return (
    <Dialog
      open
      size="wide"
      onClose={onClose}
      title={fixed ? `Run ${name}` : 'Run a workflow'}
      onSubmit={start.submit}
      aside={start.commands === undefined ? null : <CopyCommand {...start.commands} />}
      actions={
        <>
          <CloseButton />
          <Button
            type="submit"
            kind="primary"
            icon={<Play size={14} aria-hidden />}
            refused={start.refused}
            busy={start.busy}
          >
            Run
          </Button>
        </>
      }
    >
      <div className={styles.what}>
        {fixed ? null : (
          <>
            <TextField
              label="Workflow"
              required
              list="start-workflows"
              placeholder="namespace/name"
              value={name}
              autoFocus
              hint={workflow === undefined || workflow.summary === '' ? undefined : workflow.summary}
              error={
                name !== '' && names.data !== undefined && !names.data.some((n) => n.startsWith(name))
                  ? `There is no workflow ${name} in ${project}`
                  : undefined
              }
              onChange={(event) => start.choose(event.target.value.trim())}
            />
            <datalist id="start-workflows">
              {names.data?.map((n) => (
                <option key={n} value={n} />
              ))}
            </datalist>
          </>
        )}
        <Select
          label="Version"
          disabled={!known}
          value={start.version}
          options={[
            {
              value: '',
              label:
                workflow === undefined || workflow.latestVersion === ''
                  ? 'The latest'
                  : `The latest, ${workflow.latestVersion}`,
            },
            ...(versions.data ?? []).map((v) => ({ value: v, label: v })),
          ]}
          onChange={(event) => start.setVersion(event.target.value)}
        />
      </div>
      {start.failure === undefined ? null : (
        <div className={styles.notes}>
          <CallProblem error={start.failure} except={['input', 'labels']} />
        </div>
      )}
      <StartAlerts
        project={project}
        paused={workflow?.state === 'paused' ? workflow.pauseReason : undefined}
        unpublished={workflow?.latestVersion === ''}
      />
      {names.isError ? (
        <ErrorView error={names.error} what="Workflows" onRetry={() => void names.refetch()} />
      ) : names.data?.length === 0 ? (
        <StateView kind="empty" title={`There is no workflow in ${project} yet`}>
          Publish one on the page Workflows.
        </StateView>
      ) : !known ? null : definition.data === undefined ? (
        definition.isError ? (
          <ErrorView error={definition.error} what={name} onRetry={() => void definition.refetch()} />
        ) : (
          <Skeleton rows={6} height={28} />
        )
      ) : workflow?.latestVersion === '' ? null : (
        <>
          <div className={styles.bar}>
            <div className={styles.switch} role="group" aria-label="Write the input as">
              <button
                type="button"
                aria-pressed={draft.mode === 'form'}
                disabled={schema === undefined || problem !== undefined}
                onClick={() => start.show('form')}
              >
                Form
              </button>
              <button type="button" aria-pressed={draft.mode === 'json'} onClick={() => start.show('json')}>
                JSON
              </button>
            </div>
            <Button busy={start.last.isPending} refused={start.offline} onClick={() => start.last.mutate()}>
              Last input
            </Button>
            {schema === undefined ? (
              <span className={styles.hint}>This version has no schema of its input.</span>
            ) : null}
            {start.accepted ? (
              <span className={styles.hint} role="status">
                The server accepts this input
              </span>
            ) : null}
            <span className={styles.size}>
              {problem !== undefined
                ? 'Not JSON'
                : start.body === ''
                  ? 'No input'
                  : formatBytes(byteLength(start.body))}
            </span>
          </div>
          {start.warning === undefined ? null : (
            <p className={styles.error} role="status">
              {start.warning}
            </p>
          )}
          {start.note === undefined ? null : (
            <p className={styles.hint} role="status">
              {start.note}
            </p>
          )}
          {start.last.isError ? <CallProblem error={start.last.error} /> : null}
          {form !== undefined ? (
            <div ref={fields}>
              <SchemaForm
                key={draft.filled}
                schema={form}
                value={draft.value}
                onChange={(value) => start.change({ value })}
                errors={errors}
                disabled={start.busy}
                onBroken={start.onBroken}
              />
            </div>
          ) : (
            <>
              <CodeEditor
                label="Input"
                value={draft.text}
                onChange={(text) => start.change({ text })}
                describedBy="start-json-problem"
              />
              <p id="start-json-problem" className={styles.error} role="status">
                {problem ??
                  (start.judged
                    ? ''
                    : [...errors]
                        .map(([pointer, message]) => `${pointer === '' ? 'The input' : pointer}: ${message}`)
                        .join('; '))}
              </p>
            </>
          )}
          <div className={styles.labels}>
            <LabelEditor
              rows={start.labelRows}
              onChange={start.setLabelRows}
              fields={start.reported}
              computed={start.computed}
              disabled={start.busy}
            />
          </div>
        </>
      )}
    </Dialog>
  )
}

/** What would refuse or delay the run, before it is started. */
function StartAlerts({
  project,
  paused,
  unpublished,
}: {
  project: string
  paused: string | undefined
  unpublished: boolean
}) {
  const { data: connection } = useConnection()
  const workers = useQuery({
    queryKey: ['alive-workers', project],
    queryFn: ({ signal }) => clients.workers.listWorkers({ project, states: ['alive'], pageSize: 1 }, { signal }),
    refetchInterval: 5000,
    retry: false,
  })
  const alerts = startAlerts(project, {
    paused,
    unpublished,
    connection,
    workers: workers.data === undefined || workers.data.errors.length > 0 ? undefined : workers.data.workers.length,
  })
  return alerts.length === 0 ? null : (
    <div className={styles.notes}>
      <AlertSlot
        alerts={alerts.map((alert) =>
          alert.id === 'engine'
            ? {
                ...alert,
                since: (
                  <>
                    since <Time at={milliseconds(connection?.since)} />
                  </>
                ),
              }
            : alert,
        )}
      />
    </div>
  )
}
