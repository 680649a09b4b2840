import { useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { clients } from '../api'
import type { Webhook } from '../gen/signalbox/v1/webhook_pb'
import { ActionDialog, Select, TextArea, TextField, toast } from '../kit'
import { createRequest, editCommands, formOf, isChanged, updateRequest, urlHint, type WebhookForm } from './edit'
import { formats, webhooksKey } from './words'

/**
 * Creates a webhook, or changes one. The address and the key of an existing one are secret in part: fields that stay empty keep them. `onDone`
 * receives the secret of a new one.
 */
export function EditDialog({
  project,
  webhook,
  onDone,
  onClose,
}: {
  project: string
  webhook?: Webhook
  onDone: (name: string, secret: string) => void
  onClose: () => void
}) {
  const queries = useQueryClient()
  const [form, setForm] = useState(() => formOf(webhook))
  const set = (part: Partial<WebhookForm>) => {
    setForm({ ...form, ...part })
  }
  const { name, format } = form
  const save = async (): Promise<string> => {
    if (webhook === undefined) return (await clients.webhooks.createWebhook(createRequest(project, form))).secret
    await clients.webhooks.updateWebhook(updateRequest(project, webhook, form))
    return ''
  }
  return (
    <ActionDialog
      title={webhook === undefined ? `Create a webhook in ${project}` : `Change ${webhook.name}`}
      description={
        webhook === undefined
          ? 'It receives the events that are accepted from then on.'
          : 'Deliveries that are not finished use the new address.'
      }
      action={webhook === undefined ? 'Create' : 'Save'}
      reason="none"
      refused={isChanged(webhook, form) ? undefined : 'Nothing is changed.'}
      fields={['name', 'format', 'url', 'routing_key', 'filter']}
      run={save}
      cli={() => editCommands(project, webhook, form).cli}
      rest={() => editCommands(project, webhook, form).rest}
      onDone={(secret) => {
        toast(webhook === undefined ? `Created ${name}.` : 'Saved.')
        void queries.invalidateQueries({ queryKey: webhooksKey(project) })
        onDone(name.trim(), secret)
      }}
      onClose={onClose}
    >
      {(problemOf) => (
        <>
          {webhook === undefined ? (
            <>
              <TextField
                label="Name"
                required
                value={name}
                onChange={(e) => set({ name: e.target.value })}
                hint="a-z, 0-9 and -"
                error={problemOf('name')}
                autoFocus
              />
              <Select
                label="Format"
                value={format}
                onChange={(e) => set({ format: e.target.value })}
                options={Object.entries(formats).map(([value, label]) => ({ value, label }))}
                error={problemOf('format')}
              />
            </>
          ) : null}
          <TextField
            label="Address of the receiver"
            type="url"
            required={webhook === undefined && format !== 'pagerduty'}
            value={form.url}
            onChange={(e) => set({ url: e.target.value })}
            hint={urlHint(webhook, format)}
            error={problemOf('url')}
          />
          {format === 'pagerduty' ? (
            <TextField
              label="Integration key"
              type="password"
              required={webhook === undefined}
              value={form.key}
              onChange={(e) => set({ key: e.target.value })}
              hint={webhook === undefined ? undefined : 'Empty keeps the key.'}
              error={problemOf('routing_key')}
            />
          ) : null}
          <TextArea
            label="Types of events"
            required
            rows={3}
            className="mono"
            spellCheck={false}
            value={form.types}
            onChange={(e) => set({ types: e.target.value })}
            hint="One in a line. An * at the end matches all types that begin so: io.signalbox.*"
            error={problemOf('filter.types')}
          />
          <TextArea
            label="Condition on attributes"
            rows={2}
            className="mono"
            spellCheck={false}
            value={form.condition}
            onChange={(e) => set({ condition: e.target.value })}
            hint={
              'JSON, as the with of a listen task; empty for none: {"source": "/orders", "data": "${ .cents > 10000 }"}'
            }
            error={problemOf('filter.with')}
          />
        </>
      )}
    </ActionDialog>
  )
}
