import { useMutation, useQueryClient } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import { useState } from 'react'
import { clients, newRequestID } from '../api'
import {
  Button,
  CallProblem,
  CloseButton,
  CopyCommand,
  Dialog,
  TextArea,
  TextField,
  toast,
  useLinkRefusal,
} from '../kit'
import { eventOf, missingParts, sendCommands } from './event'
import styles from './events.module.css'

/** Sends an event as a program would. Its ID is made when the dialog opens, so sending again after a lost answer makes one event. */
export function SendDialog({ project, onClose }: { project: string; onClose: () => void }) {
  const [type, setType] = useState('')
  const [source, setSource] = useState('/studio')
  const [subject, setSubject] = useState('')
  const [data, setData] = useState('{}')
  const [id] = useState(newRequestID)
  const [checked, setChecked] = useState(false)
  const navigate = useNavigate()
  const queries = useQueryClient()
  const offline = useLinkRefusal()
  const form = { id, type, source, subject, data }
  const send = useMutation({
    mutationFn: () => clients.events.publishEvents({ project, events: [eventOf(form)] }),
    onSuccess: (answer) => {
      const accepted = answer.accepted[0]
      toast(accepted?.duplicate ? 'The event was accepted before.' : 'The event was accepted.')
      void queries.invalidateQueries({ queryKey: ['events', project] })
      onClose()
      if (accepted !== undefined)
        void navigate({ to: '/p/$project/events/$position', params: { project, position: String(accepted.position) } })
    },
  })
  const missing = missingParts(form)
  const submit = () => {
    setChecked(true)
    if (missing.type === undefined && missing.source === undefined && offline === undefined && !send.isPending)
      send.mutate()
  }
  return (
    <Dialog
      title="Send a test event"
      description={`To the inbox of ${project}. It starts and wakes runs as any other event.`}
      open
      onClose={onClose}
      onSubmit={submit}
      aside={<CopyCommand {...sendCommands(project, form)} />}
      actions={
        <>
          <CloseButton />
          <Button type="submit" kind="primary" busy={send.isPending} refused={offline}>
            Send
          </Button>
        </>
      }
    >
      <div className={styles.form}>
        <TextField
          label="Type"
          required
          value={type}
          onChange={(e) => setType(e.target.value)}
          error={checked ? missing.type : undefined}
          autoFocus
        />
        <TextField
          label="Source"
          required
          value={source}
          onChange={(e) => setSource(e.target.value)}
          error={checked ? missing.source : undefined}
        />
        <TextField label="Subject" value={subject} onChange={(e) => setSubject(e.target.value)} />
        <TextArea
          label="Data"
          hint="JSON; empty for none."
          rows={6}
          spellCheck={false}
          className="mono"
          value={data}
          onChange={(e) => setData(e.target.value)}
        />
        {send.isError ? <CallProblem error={send.error} /> : null}
      </div>
    </Dialog>
  )
}
