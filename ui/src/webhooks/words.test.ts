import { create } from '@bufbuild/protobuf'
import { describe, expect, it } from 'vitest'
import { WebhookDeliverySchema, WebhookSchema } from '../gen/signalbox/v1/webhook_pb'
import { lastResult, nextAttempt, pretty, resultOf, shortDelivery, testResult, typeInWords, typesOf } from './words'

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

describe('the next attempt of a delivery', () => {
  const next = (status: string, seconds?: number) =>
    nextAttempt(
      create(WebhookDeliverySchema, {
        status,
        ...(seconds === undefined ? {} : { nextTime: { seconds: BigInt(seconds) } }),
      }),
      10_000,
    )

  it('is counted down to, and due from then on', () => {
    expect(next('pending', 75)).toBe('in 1:05')
    expect(next('pending', 10)).toBe('now')
    expect(next('pending', 3)).toBe('now')
  })

  it('is after the pause of its webhook where it has no time', () => {
    expect(next('pending')).toBe('after the pause')
  })

  it.each(['delivered', 'dead'])('is none of one that is %s', (status) => {
    expect(next(status, 75)).toBe('–')
  })
})

describe('a test event', () => {
  it('says what the receiver answered', () => {
    expect(testResult(create(WebhookDeliverySchema, { status: 'delivered', httpStatus: 204 }))).toEqual({
      text: 'The receiver accepted the test event with 204.',
      tone: 'normal',
    })
    expect(testResult(create(WebhookDeliverySchema, { status: 'pending', reason: 'timeout' }))).toEqual({
      text: 'The receiver did not accept the test event: timeout',
      tone: 'error',
    })
    expect(testResult(undefined).text).toBe('The receiver did not accept the test event: the reason is not known')
  })
})

describe('a delivery', () => {
  it('has an ID that is shortened after its kind', () => {
    expect(shortDelivery('msg_0123456789ab')).toBe('msg_0123456789ab')
    expect(shortDelivery('msg_0123456789abc')).toBe('msg_012345…9abc')
  })

  it('has an event that is indented, with every digit, or shown as it is', () => {
    expect(pretty('{"n":1.50}')).toBe('{\n  "n": 1.50\n}')
    expect(pretty('not JSON')).toBe('not JSON')
  })
})
