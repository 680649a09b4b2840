import { create, type MessageInitShape } from '@bufbuild/protobuf'
import { describe, expect, it } from 'vitest'
import { WebhookSchema } from '../gen/signalbox/v1/webhook_pb'
import { createRequest, editCommands, formOf, isChanged, updateRequest, urlHint, type WebhookForm } from './edit'

const hook = (given: MessageInitShape<typeof WebhookSchema> = {}) =>
  create(WebhookSchema, {
    name: 'audit',
    format: 'cloudevents',
    url: 'https://hooks.example/***',
    filter: { types: ['a.*', 'b'], with: { json: '{"source":"/x"}' } },
    ...given,
  } as MessageInitShape<typeof WebhookSchema>)
const form = (part: Partial<WebhookForm> = {}): WebhookForm => ({ ...formOf(hook()), ...part })
const fresh: WebhookForm = {
  name: ' pager ',
  format: 'pagerduty',
  url: ' https://x ',
  key: ' s3cret ',
  types: 'a\nb.*, c',
  condition: ' {"n": 1.50} ',
}

describe('the form of a webhook', () => {
  it('has the filter of an existing one, and neither its address nor its key', () => {
    expect(formOf(hook())).toEqual({
      name: 'audit',
      format: 'cloudevents',
      url: '',
      key: '',
      types: 'a.*\nb',
      condition: '{"source":"/x"}',
    })
  })

  it('is empty for a new one', () => {
    expect(formOf(undefined)).toEqual({ name: '', format: 'cloudevents', url: '', key: '', types: '', condition: '' })
  })

  it('says what becomes of the address', () => {
    expect(urlHint(hook(), 'pagerduty')).toBe('Empty keeps https://hooks.example/***')
    expect(urlHint(undefined, 'pagerduty')).toBe('Empty for that of PagerDuty.')
    expect(urlHint(undefined, 'slack')).toContain('not shown again')
  })
})

describe('a change of a webhook', () => {
  it('is there once something differs', () => {
    expect(isChanged(hook(), form())).toBe(false)
    expect(isChanged(hook(), form({ url: 'https://y' }))).toBe(true)
    expect(isChanged(hook(), form({ key: 'k' }))).toBe(true)
    expect(isChanged(hook(), form({ types: 'a.*' }))).toBe(true)
    expect(isChanged(hook(), form({ condition: '' }))).toBe(true)
    expect(isChanged(undefined, formOf(undefined))).toBe(true)
  })

  it('has what differs alone, so that secrets stay as they are', () => {
    expect(updateRequest('shop', hook(), form())).toEqual({ project: 'shop', name: 'audit' })
    expect(updateRequest('shop', hook(), form({ url: ' https://y ' }))).toEqual({
      project: 'shop',
      name: 'audit',
      url: 'https://y',
    })
    expect(updateRequest('shop', hook(), form({ key: ' k ' }))).toEqual({
      project: 'shop',
      name: 'audit',
      routingKey: 'k',
    })
  })

  it('has the whole filter where a part of it differs', () => {
    expect(updateRequest('shop', hook(), form({ types: 'c' }))).toMatchObject({
      filter: { types: ['c'], with: { json: '{"source":"/x"}' } },
    })
    expect(updateRequest('shop', hook(), form({ condition: ' ' }))).toMatchObject({ filter: { types: ['a.*', 'b'] } })
    expect(updateRequest('shop', hook(), form({ condition: ' ' })).filter).not.toHaveProperty('with')
  })
})

describe('a new webhook', () => {
  it('has all that was typed, without spaces at the ends', () => {
    expect(createRequest('shop', fresh)).toEqual({
      project: 'shop',
      name: 'pager',
      url: 'https://x',
      format: 'pagerduty',
      filter: { types: ['a', 'b.*', 'c'], with: { json: '{"n": 1.50}' } },
      routingKey: 's3cret',
    })
  })

  it('has commands without its key', () => {
    const { cli, rest } = editCommands('shop', undefined, fresh)
    expect(cli).toBe(
      `signalbox webhook create pager --project shop --url https://x --format pagerduty --type a --type 'b.*' --type c --with '{"n": 1.50}' --routing-key KEY`,
    )
    expect(rest).toEqual({
      method: 'POST',
      path: '/v1/projects/shop/webhooks',
      body: '{"name":"pager","url":"https://x","routingKey":"KEY","filter":{"types":["a","b.*","c"],"with":{"n":1.50}},"format":"pagerduty"}',
    })
    expect(cli + (rest?.body ?? '')).not.toContain('s3cret')
  })

  it('has a name to fill in, and no call while its condition is not JSON', () => {
    const { cli, rest } = editCommands('shop', undefined, { ...fresh, name: ' ', condition: '{' })
    expect(cli).toContain('webhook create NAME')
    expect(rest).toBeUndefined()
  })
})

describe('the commands of a change', () => {
  it('have what differs alone', () => {
    const { cli, rest } = editCommands('shop', hook(), form({ url: 'https://y' }))
    expect(cli).toBe('signalbox webhook update audit --project shop --url https://y')
    expect(rest).toEqual({ method: 'PATCH', path: '/v1/projects/shop/webhooks/audit', body: '{"url":"https://y"}' })
  })

  it('have the filter and hide a new key', () => {
    const { cli, rest } = editCommands('shop', hook(), form({ types: 'c', key: 's3cret' }))
    expect(cli).toContain(`--type c --with '{"source":"/x"}' --routing-key KEY`)
    expect(rest?.body).toBe('{"routingKey":"KEY","filter":{"types":["c"],"with":{"source":"/x"}}}')
  })
})
