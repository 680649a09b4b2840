import { useMutation, useQueryClient } from '@tanstack/react-query'
import { MoreHorizontal } from 'lucide-react'
import { useState } from 'react'
import { useRefusal } from '../app'
import { callError, clients, now, problemsKey, timestamp, useProblem } from '../api'
import type { Problem } from '../gen/signalbox/v1/problem_pb'
import {
  ActionDialog,
  Button,
  command,
  inWords,
  Menu,
  restCall,
  TextArea,
  TextField,
  toast,
  useLinkRefusal,
} from '../kit'
import styles from './problems.module.css'

const hour = 3_600_000

/** Acknowledge, snooze, give an owner and a note, reopen. A change that another operator made first is shown, not overwritten. */
export function ActionMenu({ problem: p }: { problem: Problem }) {
  const [dialog, setDialog] = useState(false)
  const refusal = useRefusal()
  const offline = useLinkRefusal()
  const queries = useQueryClient()
  const key = { id: p.id, revision: p.revision }
  const act = useMutation({
    mutationFn: (call: () => Promise<unknown>) => call(),
    onError: (error) => toast(callError(error).message, 'error'),
    onSettled: () => queries.invalidateQueries({ queryKey: problemsKey }),
  })
  const refused =
    offline ??
    refusal('operator', p.project === '' ? '*' : p.project) ??
    (p.state === 'resolved' ? 'The problem no longer exists.' : undefined)
  const snooze = (label: string, milliseconds: number) => ({
    label,
    refused,
    onSelect: () =>
      act.mutate(() => clients.problems.snoozeProblem({ ...key, until: timestamp(now() + milliseconds) })),
  })
  const count = p.count
  return (
    <span className={styles.actions}>
      {p.state === 'acknowledged' || p.state === 'snoozed' ? (
        <Button
          refused={refused}
          busy={act.isPending}
          onClick={() => act.mutate(() => clients.problems.reopenProblem(key))}
        >
          Reopen
        </Button>
      ) : (
        <Button
          refused={refused}
          busy={act.isPending}
          onClick={() => act.mutate(() => clients.problems.acknowledgeProblem(key))}
        >
          Acknowledge
        </Button>
      )}
      <Menu
        trigger={<Button kind="quiet" aria-label="More actions" icon={<MoreHorizontal size={16} aria-hidden />} />}
        items={[
          {
            label: 'Owner and note…',
            refused,
            onSelect: () => setDialog(true),
          },
          { kind: 'heading', label: 'Snooze' },
          snooze('For an hour', hour),
          snooze('For 8 hours', 8 * hour),
          snooze('For 3 days', 72 * hour),
          ...(count === undefined
            ? []
            : [
                {
                  label: `Until there are ${String(count * 2n)}`,
                  refused,
                  onSelect: () => act.mutate(() => clients.problems.snoozeProblem({ ...key, untilCount: count * 2n })),
                },
              ]),
        ]}
      />
      {dialog ? <NoteDialog problem={p} onClose={() => setDialog(false)} /> : null}
    </span>
  )
}

/** A field that the operator has not typed in follows the server; where both have changed, the other text is shown. */
function useText(current: string) {
  const [first, setFirst] = useState(current)
  const [text, setText] = useState(current)
  if (text === first && current !== first) {
    setFirst(current)
    setText(current)
  }
  return { text, setText, other: text !== first && current !== first && current !== text ? current : undefined }
}

const others = (text: string | undefined) =>
  text === undefined ? undefined : `Another operator has written “${text}” meanwhile. Saving replaces it.`

function NoteDialog({ problem, onClose }: { problem: Problem; onClose: () => void }) {
  const queries = useQueryClient()
  const p = useProblem(problem.id, problem) ?? problem
  const [opened] = useState(p.state)
  const owner = useText(p.owner)
  const note = useText(p.note)
  const change = { id: p.id, revision: p.revision, owner: owner.text, note: note.text }
  return (
    <ActionDialog
      title="Owner and note"
      description={p.title}
      action="Save"
      reason="none"
      refused={p.state === 'resolved' ? 'The problem no longer exists.' : undefined}
      run={() => clients.problems.updateProblem(change)}
      cli={() => command(['problem', 'update', p.id], { owner: owner.text, note: note.text })}
      rest={() => restCall('PATCH', '/v1/problems/{id}', change)}
      onDone={() => {
        void queries.invalidateQueries({ queryKey: problemsKey })
        onClose()
      }}
      onClose={onClose}
    >
      {p.state === opened ? null : (
        <p role="status">
          It is {inWords(p.state).toLowerCase()} now{p.acknowledger === '' ? '' : `, by ${p.acknowledger}`}.
        </p>
      )}
      <TextField
        label="Owner"
        hint={others(owner.other) ?? 'The person or team that takes care of it.'}
        value={owner.text}
        onChange={(e) => owner.setText(e.target.value)}
        autoFocus
      />
      <TextArea
        label="Note"
        rows={5}
        hint={others(note.other)}
        value={note.text}
        onChange={(e) => note.setText(e.target.value)}
      />
    </ActionDialog>
  )
}
