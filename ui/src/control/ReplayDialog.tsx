import { useMutation, useQuery } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import { Undo2 } from 'lucide-react'
import { useMemo, useState } from 'react'
import { brief, callError, clients, type Json, newRequestID, type Operation, printPatch, useRun } from '../api'
import {
  Button,
  CallProblem,
  CloseButton,
  CodeEditor,
  CopyCommand,
  Dialog,
  Id,
  plural,
  Select,
  Skeleton,
  TextArea,
  toast,
  useDelayed,
  useLinkRefusal,
} from '../kit'
import { givenLabels, LabelEditor, type LabelRow, labelList, labelsRefusal } from '../labels'
import { JsonView } from '../payload'
import type { Run } from '../gen/signalbox/v1/run_pb'
import styles from './control.module.css'
import { refusalOf } from './controls'
import { changeSealed, type Draft, newDraft, readEdit, undoEdit } from './edit'
import { canCheck, canReplay, isUnchosen, latestLabel, replayCommands, type VersionChoice, versionOf } from './replay'

/**
 * Starts a new run with the input of an earlier one. Unedited, neither input nor patch is sent: the server takes the original, sealed values
 * included. An edit is sent as a patch against the input as it is shown. The request ID is made once, so sending again makes one run.
 */
export default function ReplayDialog({ run: shown, onClose }: { run: Run; onClose: () => void }) {
  const { project, id } = shown
  const offline = useLinkRefusal()
  const navigate = useNavigate()
  const whole = useRun(project, id)
  const run = whole.data ?? shown
  const [requestID] = useState(newRequestID)
  const [choice, setChoice] = useState<VersionChoice>({ kind: run.trigger === 'import' ? 'latest' : 'same', other: '' })
  const [reason, setReason] = useState('')
  const [draft, setDraft] = useState<Draft | undefined>(undefined)
  const [labelRows, setLabelRows] = useState<LabelRow[]>([])
  const [broken, setBroken] = useState('')
  const [asked, setAsked] = useState(false)
  const versions = useQuery({
    queryKey: ['versions', project, run.workflow],
    queryFn: ({ signal }) =>
      clients.workflows.listVersions({ project, workflow: run.workflow, pageSize: 100 }, { signal }),
    staleTime: 30_000,
  })
  const edit = useMemo(() => (draft === undefined ? undefined : readEdit(draft)), [draft])
  const operations = edit?.operations ?? []
  const version = versionOf(choice)
  const patch = operations.length === 0 ? undefined : printPatch(operations)
  // The server checks the replay as it stands: whether the version exists, the patch applies, and the input fits the version's schema.
  const labels = givenLabels(labelRows)
  const wrongLabels = labelsRefusal(labelRows, run.labels)
  const content = JSON.stringify([version, patch, labels])
  const request = useDelayed(content, 600)
  const form = { reason, version: choice, labels: wrongLabels, edit }
  const checkable = run.id !== '' && canCheck(form)
  const refused = offline ?? refusalOf(run, 'replay')
  const check = useQuery({
    queryKey: ['replay-check', project, id, request],
    queryFn: ({ signal }) =>
      clients.runs.replayRun(
        { project, id, version, dryRun: true, labels, ...(patch === undefined ? {} : { patch: { json: patch } }) },
        { signal },
      ),
    enabled: checkable && refused === undefined && request === content,
    retry: false,
    gcTime: 0,
    staleTime: Infinity,
  })
  const call = useMutation({
    mutationFn: () =>
      clients.runs.replayRun({
        project,
        id,
        version,
        reason: reason.trim(),
        requestId: requestID,
        labels,
        ...(patch === undefined ? {} : { patch: { json: patch } }),
      }),
    onSuccess: (answer) => {
      if (answer.run === undefined) return
      if (!answer.created) toast('An earlier try with this dialog had started this run already.')
      onClose()
      void navigate({ to: `/p/${encodeURIComponent(project)}/runs/${encodeURIComponent(answer.run.id)}` })
    },
  })
  const submit = () => {
    setAsked(true)
    if (canReplay(form) && refused === undefined && !call.isPending) call.mutate()
  }
  const begin = () => {
    try {
      setDraft(newDraft(run.input?.json ?? 'null'))
    } catch (error) {
      setBroken(error instanceof Error ? error.message : 'the input is not JSON')
    }
  }
  const fields = call.isError ? callError(call.error).fields : []
  const commands = replayCommands({
    project,
    id,
    reason: reason.trim(),
    version,
    patch,
    labels: labelList(labels),
    requestId: requestID,
  })
  const latest = versions.data?.versions[0]?.version
  const radio = (kind: VersionChoice['kind']) => ({
    type: 'radio',
    name: 'version',
    checked: choice.kind === kind,
    onChange: () => setChoice({ ...choice, kind }),
  })
  return (
    <Dialog
      title={
        <>
          Replay <Id id={id} />
        </>
      }
      description={
        draft === undefined
          ? 'Starts a new run with the same input. Sealed values keep their original value.'
          : 'Starts a new run with the edited input. Sealed values that you do not touch keep their original value.'
      }
      open
      size="wide"
      onClose={onClose}
      onSubmit={submit}
      aside={<CopyCommand {...commands} />}
      actions={
        <>
          <CloseButton />
          <Button type="submit" kind="primary" busy={call.isPending} refused={refused}>
            Replay
          </Button>
        </>
      }
    >
      <div className={styles.form}>
        <fieldset className={styles.choices}>
          <legend>Version</legend>
          <label>
            <input {...radio('same')} /> {run.version}, as it ran
          </label>
          <label>
            <input {...radio('latest')} /> {latestLabel(latest, run.version)}
          </label>
          <label>
            <input {...radio('other')} /> other
          </label>
          {choice.kind === 'other' ? (
            <Select
              label="Version"
              labelHidden
              value={choice.other}
              onChange={(event) => setChoice({ kind: 'other', other: event.target.value })}
              error={fields.find((f) => f.path === 'version')?.message}
              options={[
                { value: '', label: versions.isPending ? 'Reading the versions' : 'Choose a version' },
                ...(versions.data?.versions ?? []).map((v) => ({ value: v.version, label: v.version })),
              ]}
            />
          ) : null}
        </fieldset>
        <div className={styles.columns}>
          <section className={styles.input} aria-label="Input">
            <div className={styles.line}>
              <h3>{draft === undefined ? 'Input, read-only' : 'Input'}</h3>
              {draft === undefined ? (
                <Button refused={whole.data === undefined ? 'The input is being read.' : undefined} onClick={begin}>
                  Edit
                </Button>
              ) : (
                <Button onClick={() => setDraft(undefined)}>Discard the edit</Button>
              )}
            </div>
            {broken === '' ? null : <p className={styles.changed}>The input cannot be edited: {broken}.</p>}
            {whole.data === undefined ? (
              <Skeleton rows={6} />
            ) : draft === undefined ? (
              <JsonView json={run.input?.json} label="the input" none="The run has no input." height={300} />
            ) : (
              <CodeEditor
                value={draft.text}
                label="Input of the new run"
                autoFocus
                onChange={(text) => setDraft((d) => (d === undefined ? d : { ...d, text }))}
              />
            )}
            {edit === undefined || edit.syntax === '' ? null : (
              <p className={styles.wrong} role="alert">
                The input is not JSON: {edit.syntax}.
              </p>
            )}
          </section>
          {draft === undefined || edit === undefined ? null : edit.syntax !== '' ? (
            <p className={styles.faint}>The changes are listed when the input is JSON.</p>
          ) : (
            <Changes
              draft={draft}
              operations={operations}
              problems={edit.problems}
              kept={edit.kept}
              value={edit.value}
              onDraft={setDraft}
            />
          )}
        </div>
        <LabelEditor
          rows={labelRows}
          onChange={setLabelRows}
          inherited={run.labels}
          fields={call.isError ? fields : request === content && check.isError ? callError(check.error).fields : []}
          disabled={call.isPending}
        />
        {asked && wrongLabels !== undefined ? <p className={styles.wrong}>{wrongLabels}</p> : null}
        <TextArea
          label="Reason"
          required
          value={reason}
          hint="For the audit log and the new run."
          error={
            fields.find((f) => f.path === 'reason')?.message ??
            (asked && reason.trim() === '' ? 'A reason is required.' : undefined)
          }
          onChange={(event) => setReason(event.target.value)}
        />
        {asked && isUnchosen(choice) ? <p className={styles.wrong}>Choose a version.</p> : null}
        {!checkable || request !== content || !(check.isSuccess || check.isError) ? null : (
          <p className={check.isError ? styles.wrong : styles.faint} role="status">
            {check.isError
              ? callError(check.error).message
              : `The server accepts this input for ${check.data.run?.version ?? run.version}.`}
          </p>
        )}
        {call.isError ? <CallProblem error={call.error} except={['reason', 'version', 'labels']} /> : null}
      </div>
    </Dialog>
  )
}

