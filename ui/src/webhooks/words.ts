import type { Webhook, WebhookDelivery } from '../gen/signalbox/v1/webhook_pb'

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
