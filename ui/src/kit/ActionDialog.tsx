import { useMutation } from '@tanstack/react-query'
import { useState, type ReactNode } from 'react'
import { callError, ofField, useLink } from '../api'
import { Button } from './Button'
import { CallProblem } from './CallProblem'
import type { Rest } from './command'
import { CopyCommand } from './CopyCommand'
import { CloseButton, Dialog } from './Dialog'
import { TextArea } from './Field'
import styles from './ActionDialog.module.css'

export interface ActionDialogProps<Answer> {
  title: string
  /** What the action does, in a sentence or two. */
  description: ReactNode
  /** The word on the button. */
  action: string
  danger?: boolean
  /** Whether the API requires a reason, accepts one, or has none. */
  reason?: 'required' | 'optional' | 'none'
  /** Why the action cannot be submitted as it stands. */
  refused?: string | undefined
  run: (reason: string) => Promise<Answer>
  onDone: (answer: Answer) => void
  onClose: () => void
  /** The equal command of the CLI. */
  cli?: (reason: string) => string
  /** The equal call of the REST API; undefined while there is none. */
  rest?: (reason: string) => Rest | undefined
  /** The form; as a function, it receives what the server refused of a field. */
  children?: ReactNode | ((problemOf: (field: string) => string | undefined) => ReactNode)
  /** The fields at which the form shows what the server refused. */
  fields?: string[]
  size?: 'small' | 'normal' | 'wide'
}

/** Asks before an action, takes its reason, and shows what the server answered. What was typed stays when the call fails. */
export function ActionDialog<Answer>(props: ActionDialogProps<Answer>) {
  const { reason: rule = 'required' } = props
  const [reason, setReason] = useState('')
  const [checked, setChecked] = useState(false)
  const link = useLink()
  const act = useMutation({ mutationFn: () => props.run(reason.trim()), onSuccess: props.onDone })
  const missing = rule === 'required' && reason.trim() === ''
  const refused = link.state === 'live' ? props.refused : 'No connection to the server.'
  const submit = () => {
    setChecked(true)
    if (!missing && refused === undefined && !act.isPending) act.mutate()
  }
  const problems = act.isError ? callError(act.error).fields : []
  const problemOf = (field: string) => problems.find(({ path }) => ofField(path, field))?.message
  return (
    <Dialog
      title={props.title}
      description={props.description}
      open
      onClose={props.onClose}
      onSubmit={submit}
      size={props.size ?? 'normal'}
      aside={
        props.cli === undefined ? undefined : (
          <CopyCommand cli={props.cli(reason.trim())} rest={props.rest?.(reason.trim())} />
        )
      }
      actions={
        <>
          <CloseButton />
          <Button type="submit" kind={props.danger ? 'danger' : 'primary'} busy={act.isPending} refused={refused}>
            {props.action}
          </Button>
        </>
      }
    >
      <div className={styles.body}>
        {typeof props.children === 'function' ? props.children(problemOf) : props.children}
        {rule === 'none' ? null : (
          <TextArea
            label="Reason"
            hint="The audit log keeps it."
            required={rule === 'required'}
            value={reason}
            onChange={(event) => setReason(event.target.value)}
            error={problemOf('reason') ?? (checked && missing ? 'Say why; the audit log keeps it.' : undefined)}
            autoFocus
          />
        )}
        {act.isError ? <CallProblem error={act.error} except={['reason', ...(props.fields ?? [])]} /> : null}
      </div>
    </Dialog>
  )
}
