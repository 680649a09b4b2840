import { useQueryClient } from '@tanstack/react-query'
import { Plus, X } from 'lucide-react'
import { useState } from 'react'
import { useProjects } from '../app'
import { clients, now } from '../api'
import { ActionDialog, Button, SecretDialog, Select, TextField } from '../kit'
import styles from './access.module.css'
import { formRefusal, tokenCommands, tokenRequest } from './token'

const roleOptions = [
  { value: 'viewer', label: 'viewer: read, redacted' },
  { value: 'operator', label: 'operator: run, replay, cancel, events' },
  { value: 'publisher', label: 'publisher: definitions' },
  { value: 'admin', label: 'admin: everything' },
]

const spans = [
  { value: '30', label: '30 days' },
  { value: '90', label: '90 days' },
  { value: '365', label: 'A year' },
  { value: '', label: 'It does not expire' },
]

/** Creates a token and shows it once. */
export function CreateTokenDialog({ onClose }: { onClose: () => void }) {
  const projects = useProjects()
  const queries = useQueryClient()
  const [name, setName] = useState('')
  const [roles, setRoles] = useState([{ project: projects.data?.[0]?.name ?? '*', role: 'viewer' }])
  const [days, setDays] = useState('90')
  const [secret, setSecret] = useState('')
  const change = (index: number, part: Partial<{ project: string; role: string }>) => {
    setRoles(roles.map((r, i) => (i === index ? { ...r, ...part } : r)))
  }

  if (secret !== '')
    return <SecretDialog title={`The token of ${name}`} what="the token" secret={secret} onClose={onClose} />
  const form = { name, roles, days }
  return (
    <ActionDialog
      title="Create a token"
      description="For a program or a person. You must be an administrator of each project that you name."
      action="Create"
      reason="none"
      refused={formRefusal(form)}
      run={() => clients.tokens.createToken(tokenRequest(form, now()))}
      cli={() => tokenCommands(form, now()).cli}
      rest={() => tokenCommands(form, now()).rest}
      onDone={(answer) => {
        setSecret(answer.secret)
        void queries.invalidateQueries({ queryKey: ['tokens'] })
      }}
      onClose={onClose}
    >
      <TextField
        label="Name"
        required
        value={name}
        onChange={(e) => setName(e.target.value)}
        hint="The audit log has it."
        autoFocus
      />
      <fieldset className={styles.roles}>
        <legend>Roles</legend>
        {roles.map((r, i) => (
          <div key={i} className={styles.role}>
            <Select
              label="Project"
              labelHidden
              value={r.project}
              onChange={(e) => change(i, { project: e.target.value })}
              options={[
                { value: '*', label: 'All projects' },
                ...(projects.data ?? []).map((p) => ({ value: p.name, label: p.name })),
              ]}
            />
            <Select
              label="Role"
              labelHidden
              value={r.role}
              onChange={(e) => change(i, { role: e.target.value })}
              options={roleOptions}
            />
            <Button
              kind="quiet"
              aria-label="Remove this role"
              icon={<X size={14} aria-hidden />}
              refused={roles.length === 1 ? 'A token needs a role.' : undefined}
              onClick={() => setRoles(roles.filter((_, j) => j !== i))}
            />
          </div>
        ))}
        <Button
          kind="quiet"
          icon={<Plus size={14} aria-hidden />}
          onClick={() => setRoles([...roles, { project: '*', role: 'viewer' }])}
        >
          Add a role
        </Button>
      </fieldset>
      <Select label="Expires after" value={days} onChange={(e) => setDays(e.target.value)} options={spans} />
    </ActionDialog>
  )
}
