import { milliseconds, printJson, readJson } from '../api'
import type { Webhook, WebhookDelivery } from '../gen/signalbox/v1/webhook_pb'
import { formatCountdown } from '../kit'

export const formats: Record<string, string> = {
  cloudevents: 'CloudEvents',
  alertmanager: 'Alertmanager',
  pagerduty: 'PagerDuty',
  slack: 'Slack',
}

/** The key of all that is read of the webhooks of a project: a change of one makes all of it old. */
export const webhooksKey = (project: string) => ['webhooks', project]

/** lastResult says what became of the last attempt; "none yet" before the first. */
export const lastResult = ({ lastError, lastSuccessTime }: Webhook): string =>
  lastError !== '' ? lastError : lastSuccessTime === undefined ? 'none yet' : 'accepted'

/** typesOf reads the types of a filter from lines or a list with commas. */
export const typesOf = (text: string): string[] => text.split(/[\s,]+/).filter((type) => type !== '')

/** typeInWords prints a type of a filter: that of all events as a word. */
export const typeInWords = (type: string): string => (type === '*' ? 'all' : type)

/** resultOf says what became of the last attempt of a delivery. */
export const resultOf = ({ status, attempts, reason, httpStatus }: WebhookDelivery): string =>
  reason !== ''
    ? reason
    : attempts === 0
      ? 'not attempted yet'
      : status === 'delivered'
        ? `accepted with ${httpStatus}`
        : 'unknown'

/** nextAttempt says when a delivery is attempted next: in some time, now, when its webhook is unpaused, or not at all. */
export function nextAttempt({ status, nextTime }: WebhookDelivery, now: number): string {
  if (status !== 'pending') return '–'
  const next = milliseconds(nextTime)
  if (next === undefined) return 'after the pause'
  return next <= now ? 'now' : `in ${formatCountdown(next - now)}`
}

/** shortDelivery prints the beginning and the end of the ID of a delivery, which begins with its kind. */
export const shortDelivery = (id: string): string => (id.length > 16 ? `${id.slice(0, 10)}…${id.slice(-4)}` : id)

/** testResult says what the receiver answered to a test event. */
export const testResult = (delivery: WebhookDelivery | undefined): { text: string; tone: 'normal' | 'error' } =>
  delivery?.status === 'delivered'
    ? { text: `The receiver accepted the test event with ${delivery.httpStatus}.`, tone: 'normal' }
    : {
        text: `The receiver did not accept the test event: ${delivery?.reason ?? 'the reason is not known'}`,
        tone: 'error',
      }

/** pretty prints JSON with indents; a text that is not JSON stays as it is. */
export function pretty(json: string): string {
  try {
    return printJson(readJson(json), 2)
  } catch {
    return json
  }
}
