import { durationMilliseconds } from '../api'
import type { DispatcherLease, DispatcherOwner } from '../gen/signalbox/v1/dispatcher_pb'
import { Countdown, Id, StatusBadge } from '../kit'

/** The server ID of an owner with the number of its ownership. */
export function Owner({ owner }: { owner: DispatcherOwner | undefined }) {
  if (owner === undefined || owner.serverId === '') return <span>none</span>
  return (
    <span>
      <Id id={owner.serverId} whole />
      <br />
      epoch {String(owner.epoch)}
    </span>
  )
}

/** A lease with the time until it expires. `at` is the time of the answer, by this page's clock. */
export function Lease({ lease, at }: { lease: DispatcherLease | undefined; at: number }) {
  if (lease === undefined) return <span>no lease</span>
  const remaining = durationMilliseconds(lease.remaining)
  if (lease.state !== 'held' || remaining === undefined) return <StatusBadge of="lease" status={lease.state} />
  return (
    <span>
      expires in <Countdown at={at + remaining} />
    </span>
  )
}
