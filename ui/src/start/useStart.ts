import { useMutation, useQuery } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import { useCallback, useMemo, useState } from 'react'
import { callError, clients, fetchRun, newRequestID, printJson } from '../api'
import { useRefusal } from '../app'
import { toast, useDelayed, useLinkRefusal } from '../kit'
import { givenLabels, type LabelRow, labelList, labelsRefusal } from '../labels'
import { problemsOf } from './check'
import { adopted, type Draft, filledWith, inMode, lastInput, noDraft, readSchema, valueOf } from './draft'
import { canCheck, shownErrors, startCommands, startRefusal } from './request'
import { wrongNumbers } from './schema'

/** useWorkflows reads what can be started: the workflows of a project, the versions of the chosen one, and the chosen version. */
function useWorkflows(project: string, name: string, version: string, fixed: boolean) {
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
  return { names, known, versions, definition }
}

/** useDraft returns the input of the chosen version as it is written, and the labels. */
function useDraft(name: string, read: { version: string; inputSchema?: { json: string } | undefined } | undefined) {
  const text = read?.inputSchema?.json ?? ''
  const schema = useMemo(() => readSchema(text), [text])
  const [draft, setDraft] = useState<Draft>(noDraft)
  if (read !== undefined && (draft.workflow !== name || draft.version !== read.version))
    setDraft(adopted(draft, name, read.version, schema))
  const [broken, setBroken] = useState<ReadonlySet<string>>(new Set())
  const onBroken = useCallback((pointer: string, is: boolean) => {
    setBroken((before) => new Set(is ? [...before, pointer] : [...before].filter((p) => p !== pointer)))
  }, [])
  const change = (part: Partial<Draft>) => setDraft((before) => ({ ...before, ...part, touched: true }))
  const show = (mode: Draft['mode']) => setDraft(inMode(draft, mode))
  return { schema, draft, setDraft, change, show, broken, onBroken }
}

/** useStart is the state of the dialog that starts a run: what is chosen and typed, what is wrong with it, and the calls. */
export function useStart(
  project: string,
  given: { workflow: string; version: string; fixed: boolean },
  onClose: () => void,
) {
  const navigate = useNavigate()
  const offline = useLinkRefusal()
  const role = useRefusal()
  const [name, setName] = useState(given.workflow)
  const [version, setVersion] = useState(given.version)
  // One request ID for the whole dialog: when an answer is lost, sending it again starts no second run.
  const [requestId] = useState(newRequestID)
  const [note, setNote] = useState<string | undefined>(undefined)
  // What was last submitted: what is wrong with it is shown until a person changes it.
  const [submitted, setSubmitted] = useState<string>()
  const [tries, setTries] = useState(0)
  const [labelRows, setLabelRows] = useState<LabelRow[]>([])

  const { names, known, versions, definition } = useWorkflows(project, name, version, given.fixed)
  const workflow = known ? definition.data?.workflow : undefined
  const input = useDraft(name, workflow === undefined ? undefined : definition.data?.version)
  const { draft, schema } = input

  const { value, problem } = valueOf(draft)
  const wrong = wrongNumbers(value)
  const body = value === undefined ? '' : printJson(value)
  const labels = givenLabels(labelRows)
  const labelled = labelList(labels)
  const content = JSON.stringify([body, labels])
  const readiness = {
    caller: offline ?? role('operator', project),
    name,
    workflow,
    reading: definition.isPlaceholderData,
    problem,
    broken: input.broken.size,
    wrong: wrong.length,
    labels: labelsRefusal(labelRows),
  }
  const request = { project, workflow: name, version, labels, ...(body === '' ? {} : { input: { json: body } }) }

  const start = useMutation({
    mutationFn: () => clients.runs.startRun({ ...request, requestId }),
    onSuccess: ({ run, created }) => {
      if (!created) toast('This request had started the run before; no second one was started.')
      onClose()
      if (run !== undefined) void navigate({ to: '/p/$project/runs/$id', params: { project, id: run.id } })
    },
  })
  // The server checks what is typed, as the start itself would.
  const checked = useDelayed(content, 600)
  const check = useQuery({
    queryKey: ['start-check', project, name, version, checked],
    queryFn: ({ signal }) => clients.runs.startRun({ ...request, dryRun: true }, { signal }),
    enabled: (draft.touched || labelled.length > 0) && checked === content && canCheck(readiness),
    retry: false,
    gcTime: 0,
    staleTime: Infinity,
  })
  const last = useMutation({
    mutationFn: async () => {
      const {
        runs: [newest],
      } = await clients.runs.listRuns({ project, filter: { workflow: name }, pageSize: 1 })
      return newest === undefined ? undefined : fetchRun(project, newest.id)
    },
    onSuccess: (run) => {
      const found = lastInput(name, run)
      const { input: filling } = found
      if (filling !== undefined) input.setDraft((before) => filledWith(before, filling.value))
      setNote(found.note)
    },
  })

  const error = start.isError && submitted === content ? callError(start.error) : undefined
  const found = checked === content && check.isError ? callError(check.error) : undefined
  const accepted = checked === content ? check.data?.run?.labels : undefined
  const reported = (error ?? found)?.fields ?? []
  const form = draft.mode === 'form' ? schema : undefined
  const { errors, complete } = shownErrors({
    schema,
    value,
    reported,
    wrong,
    submitted: submitted === content,
    checked: checked === content,
  })
  const refused = startRefusal(readiness)
  const missing = schema === undefined ? 0 : problemsOf(schema, value, schema).size
  return {
    name,
    version,
    choose: (workflow: string) => {
      setName(workflow)
      setVersion('')
    },
    setVersion,
    names,
    known,
    versions,
    definition,
    workflow,
    ...input,
    /** The schema of the form; undefined while the input is written as JSON. */
    form,
    value,
    problem,
    body,
    note,
    labelRows,
    setLabelRows,
    /** The labels that the workflow gives the run by itself. */
    computed: Object.fromEntries(
      labelList(accepted ?? {})
        .filter(({ key }) => !Object.hasOwn(labels, key))
        .map(({ key, value }) => [key, value]),
    ),
    /** Why the start failed, and what the server found before; undefined if all of it is at the fields. */
    failure: error === undefined || (form !== undefined && complete) ? undefined : start.error,
    warning: found === undefined || (form !== undefined && complete) ? undefined : found.message,
    accepted: checked === content && check.isSuccess,
    reported,
    /** Whether the server reported something of what is typed. */
    judged: error !== undefined || found !== undefined,
    errors,
    refused,
    offline,
    /** How to start the run otherwise; undefined if what is typed is incomplete. */
    commands:
      workflow === undefined || problem !== undefined || wrong.length > 0 || readiness.labels !== undefined
        ? undefined
        : startCommands({ project, workflow: name, version, input: value, labels: labelled, requestId }),
    busy: start.isPending,
    /** Changes whenever the form should show what is wrong. */
    attempt: tries === 0 ? undefined : `${tries} ${start.failureCount}`,
    submit: () => {
      setSubmitted(content)
      setTries(tries + 1)
      if (refused === undefined && missing === 0 && !start.isPending) start.mutate()
    },
    last,
  }
}