interface ChangesProps {
  draft: Draft
  operations: Operation[]
  problems: { path: string; message: string }[]
  kept: string[]
  value: Json | undefined
  onDraft: (draft: Draft) => void
}

const signs = { add: '+', remove: '−', replace: '~' }

/** The edit as a list of changes, each with its way back, and the sealed values that stay. */
function Changes({ draft, operations, problems, kept, value, onDraft }: ChangesProps) {
  return (
    <section className={styles.changes} aria-label="Changes">
      <h3>{operations.length === 0 ? 'No changes yet' : plural(operations.length, 'change')}</h3>
      <ul>
        {operations.slice(0, 200).map((operation, i) => (
          <li key={`${operation.op} ${operation.path} ${i}`} data-op={operation.op}>
            <span className={styles.sign} aria-label={operation.op}>
              {signs[operation.op]}
            </span>
            <span className={styles.change}>
              <code>{operation.path === '' ? 'the whole input' : operation.path}</code>
              <span>
                {operation.before === undefined ? '' : brief(operation.before)}
                {operation.op === 'replace' ? ' → ' : ''}
                {operation.value === undefined ? '' : brief(operation.value)}
              </span>
            </span>
            <Button
              kind="quiet"
              aria-label={`Undo the change at ${operation.path}`}
              icon={<Undo2 size={14} aria-hidden />}
              onClick={() => {
                if (value !== undefined) onDraft(undoEdit(draft, value, operation))
              }}
            />
          </li>
        ))}
      </ul>
      {operations.length > 200 ? <p className={styles.faint}>and {operations.length - 200} more</p> : null}
      {problems.map((problem) => (
        <p key={problem.path + problem.message} className={styles.wrong} role="alert">
          <code>{problem.path}</code> {problem.message}
        </p>
      ))}
      {draft.pointers.size === 0 ? null : (
        <>
          <h3>
            Sealed, kept: {kept.length} of {draft.pointers.size}
          </h3>
          <ul>
            {kept.slice(0, 100).map((pointer) => (
              <li key={pointer}>
                <code className={styles.change}>{pointer === '' ? 'the whole input' : pointer}</code>
                <Button
                  kind="quiet"
                  onClick={() => {
                    if (value !== undefined) onDraft(changeSealed(draft, value, pointer, 'replace'))
                  }}
                >
                  Replace
                </Button>
                <Button
                  kind="quiet"
                  onClick={() => {
                    if (value !== undefined) onDraft(changeSealed(draft, value, pointer, 'remove'))
                  }}
                >
                  Remove
                </Button>
              </li>
            ))}
          </ul>
        </>
      )}
    </section>
  )
}
