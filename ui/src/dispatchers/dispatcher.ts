import { durationMilliseconds } from '../api'
import type { Dispatcher, DispatcherProgress, PlanItem } from '../gen/signalbox/v1/dispatcher_pb'
import { type Alert, formatDuration, inWords, plural } from '../kit'

const sound = new Set(['routing', 'parked'])

/** alerts returns why events may not be delivered. */
export function alerts(d: Dispatcher): Alert[] {
  const list: Alert[] = []
  if (!sound.has(d.state))
    list.push({
      id: 'state',
      tone: d.state === 'unknown' || d.state === 'foreign' ? 'amber' : 'red',
      title: inWords(d.state),
      detail: d.detail === '' ? 'The server gives no explanation.' : d.detail,
    })
  const owners = [d.lease?.owner, d.progress?.owner, d.execution?.owner].filter(
    (o) => o !== undefined && o.serverId !== '',
  )
  if (new Set(owners.map((o) => `${o?.serverId ?? ''} ${String(o?.epoch ?? 0n)}`)).size > 1) {
    list.push({
      id: 'owners',
      tone: 'amber',
      title: 'The lease, the inbox and the execution name different owners.',
      detail:
        'This lasts for seconds while ownership changes. Only the owner that the inbox names can deliver; the others are refused.',
    })
  }
  return list
}

/** lagText prints how long the oldest event that is not routed waits; `none` stands for no such event. */
export function lagText(progress: DispatcherProgress | undefined, none: string): string {
  const lag = durationMilliseconds(progress?.lag)
  if (lag === undefined) return 'unknown'
  return lag === 0 ? none : formatDuration(lag)
}

/** planRefusal returns why a plan cannot be applied: it is not known, or has nothing to do. */
export const planRefusal = (items: PlanItem[] | undefined): string | undefined => {
  if (items === undefined) return 'The plan is not known yet.'
  return items.length === 0 ? 'There is nothing to do.' : undefined
}

/** planResult says what became of a plan that was applied. */
export function planResult(items: PlanItem[]): { text: string; tone: 'normal' | 'error' } {
  const failed = items.filter((item) => item.error !== '')
  return failed.length === 0
    ? { text: `Applied ${plural(items.length, 'action')}.`, tone: 'normal' }
    : { text: `${plural(failed.length, 'action')} failed: ${failed[0]?.error ?? ''}`, tone: 'error' }
}
