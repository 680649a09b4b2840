import { create, toJson } from '@bufbuild/protobuf'
import { StartBatchRequestSchema } from '../gen/signalbox/v1/batch_pb'
import { useMutation, useQuery } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import { useState } from 'react'
import { callError, clients, type Json, newRequestID, now } from '../api'
import { useRefusal } from '../app'
import type { StartBatchResponse } from '../gen/signalbox/v1/batch_pb'
import {
  Button,
  CallProblem,
  CloseButton,
  command,
  CopyCommand,
  Dialog,
  inWords,
  plural,
  restCall,
  Select,
  TextArea,
  TextField,
  useLinkRefusal,
} from '../kit'
import { filterFlags, isFiltered, type RunFilter, selection } from './filter'
import styles from './runs.module.css'

export type BatchAction = 'replay' | 'cancel' | 'terminate'

const explained: Record<BatchAction, string> = {
  replay: 'A new run starts with the input of each run.',
  cancel: 'Each run is asked to end: it runs its own clean-up and ends as canceled.',
  terminate: 'Each run ends at once, without clean-up. Prefer to cancel.',
}

const most = 10_000

/** Applies one action to many runs: the selected ones, or all that match the filter; without a selection, these. */
export function BatchDialog({
  project,
  action,
  selected,
  filter,
  onClose,
}: {
  project: string
  action: BatchAction
  selected: string[]
  filter: RunFilter
  onClose: () => void
}) {
  const navigate = useNavigate()
  const offline = useLinkRefusal()
  const role = useRefusal()
  const [requestId] = useState(newRequestID)
  const [time] = useState(now)
  const [all, setAll] = useState(selected.length === 0)
  const [reason, setReason] = useState('')
  const [rate, setRate] = useState('50')
  const [version, setVersion] = useState('')
  const matching = selection(filter, time)
  const rateNumber = Number(rate)
  const request = {
    project,
    action,
    reason,
    rate: Number.isFinite(rateNumber) ? rateNumber : 0,
    version: action === 'replay' ? version : '',
    ...(all ? { filter: matching } : { runIds: selected }),
  }
  const preview = useQuery({
    queryKey: ['batch-preview', project, action, all, requestId],
    queryFn: async ({ signal }) =>
      await clients.batches.startBatch(
        { ...request, reason: reason === '' ? 'preview' : reason, rate: 0, requestId: '', dryRun: true },
        { signal },
      ),
  })
  const total = preview.data?.batch?.total
  const start = useMutation({
    // A filter may match other runs by now: the server refuses if their number is not the one shown here.
    mutationFn: () =>
      clients.batches.startBatch({
        ...request,
        requestId,
        ...(all && total !== undefined ? { expectedTotal: total } : {}),
      }),
    onError: (failure) => {
      if (callError(failure).reason === 'BATCH_TOTAL_CHANGED') void preview.refetch()
    },
    onSuccess: ({ batch }) => {
      onClose()
      if (batch !== undefined) void navigate({ to: '/p/$project/batches/$id', params: { project, id: batch.id } })
    },
  })
  const error = start.isError ? callError(start.error) : undefined
  const fieldError = (name: string) => error?.fields.find((f) => f.path === name)?.message
  const rateWrong = rate.trim() === '' || !Number.isFinite(rateNumber) || rateNumber < 0.1 || rateNumber > 500
  const count = all ? total : BigInt(selected.length)
  const refused =
    offline ??
    role('operator', project) ??
    (reason.trim() === ''
      ? 'Give a reason'
      : rateWrong
        ? 'The rate is from 0.1 to 500 runs per second'
        : count === 0n
          ? 'No run is selected'
          : all && total === undefined
            ? 'The runs are not counted yet'
            : preview.data?.eligible === 0n
              ? 'No selected run allows it'
              : !all && selected.length > most
                ? 'At most 10,000 runs can be selected one by one; take all that match'
                : undefined)
  const flags = {
    project,
    action,
    reason,
    rate: rate === '50' ? '' : rate,
    latest: action === 'replay' && version === 'latest',
  }
  const cli = all
    ? command(['batch', 'start'], {
        ...flags,
        ...filterFlags(filter),
        all: !isFiltered(filter),
      })
    : command(['batch', 'start', ...selected], flags)
  return (
    <Dialog
      open
      onClose={onClose}
      title={`${inWords(action)} ${count === undefined ? 'runs' : plural(count, 'run')}`}
      description={explained[action]}
      onSubmit={() => {
        if (refused === undefined && !start.isPending) start.mutate()
      }}
      aside={
        <CopyCommand
          cli={cli}
          rest={restCall(
            'POST',
            '/v1/projects/{project}/batches',
            toJson(StartBatchRequestSchema, create(StartBatchRequestSchema, { ...request, requestId })) as Record<
              string,
              Json
            >,
          )}
        />
      }
      actions={
        <>
          <CloseButton />
          <Button
            type="submit"
            kind={action === 'replay' ? 'primary' : 'danger'}
            refused={refused}
            busy={start.isPending}
          >
            {inWords(action)}
          </Button>
        </>
      }
    >
      <div className={styles.form}>
        {selected.length === 0 ? null : (
          <fieldset className={styles.scopes}>
            <legend className="hidden">Which runs</legend>
            <label className={styles.scope}>
              <input type="radio" name="scope" checked={!all} onChange={() => setAll(false)} />{' '}
              {plural(selected.length, 'selected run')}
            </label>
            <label className={styles.scope}>
              <input type="radio" name="scope" checked={all} onChange={() => setAll(true)} />
              {all && total !== undefined
                ? `All ${plural(total, 'run')} that match the filter now`
                : 'All that match the filter'}
            </label>
          </fieldset>
        )}
        {preview.isError ? <CallProblem error={preview.error} /> : null}
        {preview.data === undefined ? null : <Preview answer={preview.data} action={action} />}
        <TextArea
          label="Reason"
          required
          value={reason}
          hint="The audit log records it."
          error={fieldError('reason')}
          onChange={(event) => setReason(event.target.value)}
        />
        {action === 'replay' ? (
          <Select
            label="Version"
            value={version}
            options={[
              { value: '', label: "Each run's own version" },
              { value: 'latest', label: 'The latest published version' },
            ]}
            onChange={(event) => setVersion(event.target.value)}
          />
        ) : null}
        <div className={styles.rate}>
          <TextField
            label="Runs per second"
            inputMode="decimal"
            value={rate}
            error={fieldError('rate') ?? (rateWrong ? 'From 0.1 to 500' : undefined)}
            onChange={(event) => setRate(event.target.value)}
          />
        </div>
        {start.isError ? <CallProblem error={start.error} except={['reason', 'rate']} /> : null}
      </div>
    </Dialog>
  )
}

/** What the batch would do with the runs in their present state. */
function Preview({
  answer: { eligible, unchanged, preview },
  action,
}: {
  answer: StartBatchResponse
  action: BatchAction
}) {
  return (
    <ul aria-label="What it would do now" className={styles.preview}>
      <li>
        {plural(eligible, 'run')} {eligible === 1n ? 'allows' : 'allow'} to {action}
      </li>
      {unchanged > 0n ? <li>{plural(unchanged, 'run')} would not change</li> : null}
      {preview.map((p) => (
        <li key={p.reason}>
          {plural(p.count, 'run')} refused: {inWords(p.reason).toLowerCase()} <code>{p.reason}</code>
        </li>
      ))}
    </ul>
  )
}
