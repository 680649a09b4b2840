import { useMutation, useQuery } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import { Play } from 'lucide-react'
import { useCallback, useEffect, useMemo, useRef, useState } from 'react'
import {
  callError,
  clients,
  fetchRun,
  isObject,
  type Json,
  JsonError,
  milliseconds,
  newRequestID,
  printJson,
  readJson,
  useConnection,
} from '../api'
import { useRefusal } from '../app'
import {
  type Alert,
  AlertSlot,
  Button,
  CallProblem,
  CloseButton,
  CodeEditor,
  command,
  CopyCommand,
  Dialog,
  ErrorView,
  formatBytes,
  Select,
  Skeleton,
  StateView,
  TextField,
  Time,
  toast,
  useDelayed,
  useLinkRefusal,
} from '../kit'
import { givenLabels, LabelEditor, type LabelRow, labelList, labelsRefusal, labelText } from '../labels'
import { fieldErrors, problemsOf } from './check'
import { SchemaForm } from './SchemaForm'
import { initial, withoutMarks, wrongNumbers } from './schema'
import styles from './start.module.css'

export interface StartDialogProps {
  project: string
  /** The workflow and version that the dialog begins with. */
  workflow?: string
  version?: string
  /** Whether the workflow cannot be changed, because the page is about it. */
  fixed?: boolean
  onClose: () => void
}

/** readSchema reads the schema of a version's input; undefined if it has none, or none that a form can be made of. */
function readSchema(text: string): Json | undefined {
  if (text === '') return undefined
  try {
    const schema = readJson(text)
    return isObject(schema) ? schema : undefined
  } catch {
    return undefined // too deep for a form: the server validates it nevertheless
  }
}

/** parsed reads JSON text; the problem is a text for a person. */
function parsed(text: string): { value: Json | undefined; problem: string | undefined } {
  if (text.trim() === '') return { value: undefined, problem: undefined }
  try {
    return { value: readJson(text), problem: undefined }
  } catch (error) {
    if (!(error instanceof JsonError)) throw error
    return { value: undefined, problem: error.message }
  }
}

/** The input as a person writes it. */
interface Draft {
  workflow: string
  /** The version whose schema the form has; empty before it was read. */
  version: string
  mode: 'form' | 'json'
  /** In the form. */
  value: Json | undefined
  /** In JSON. */
  text: string
  /** Whether a person has changed it: then it is kept when the version changes. */
  touched: boolean
  /** Counts the times that the value was replaced as a whole, which makes the fields anew. */
  filled: number
}

const noDraft: Draft = {
  workflow: '',
  version: '',
  mode: 'form',
  value: undefined,
  text: '',
  touched: false,
  filled: 0,
}

/** adopted returns the draft for a version: what was typed for another version of the workflow, or the defaults. */
function adopted(before: Draft, workflow: string, version: string, schema: Json | undefined): Draft {
  const next = { ...before, workflow, version, filled: before.filled + 1 }
  if (before.touched && before.workflow === workflow) {
    return schema === undefined && before.mode === 'form'
      ? { ...next, mode: 'json', text: printed(before.value) }
      : next
  }
  const value = schema === undefined ? undefined : initial(schema, schema, true)
  return {
    ...next,
    touched: false,
    value,
    text: schema === undefined ? '{}' : '',
    mode: schema === undefined ? 'json' : 'form',
  }
}

const printed = (value: Json | undefined) => (value === undefined ? '' : printJson(value, 2))

