import { type Json, readJson } from '../api'
import type { Webhook } from '../gen/signalbox/v1/webhook_pb'
import { command, type Rest, restCall } from '../kit'
import { typesOf } from './words'

/** A webhook as it is written in the form. The address and the key of an existing one are secret in part: empty fields keep them. */
export interface WebhookForm {
  name: string
  format: string
  url: string
  key: string
  types: string
  condition: string
}

/** formOf returns the form of a webhook, or of a new one. */
export const formOf = (webhook: Webhook | undefined): WebhookForm => ({
  name: webhook?.name ?? '',
  format: webhook?.format ?? 'cloudevents',
  url: '',
  key: '',
  types: webhook?.filter?.types.join('\n') ?? '',
  condition: webhook?.filter?.with?.json ?? '',
})

const filterOf = ({ types, condition }: WebhookForm) => ({
  types: typesOf(types),
  ...(condition.trim() === '' ? {} : { with: { json: condition.trim() } }),
})

/** isFiltered reports whether a form has another filter than the webhook; a new one always has its own. */
const isFiltered = (webhook: Webhook | undefined, form: WebhookForm): boolean => {
  const before = formOf(webhook)
  return webhook === undefined || form.types !== before.types || form.condition !== before.condition
}

/** isChanged reports whether there is something to save. */
export const isChanged = (webhook: Webhook | undefined, form: WebhookForm): boolean =>
  isFiltered(webhook, form) || form.url !== '' || form.key !== ''

/** createRequest returns the request that creates a webhook. */
export const createRequest = (project: string, form: WebhookForm) => ({
  project,
  name: form.name.trim(),
  url: form.url.trim(),
  format: form.format,
  filter: filterOf(form),
  routingKey: form.key.trim(),
})

/** updateRequest returns the request that changes a webhook: what is not changed is not in it. */
export const updateRequest = (project: string, webhook: Webhook, form: WebhookForm) => ({
  project,
  name: webhook.name,
  ...(form.url === '' ? {} : { url: form.url.trim() }),
  ...(form.key === '' ? {} : { routingKey: form.key.trim() }),
  ...(isFiltered(webhook, form) ? { filter: filterOf(form) } : {}),
})

/** What stands in a command in place of the key of PagerDuty: it is a secret, and clipboards and the histories of shells keep what they get. */
const hiddenKey = 'KEY'

/** editCommands returns how to save a form without the page; no call of REST while the condition is not JSON. */
export function editCommands(
  project: string,
  webhook: Webhook | undefined,
  form: WebhookForm,
): { cli: string; rest: Rest | undefined } {
  const { types } = filterOf(form)
  const filtered = isFiltered(webhook, form)
  const condition = form.condition.trim()
  const name = form.name.trim()
  const cli = command(['webhook', webhook === undefined ? 'create' : 'update', name === '' ? 'NAME' : name], {
    project,
    url: form.url.trim(),
    ...(webhook === undefined ? { format: form.format } : {}),
    ...(filtered ? { type: types, with: condition } : {}),
    'routing-key': form.key === '' ? '' : hiddenKey,
  })
  let json: Json | undefined
  try {
    json = condition === '' ? undefined : readJson(condition)
  } catch {
    return { cli, rest: undefined }
  }
  const settings = {
    project,
    name,
    url: form.url === '' ? undefined : form.url.trim(),
    routingKey: form.key === '' ? undefined : hiddenKey,
    filter: filtered ? { types, with: json } : undefined,
  }
  const base = '/v1/projects/{project}/webhooks'
  return {
    cli,
    rest:
      webhook === undefined
        ? restCall('POST', base, { ...settings, format: form.format })
        : restCall('PATCH', `${base}/{name}`, settings),
  }
}

/** urlHint says what the field of the address is for. */
export const urlHint = (webhook: Webhook | undefined, format: string): string => {
  if (webhook !== undefined) return `Empty keeps ${webhook.url}`
  return format === 'pagerduty'
    ? 'Empty for that of PagerDuty.'
    : 'It may contain credentials, which are not shown again.'
}
