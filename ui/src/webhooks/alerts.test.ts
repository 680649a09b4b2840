import { create, type MessageInitShape } from '@bufbuild/protobuf'
import { describe, expect, it } from 'vitest'
import { WebhookSchema } from '../gen/signalbox/v1/webhook_pb'
import { alertsOf } from './WebhookPage'

const shown = (webhook: MessageInitShape<typeof WebhookSchema>) =>
  alertsOf(create(WebhookSchema, webhook)).map(({ id, tone, detail }) => [id, tone, detail])

describe('the alerts of a webhook', () => {
  it('are none while it delivers', () => {
    expect(shown({ status: 'active', lastError: 'of an earlier attempt' })).toEqual([])
  })

  it('say that it is paused, and why', () => {
    expect(shown({ status: 'paused', pauseReason: 'moving', lastError: 'x' })).toEqual([['paused', 'amber', 'moving']])
    expect(shown({ status: 'paused' })).toEqual([['paused', 'amber', undefined]])
  })

  it('say what the receiver answered last', () => {
    const next = 'Deliveries are attempted again by themselves; send a test event when the receiver works.'
    expect(shown({ status: 'failing', lastError: 'status 500' })).toEqual([
      ['failing', 'red', `Result of the last attempt: status 500. ${next}`],
    ])
    expect(shown({ status: 'failing' })).toEqual([['failing', 'red', `Result of the last attempt: unknown. ${next}`]])
  })
})
