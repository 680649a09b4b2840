import { useMutation, useQueryClient } from '@tanstack/react-query'
import { MoreHorizontal } from 'lucide-react'
import { useState } from 'react'
import { useRefusal } from '../app'
import { clients, now, problemsKey, timestamp, useProblem } from '../api'
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
  toastError,
  useLinkRefusal,
} from '../kit'
import { type EditedText, followed, goneRefusal, isSettled, otherText, roleProject, snoozes } from './action'
import styles from './problems.module.css'

/** Acknowledge, snooze, give an owner and a note, reopen. A change that another operator made first is shown, not overwritten. */
export function ActionMenu({ problem: p }: { problem: Problem }) {
  const [dialog, setDialog] = useState(false)
  const refusal = useRefusal()
  const offline = useLinkRefusal()
  const queries = useQueryClient()
  const key = { id: p.id, revision: p.revision }
  const act = useMutation({
    mutationFn: (call: () => Promise<unknown>) => call(),
    onError: toastError,
    onSettled: () => queries.invalidateQueries({ queryKey: problemsKey }),
  })
  const refused = offline ?? refusal('operator', roleProject(p)) ?? goneRefusal(p)
  const count = p.count
  return (
    <span className={styles.actions}>
      {isSettled(p) ? (
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
          ...snoozes.map(({ label, milliseconds }) => ({
            label,
            refused,
            onSelect: () =>
              act.mutate(() => clients.problems.snoozeProblem({ ...key, until: timestamp(now() + milliseconds) })),
          })),
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

/** useText edits a text that other operators may change, too. */
function useText(current: string) {
  const [edit, setEdit] = useState<EditedText>({ first: current, text: current })
  const shown = followed(edit, current)
  if (shown !== edit) setEdit(shown)
  return {
    text: shown.text,
    setText: (text: string) => setEdit({ ...shown, text }),
    other: otherText(shown, current),
  }
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
      refused={goneRefusal(p)}
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
