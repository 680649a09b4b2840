import { useNow } from '../api'
import type { WebhookDelivery } from '../gen/signalbox/v1/webhook_pb'
import { nextAttempt } from './words'

/** When a delivery is attempted next, renewed each second. */
export const NextAttempt = ({ delivery }: { delivery: WebhookDelivery }) => (
  <span>{nextAttempt(delivery, useNow(delivery.status === 'pending'))}</span>
)
