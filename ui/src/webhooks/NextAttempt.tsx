import { milliseconds, useNow } from '../api'
import type { WebhookDelivery } from '../gen/signalbox/v1/webhook_pb'
import { formatCountdown } from '../kit'

/** When a delivery is attempted next: in some time, now, when its webhook is unpaused, or not at all. */
export function NextAttempt({ delivery: { status, nextTime } }: { delivery: WebhookDelivery }) {
  const time = useNow(status === 'pending')
  if (status !== 'pending') return <span>–</span>
  const next = milliseconds(nextTime)
  if (next === undefined) return <span>after the pause</span>
  return <span>{next <= time ? 'now' : `in ${formatCountdown(next - time)}`}</span>
}
