import { create, type MessageInitShape } from '@bufbuild/protobuf'
import { describe, expect, it } from 'vitest'
import { DeliverySchema, EventSchema } from '../gen/signalbox/v1/event_pb'
import {
  dataText,
  dead,
  eventAlerts,
  eventOf,
  isMoving,
  isPosition,
  missingParts,
  redeliverRefusal,
  redeliverText,
  sendCommands,
} from './event'

const event = (given: MessageInitShape<typeof EventSchema> = {}) => create(EventSchema, { status: 'routed', ...given })
const deliveries = (...statuses: string[]) =>
  statuses.map((status, i) => create(DeliverySchema, { status, reason: `reason ${i}` }))

describe('the position of an event', () => {
  it.each(['1', '42', '999999999999999999'])('may be %s', (text) => {
    expect(isPosition(text)).toBe(true)
  })

  it.each(['', '0', '01', '-1', '1.5', '1e3', ' 1', 'abc', '1000000000000000000'])('cannot be %j', (text) => {
    expect(isPosition(text)).toBe(false)
  })
})

describe('a redelivery', () => {
  it('is possible where something is dead, or nothing matched', () => {
    expect(redeliverRefusal(event(), deliveries('done', 'dead'))).toBeUndefined()
    expect(redeliverRefusal(event({ status: 'unmatched' }), [])).toBeUndefined()
    expect(redeliverRefusal(event({ status: 'rejected' }), [])).toBeUndefined()
  })

  it('is refused before there is something to deliver again', () => {
    expect(redeliverRefusal(undefined, [])).toBe('The event is not loaded yet.')
    expect(redeliverRefusal(event({ status: 'pending' }), deliveries('dead'))).toBe('The event is not matched yet.')
    expect(redeliverRefusal(event(), deliveries('done', 'pending'))).toBe('No delivery is dead.')
  })

  it('says what it does', () => {
    expect(redeliverText(deliveries('dead', 'done', 'dead'))).toBe('2 dead deliveries will be tried again.')
    expect(redeliverText(deliveries('dead'))).toBe('1 dead delivery will be tried again.')
    expect(redeliverText(deliveries('done'))).toBe('The event is matched again with what is published and waits now.')
  })
})

describe('an event', () => {
  it('is about to change while it or a delivery is pending', () => {
    expect(isMoving(undefined, [])).toBe(false)
    expect(isMoving(event({ status: 'pending' }), [])).toBe(true)
    expect(isMoving(event(), deliveries('done', 'pending'))).toBe(true)
    expect(isMoving(event(), deliveries('done', 'dead'))).toBe(false)
  })

  it('has an alert for dead deliveries, and one for why it did nothing', () => {
    expect(eventAlerts(event(), deliveries('done'))).toEqual([])
    expect(
      eventAlerts(event({ status: 'unmatched', reason: 'nothing waits' }), deliveries('done', 'dead', 'dead')),
    ).toEqual([
      { id: 'dead', tone: 'red', title: '2 deliveries dead', detail: 'reason 1' },
      { id: 'reason', tone: 'amber', title: 'Unmatched', detail: 'nothing waits' },
    ])
    expect(eventAlerts(event(), deliveries('dead'))[0]?.title).toBe('1 delivery dead')
    expect(dead(deliveries('pending', 'dead', 'done')).map(({ reason }) => reason)).toEqual(['reason 1'])
  })

  it('describes data that is not JSON', () => {
    expect(dataText(event({ data: { json: '1' }, dataBase64: new Uint8Array(3) }))).toBeUndefined()
    expect(dataText(event({ dataBase64: new Uint8Array(3) }))).toBe('3 bytes of binary data')
    expect(dataText(event())).toBe('None.')
  })
})

describe('an event that is sent', () => {
  const form = { id: 'e1', type: ' com.example.order ', source: ' /shop', subject: '', data: '{"n": 1.50}' }

  it('needs a type and a source', () => {
    expect(missingParts(form)).toEqual({ type: undefined, source: undefined })
    expect(missingParts({ ...form, type: ' ', source: '' })).toEqual({
      type: 'Name the type, such as com.example.order.placed.',
      source: 'Name the source, such as /shop.',
    })
  })

  it('has its data as it was typed, and attributes without spaces at the ends', () => {
    expect(eventOf(form)).toEqual({
      id: 'e1',
      type: 'com.example.order',
      source: '/shop',
      subject: '',
      data: { json: '{"n": 1.50}' },
    })
    expect(eventOf({ ...form, data: ' \n' })).not.toHaveProperty('data')
  })

  it('can be sent by the CLI and by REST, with every digit', () => {
    const { cli, rest } = sendCommands('shop', form)
    expect(cli).toBe(
      `signalbox event send --project shop --id e1 --type com.example.order --source /shop --data '{"n": 1.50}'`,
    )
    expect(rest).toEqual({
      method: 'POST',
      path: '/v1/projects/shop/events',
      type: 'application/cloudevents+json',
      body: '{"specversion":"1.0","id":"e1","type":"com.example.order","source":"/shop","data":{"n":1.50}}',
    })
  })

  it('has no call of REST while the data is not JSON', () => {
    expect(sendCommands('shop', { ...form, data: '{' }).rest).toBeUndefined()
    expect(sendCommands('shop', { ...form, data: '' }).rest?.body).not.toContain('data')
    expect(sendCommands('shop', { ...form, subject: ' a ' }).rest?.body).toContain('"subject":"a"')
  })
})
