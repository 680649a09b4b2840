import { useMutation, useQueryClient } from '@tanstack/react-query'
import { MoreHorizontal } from 'lucide-react'
import { useState } from 'react'
import { useRefusal } from '../app'
import { callError, clients, now, problemsKey, timestamp } from '../api'
import type { OperatorProblem } from '../gen/signalbox/v1/problem_pb'
import { ActionDialog, Button, command, Menu, restCall, TextArea, TextField, toast, useLinkRefusal } from '../kit'
import styles from './problems.module.css'

const hour = 3_600_000

/** Acknowledge, snooze, give an owner and a note, reopen. A change that another operator made first is shown, not overwritten. */
export function ActionMenu({ problem: p }: { problem: OperatorProblem }) {
  const [dialog, setDialog] = useState(false)
  const refusal = useRefusal()
  const offline = useLinkRefusal()
  const queries = useQueryClient()
  const key = { id: p.id, revision: p.revision }
  const act = useMutation({
    mutationFn: (call: () => Promise<unknown>) => call(),
    onError: (error) => { toast(callError(error).message, 'error') },
    onSettled: () => queries.invalidateQueries({ queryKey: problemsKey }),
  })
  const refused = offline ?? refusal('operator', p.project === '' ? '*' : p.project) ?? (p.state === 'resolved' ? 'The problem no longer exists.' : undefined)
  const snooze = (label: string, milliseconds: number) => ({ label, refused, onSelect: () => { act.mutate(() => clients.problems.snoozeProblem({ ...key, until: timestamp(now() + milliseconds) })) } })
  const count = p.count
  return (
    <span className={styles.actions}>
      {p.state === 'acknowledged' || p.state === 'snoozed'
        ? <Button refused={refused} busy={act.isPending} onClick={() => { act.mutate(() => clients.problems.reopenProblem(key)) }}>Reopen</Button>
        : <Button refused={refused} busy={act.isPending} onClick={() => { act.mutate(() => clients.problems.acknowledgeProblem(key)) }}>Acknowledge</Button>}
      <Menu
        trigger={<Button kind="quiet" aria-label="More actions" icon={<MoreHorizontal size={16} aria-hidden />} />}
        items={[
          { label: 'Owner and note…', refused, onSelect: () => { setDialog(true) } },
          { kind: 'heading', label: 'Snooze' },
          snooze('For an hour', hour),
          snooze('For 8 hours', 8 * hour),
          snooze('For 3 days', 72 * hour),
          ...(count === undefined ? [] : [{ label: `Until there are ${String(count * 2n)}`, refused, onSelect: () => { act.mutate(() => clients.problems.snoozeProblem({ ...key, untilCount: count * 2n })) } }]),
        ]}
      />
      {dialog ? <NoteDialog problem={p} onClose={() => { setDialog(false) }} /> : null}
    </span>
  )
}

function NoteDialog({ problem: p, onClose }: { problem: OperatorProblem; onClose: () => void }) {
  const queries = useQueryClient()
  const [owner, setOwner] = useState(p.owner)
  const [note, setNote] = useState(p.note)
  return (
    <ActionDialog
      title="Owner and note"
      description={p.title}
      action="Save"
      reason="none"
      run={() => clients.problems.updateProblem({ id: p.id, revision: p.revision, owner, note })}
      cli={() => command(['problem', 'update', p.id], { owner, note })}
      rest={() => restCall('PATCH', '/v1/problems/{id}', { id: p.id, revision: p.revision, owner, note })}
      onDone={() => {
        void queries.invalidateQueries({ queryKey: problemsKey })
        onClose()
      }}
      onClose={onClose}
    >
      <TextField label="Owner" hint="The person or team that takes care of it." value={owner} onChange={(e) => { setOwner(e.target.value) }} autoFocus />
      <TextArea label="Note" rows={5} value={note} onChange={(e) => { setNote(e.target.value) }} />
    </ActionDialog>
  )
}
