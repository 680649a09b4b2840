import { useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { clients, type Json, readJson } from '../api'
import type { Webhook } from '../gen/signalbox/v1/webhook_pb'
import { ActionDialog, command, restCall, Select, TextArea, TextField, toast } from '../kit'
import { formats, typesOf, webhooksKey } from './words'

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
  const before = { types: webhook?.filter?.types.join('\n') ?? '', condition: webhook?.filter?.with?.json ?? '' }
  const [name, setName] = useState(webhook?.name ?? '')
  const [format, setFormat] = useState(webhook?.format ?? 'cloudevents')
  const [url, setURL] = useState('')
  const [key, setKey] = useState('')
  const [types, setTypes] = useState(before.types)
  const [condition, setCondition] = useState(before.condition)

  const filter = { types: typesOf(types), ...(condition.trim() === '' ? {} : { with: { json: condition.trim() } }) }
  const filtered = webhook === undefined || types !== before.types || condition !== before.condition
  const changed = filtered || url !== '' || key !== ''
  const save = async (): Promise<string> => {
    if (webhook === undefined)
      return (
        await clients.webhooks.createWebhook({
          project,
          name: name.trim(),
          url: url.trim(),
          format,
          filter,
          routingKey: key.trim(),
        })
      ).secret
    await clients.webhooks.updateWebhook({
      project,
      name,
      ...(url === '' ? {} : { url: url.trim() }),
      ...(key === '' ? {} : { routingKey: key.trim() }),
      ...(filtered ? { filter } : {}),
    })
    return ''
  }
  // The key of PagerDuty is a secret; a command in the clipboard and in a shell's history must not contain it.
  const flags = {
    project,
    url,
    ...(webhook === undefined ? { format } : {}),
    ...(filtered ? { type: filter.types, with: condition.trim() } : {}),
    'routing-key': key === '' ? '' : 'KEY',
  }
  const call = () => {
    const json = jsonOf(condition)
    if (json === 'invalid') return undefined
    const base = '/v1/projects/{project}/webhooks'
    const settings = {
      project,
      name: name.trim(),
      url: url === '' ? undefined : url.trim(),
      routingKey: key === '' ? undefined : 'KEY',
      filter: filtered ? { types: filter.types, with: json } : undefined,
    }
    return webhook === undefined
      ? restCall('POST', base, { ...settings, format })
      : restCall('PATCH', `${base}/{name}`, settings)
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
      refused={changed ? undefined : 'Nothing is changed.'}
      fields={['name', 'format', 'url', 'routing_key', 'filter']}
      run={save}
      cli={() => command(['webhook', webhook === undefined ? 'create' : 'update', name === '' ? 'NAME' : name], flags)}
      rest={call}
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
                onChange={(e) => setName(e.target.value)}
                hint="a-z, 0-9 and -"
                error={problemOf('name')}
                autoFocus
              />
              <Select
                label="Format"
                value={format}
                onChange={(e) => setFormat(e.target.value)}
                options={Object.entries(formats).map(([value, label]) => ({ value, label }))}
                error={problemOf('format')}
              />
            </>
          ) : null}
          <TextField
            label="Address of the receiver"
            type="url"
            required={webhook === undefined && format !== 'pagerduty'}
            value={url}
            onChange={(e) => setURL(e.target.value)}
            hint={
              webhook !== undefined
                ? `Empty keeps ${webhook.url}`
                : format === 'pagerduty'
                  ? 'Empty for that of PagerDuty.'
                  : 'It may contain credentials, which are not shown again.'
            }
            error={problemOf('url')}
          />
          {format === 'pagerduty' ? (
            <TextField
              label="Integration key"
              type="password"
              required={webhook === undefined}
              value={key}
              onChange={(e) => setKey(e.target.value)}
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
            value={types}
            onChange={(e) => setTypes(e.target.value)}
            hint="One in a line. An * at the end matches all types that begin so: io.signalbox.*"
            error={problemOf('filter.types')}
          />
          <TextArea
            label="Condition on attributes"
            rows={2}
            className="mono"
            spellCheck={false}
            value={condition}
            onChange={(e) => setCondition(e.target.value)}
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

/** jsonOf reads a condition; undefined if there is none. */
function jsonOf(text: string): Json | undefined {
  try {
    return text.trim() === '' ? undefined : readJson(text)
  } catch {
    return 'invalid'
  }
}
