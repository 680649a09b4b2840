import type { Json } from '../api'
import { readJson } from '../api'
import type { Delivery, Event } from '../gen/signalbox/v1/event_pb'
import { type Alert, command, inWords, plural, type Rest, restCall } from '../kit'

/** isPosition reports whether a text is the position of an event: a number from 1 of at most 18 digits. */
export const isPosition = (text: string): boolean => /^[1-9]\d{0,17}$/.test(text)

/** dead returns the deliveries that are not attempted any more. */
export const dead = (deliveries: Delivery[]): Delivery[] => deliveries.filter((d) => d.status === 'dead')

/** isMoving reports whether an event or one of its deliveries is about to change. */
export const isMoving = (event: Event | undefined, deliveries: Delivery[]): boolean =>
  event?.status === 'pending' || deliveries.some((d) => d.status === 'pending')

/** redeliverRefusal returns why an event cannot be delivered again; undefined if it can. */
export function redeliverRefusal(event: Event | undefined, deliveries: Delivery[]): string | undefined {
  if (event === undefined) return 'The event is not loaded yet.'
  if (event.status === 'pending') return 'The event is not matched yet.'
  return event.status === 'routed' && dead(deliveries).length === 0 ? 'No delivery is dead.' : undefined
}

/** redeliverText says what a redelivery does. */
export function redeliverText(deliveries: Delivery[]): string {
  const count = dead(deliveries).length
  return count > 0
    ? `${plural(count, 'dead delivery', 'dead deliveries')} will be tried again.`
    : 'The event is matched again with what is published and waits now.'
}

/** eventAlerts returns why an event did not do what it could. */
export function eventAlerts(event: Event, deliveries: Delivery[]): Alert[] {
  const alerts: Alert[] = []
  const [first, ...others] = dead(deliveries)
  if (first !== undefined)
    alerts.push({
      id: 'dead',
      tone: 'red',
      title: `${plural(others.length + 1, 'delivery', 'deliveries')} dead`,
      detail: first.reason,
    })
  if (event.reason !== '')
    alerts.push({ id: 'reason', tone: 'amber', title: inWords(event.status), detail: event.reason })
  return alerts
}

/** dataText describes data that is no JSON; undefined for data that is. */
export const dataText = ({ data, dataBase64 }: Event): string | undefined => {
  if (data !== undefined) return undefined
  return dataBase64.length > 0 ? `${dataBase64.length} bytes of binary data` : 'None.'
}

/** An event as it is written in the form. */
export interface EventForm {
  id: string
  type: string
  source: string
  subject: string
  data: string
}

/** trimmed returns the form without spaces at the ends of its attributes; the data stays as it is, and blank data is none. */
const trimmed = ({ id, type, source, subject, data }: EventForm): EventForm => ({
  id,
  type: type.trim(),
  source: source.trim(),
  subject: subject.trim(),
  data: data.trim() === '' ? '' : data,
})

/** missingParts returns what must be filled in before an event can be sent. */
export function missingParts(form: EventForm): { type: string | undefined; source: string | undefined } {
  const { type, source } = trimmed(form)
  return {
    type: type === '' ? 'Name the type, such as com.example.order.placed.' : undefined,
    source: source === '' ? 'Name the source, such as /shop.' : undefined,
  }
}

/** eventOf returns the event of a form as a request has it. */
export function eventOf(form: EventForm) {
  const { data, ...attributes } = trimmed(form)
  return { ...attributes, ...(data === '' ? {} : { data: { json: data } }) }
}

/** sendCommands returns how to send an event without the page; no call of REST while the data is not JSON. */
export function sendCommands(project: string, form: EventForm): { cli: string; rest: Rest | undefined } {
  const { data, ...attributes } = trimmed(form)
  const cli = command(['event', 'send'], { project, ...attributes, data })
  let value: Json | undefined
  try {
    value = data === '' ? undefined : readJson(data)
  } catch {
    return { cli, rest: undefined }
  }
  const { subject } = attributes
  const event = {
    project,
    specversion: '1.0',
    ...attributes,
    subject: subject === '' ? undefined : subject,
    data: value,
  }
  return {
    cli,
    rest: { ...restCall('POST', '/v1/projects/{project}/events', event), type: 'application/cloudevents+json' },
  }
}
