import { create } from '@bufbuild/protobuf'
import { describe, expect, it } from 'vitest'
import { WebhookDeliverySchema, WebhookSchema } from '../gen/signalbox/v1/webhook_pb'
import { lastResult, resultOf, typeInWords, typesOf } from './words'

describe('the words of webhooks', () => {
  it('say what became of the last attempt, and that there was none', () => {
    expect(lastResult(create(WebhookSchema, {}))).toBe('none yet')
    expect(lastResult(create(WebhookSchema, { lastSuccessTime: { seconds: 1n } }))).toBe('accepted')
    expect(lastResult(create(WebhookSchema, { lastSuccessTime: { seconds: 1n }, lastError: 'answered 503' }))).toBe(
      'answered 503',
    )
  })

  it('say what became of a delivery', () => {
    expect(resultOf(create(WebhookDeliverySchema, { status: 'pending' }))).toBe('not attempted yet')
    expect(resultOf(create(WebhookDeliverySchema, { status: 'pending', attempts: 1, reason: 'timeout' }))).toBe(
      'timeout',
    )
    expect(resultOf(create(WebhookDeliverySchema, { status: 'delivered', attempts: 2, httpStatus: 202 }))).toBe(
      'accepted with 202',
    )
    expect(resultOf(create(WebhookDeliverySchema, { status: 'dead', attempts: 2 }))).toBe('unknown')
  })

  it('read types from lines and lists', () => {
    expect(typesOf(' com.example.*\n\nio.signalbox.run.failed, a ')).toEqual([
      'com.example.*',
      'io.signalbox.run.failed',
      'a',
    ])
    expect(['*', 'a.*'].map(typeInWords)).toEqual(['all', 'a.*'])
  })
})