/** Starts a run: which workflow and version, with which input. */
export default function StartDialog({
  project,
  workflow: given = '',
  version: givenVersion = '',
  fixed = false,
  onClose,
}: StartDialogProps) {
  const navigate = useNavigate()
  const offline = useLinkRefusal()
  const role = useRefusal()
  const [name, setName] = useState(given)
  const [version, setVersion] = useState(givenVersion)
  // One request ID for the whole dialog: when an answer is lost, sending it again starts no second run.
  const [requestId] = useState(newRequestID)
  const [note, setNote] = useState<string | undefined>(undefined)
  // What was last submitted: what is wrong with it is shown until a person changes it.
  const [submitted, setSubmitted] = useState<string>()
  const [labelRows, setLabelRows] = useState<LabelRow[]>([])
  const [broken, setBroken] = useState<ReadonlySet<string>>(new Set())
  const onBroken = useCallback((pointer: string, is: boolean) => {
    setBroken((before) => new Set(is ? [...before, pointer] : [...before].filter((p) => p !== pointer)))
  }, [])

  const names = useQuery({
    queryKey: ['workflow-names', project],
    queryFn: async ({ signal }) =>
      (await clients.workflows.listWorkflows({ project, pageSize: 500 }, { signal })).workflows.map((w) => w.name),
    enabled: !fixed,
    staleTime: 30_000,
  })
  const known = fixed || (names.data?.includes(name) ?? false)
  const versions = useQuery({
    queryKey: ['version-names', project, name],
    queryFn: async ({ signal }) =>
      (await clients.workflows.listVersions({ project, workflow: name, pageSize: 200 }, { signal })).versions.map(
        (v) => v.version,
      ),
    enabled: known,
    staleTime: 30_000,
  })
  const definition = useQuery({
    queryKey: ['workflow-version', project, name, version],
    queryFn: ({ signal }) => clients.workflows.getWorkflow({ project, workflow: name, version }, { signal }),
    enabled: known,
    refetchInterval: 10_000,
    placeholderData: (before, query) => (query?.queryKey[2] === name ? before : undefined),
  })
  const workflow = known ? definition.data?.workflow : undefined
  const read = definition.data?.version
  const schemaText = read?.inputSchema?.json ?? ''
  const schema = useMemo(() => readSchema(schemaText), [schemaText])

  const [draft, setDraft] = useState<Draft>(noDraft)
  if (workflow !== undefined && read !== undefined && (draft.workflow !== name || draft.version !== read.version))
    setDraft(adopted(draft, name, read.version, schema))
  const json = draft.mode === 'json' ? parsed(draft.text) : { value: draft.value, problem: undefined }
  const wrong = wrongNumbers(json.value)
  const body = json.value === undefined ? '' : printJson(json.value)

  const labels = givenLabels(labelRows)
  const labelled = labelList(labels)
  const wrongLabels = labelsRefusal(labelRows)
  const content = JSON.stringify([body, labels])

  const start = useMutation({
    mutationFn: () =>
      clients.runs.startRun({
        project,
        workflow: name,
        version,
        requestId,
        labels,
        ...(body === '' ? {} : { input: { json: body } }),
      }),
    onSuccess: ({ run, created }) => {
      if (!created) toast('This request had started the run before; no second one was started.')
      onClose()
      if (run !== undefined) void navigate({ to: '/p/$project/runs/$id', params: { project, id: run.id } })
    },
  })
  const error = start.isError && submitted === content ? callError(start.error) : undefined
  // The server checks what is typed, as the start itself would.
  const checked = useDelayed(content, 600)
  const check = useQuery({
    queryKey: ['start-check', project, name, version, checked],
    queryFn: ({ signal }) =>
      clients.runs.startRun(
        { project, workflow: name, version, dryRun: true, labels, ...(body === '' ? {} : { input: { json: body } }) },
        { signal },
      ),
    enabled:
      (draft.touched || labelled.length > 0) &&
      checked === content &&
      wrongLabels === undefined &&
      workflow !== undefined &&
      workflow.latestVersion !== '' &&
      offline === undefined &&
      role('operator', project) === undefined &&
      json.problem === undefined &&
      wrong.length === 0 &&
      broken.size === 0,
    retry: false,
    gcTime: 0,
    staleTime: Infinity,
  })
  const found = checked === content && check.isError ? callError(check.error) : undefined
  const accepted = checked === content ? check.data?.run?.labels : undefined
  const computed = Object.fromEntries(
    labelList(accepted ?? {})
      .filter(({ key }) => !Object.hasOwn(labels, key))
      .map(({ key, value }) => [key, value]),
  )
  const reported = (error ?? found)?.fields ?? []
  const own = schema === undefined ? undefined : problemsOf(schema, json.value, schema)
  const { errors, hidden } = fieldErrors(schema ?? true, json.value, reported)
  // What is missing is marked once a person thought to be done, and nothing is marked while a person types.
  if (submitted !== content)
    for (const [pointer, message] of errors) if (message === 'Required' || checked !== content) errors.delete(pointer)
  for (const pointer of wrong) errors.set(pointer, 'not a number')
  const form = draft.mode === 'form' && schema !== undefined
  // The sentence of the server repeats what is at the fields.
  const atFields =
    form &&
    !hidden &&
    reported.length > 0 &&
    reported.every(
      ({ path }) => path === 'labels' || path.startsWith('labels/') || path === 'input' || path.startsWith('input/'),
    )

  const last = useMutation({
    mutationFn: async () => {
      const {
        runs: [newest],
      } = await clients.runs.listRuns({ project, workflow: name, pageSize: 1 })
      return newest === undefined ? undefined : fetchRun(project, newest.id)
    },
    onSuccess: (run) => {
      if (run?.input === undefined) {
        setNote(run === undefined ? `There is no earlier run of ${name}.` : 'The last run had no input.')
        return
      }
      const { value, removed } = withoutMarks(readJson(run.input.json))
      setDraft((before) => ({ ...before, value, text: printed(value), touched: true, filled: before.filled + 1 }))
      setNote(
        removed.length === 0
          ? undefined
          : `Sensitive values of the last input are empty here: ${removed.map((p) => (p === '' ? 'the whole input' : p)).join(', ')}.`,
      )
    },
  })

  const refused =
    offline ??
    role('operator', project) ??
    (workflow === undefined
      ? name === ''
        ? 'Choose a workflow'
        : 'The workflow has not been read'
      : workflow.state === 'paused'
        ? 'The workflow is paused'
        : workflow.latestVersion === ''
          ? 'Nothing is published'
          : definition.isPlaceholderData
            ? 'The version is being read'
            : json.problem !== undefined
              ? 'The input is not JSON'
              : broken.size > 0
                ? 'A field contains text that is not JSON'
                : wrong.length > 0
                  ? 'A number is not a number'
                  : wrongLabels)
  const submit = () => {
    setSubmitted(content)
    setTries(tries + 1)
    if (refused === undefined && (own?.size ?? 0) === 0 && !start.isPending) start.mutate()
  }
  const fields = useRef<HTMLDivElement>(null)
  const [tries, setTries] = useState(0)
  useEffect(() => {
    if (tries > 0) fields.current?.querySelector<HTMLElement>('[aria-invalid=true]')?.focus()
  }, [tries, start.failureCount])
  // The first field has the keyboard once it is there, unless a person is in another one.
  const begun = draft.version !== '' && form
  useEffect(() => {
    if (begun && document.activeElement?.matches('input, select, textarea') !== true)
      fields.current?.querySelector<HTMLElement>('input, select, textarea')?.focus()
  }, [begun])
  const rest = new Map<string, Json>([['workflow', name]])
  if (version !== '') rest.set('version', version)
  if (json.value !== undefined) rest.set('input', json.value)
  if (labelled.length > 0) rest.set('labels', new Map(labelled.map(({ key, value }) => [key, value])))
  rest.set('requestId', requestId)

  return (
    <Dialog
      open
      size="wide"
      onClose={onClose}
      title={fixed ? `Run ${name}` : 'Run a workflow'}
      onSubmit={submit}
      aside={
        workflow === undefined || json.problem !== undefined || wrong.length > 0 || wrongLabels !== undefined ? null : (
          <CopyCommand
            cli={command(['run', 'start', name], {
              project,
              version,
              input: body,
              label: labelled.map(labelText),
              'request-id': requestId,
            })}
            rest={{ method: 'POST', path: `/v1/projects/${encodeURIComponent(project)}/runs`, body: printJson(rest) }}
          />
        )
      }
      actions={
        <>
          <CloseButton />
          <Button
            type="submit"
            kind="primary"
            icon={<Play size={14} aria-hidden />}
            refused={refused}
            busy={start.isPending}
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
              onChange={(event) => {
                setName(event.target.value.trim())
                setVersion('')
              }}
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
          value={version}
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
          onChange={(event) => setVersion(event.target.value)}
        />
      </div>
      {error === undefined || atFields ? null : (
        <div className={styles.notes}>
          <CallProblem error={start.error} except={['input', 'labels']} />
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
                disabled={schema === undefined || json.problem !== undefined}
                onClick={() => {
                  if (draft.mode === 'json')
                    setDraft({ ...draft, mode: 'form', value: json.value, filled: draft.filled + 1 })
                }}
              >
                Form
              </button>
              <button
                type="button"
                aria-pressed={draft.mode === 'json'}
                onClick={() => {
                  if (draft.mode === 'form') setDraft({ ...draft, mode: 'json', text: printed(draft.value) })
                }}
              >
                JSON
              </button>
            </div>
            <Button busy={last.isPending} refused={offline} onClick={() => last.mutate()}>
              Last input
            </Button>
            {schema === undefined ? (
              <span className={styles.hint}>This version has no schema of its input.</span>
            ) : null}
            {checked === content && check.isSuccess ? (
              <span className={styles.hint} role="status">
                The server accepts this input
              </span>
            ) : null}
            <span className={styles.size}>
              {json.problem !== undefined
                ? 'Not JSON'
                : body === ''
                  ? 'No input'
                  : formatBytes(new TextEncoder().encode(body).length)}
            </span>
          </div>
          {found === undefined || atFields ? null : (
            <p className={styles.error} role="status">
              {found.message}
            </p>
          )}
          {note === undefined ? null : (
            <p className={styles.hint} role="status">
              {note}
            </p>
          )}
          {last.isError ? <CallProblem error={last.error} /> : null}
          {form ? (
            <div ref={fields}>
              <SchemaForm
                key={draft.filled}
                schema={schema}
                value={draft.value}
                onChange={(value) => setDraft((before) => ({ ...before, value, touched: true }))}
                errors={errors}
                disabled={start.isPending}
                onBroken={onBroken}
              />
            </div>
          ) : (
            <>
              <CodeEditor
                label="Input"
                value={draft.text}
                onChange={(text) => setDraft((before) => ({ ...before, text, touched: true }))}
                describedBy="start-json-problem"
              />
              <p id="start-json-problem" className={styles.error} role="status">
                {json.problem ??
                  (error !== undefined || found !== undefined
                    ? ''
                    : [...errors]
                        .map(([pointer, message]) => `${pointer === '' ? 'The input' : pointer}: ${message}`)
                        .join('; '))}
              </p>
            </>
          )}
          <div className={styles.labels}>
            <LabelEditor
              rows={labelRows}
              onChange={setLabelRows}
              fields={(error ?? found)?.fields ?? []}
              computed={computed}
              disabled={start.isPending}
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
  const alerts: Alert[] = []
  if (paused !== undefined)
    alerts.push({ id: 'paused', tone: 'amber', title: 'The workflow is paused: new runs are refused', detail: paused })
  if (unpublished)
    alerts.push({
      id: 'unpublished',
      tone: 'amber',
      title: 'Nothing is published: there is no version to run',
      detail: 'Publish the draft of the workflow first.',
    })
  if (connection !== undefined && connection.state !== 'connected' && connection.state !== 'degraded') {
    alerts.push({
      id: 'engine',
      tone: 'red',
      title: `${connection.title}: the run will be ${connection.queuesRuns ? 'queued' : 'refused'}`,
      since: (
        <>
          since <Time at={milliseconds(connection.since)} />
        </>
      ),
      detail: connection.queuesRuns
        ? 'It starts when Temporal is available again.'
        : 'Try again when Temporal is available again.',
    })
  }
  if (connection !== undefined && connection.mismatch !== '') {
    alerts.push({ id: 'mismatch', tone: 'red', title: `${connection.mismatch}: the run will be refused` })
  }
  if (workers.data !== undefined && workers.data.workers.length === 0 && workers.data.errors.length === 0) {
    alerts.push({ id: 'worker', tone: 'amber', title: `No worker serves ${project}: the run waits until one starts` })
  }
  return alerts.length === 0 ? null : (
    <div className={styles.notes}>
      <AlertSlot alerts={alerts} />
    </div>
  )
}
