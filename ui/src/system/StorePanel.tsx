import { durationMilliseconds } from '../api'
import type { StoreFacts } from '../gen/signalbox/v1/system_pb'
import { Facts, formatBytes, formatCount, formatDuration, Panel, plural } from '../kit'

/** The database as this server uses it. A fact that could not be read is unknown, with the reason. */
export function StorePanel({ store: s }: { store: StoreFacts | undefined }) {
  if (s === undefined) return <Panel title="Store">Unknown: the server did not report its database.</Panel>
  const latency = durationMilliseconds(s.latency)
  return (
    <Panel title="Store">
      <Facts
        facts={[
          [
            'Database',
            `${s.driver === 'postgres' ? 'Postgres' : s.driver === 'sqlite' ? 'SQLite' : s.driver} ${s.version === '' ? 'of unknown version' : s.version}`,
          ],
          [
            'Location',
            <span key="l" className="mono">
              {s.location}
            </span>,
          ],
          ['Schema', `${s.schema === undefined ? 'unknown' : String(s.schema)}, required ${String(s.requiredSchema)}`],
          ['Size', s.bytes === undefined ? 'unknown' : formatBytes(Number(s.bytes))],
          ['Answers in', latency === undefined ? 'unknown' : formatDuration(latency)],
          ...s.pools.map((pool): [string, string] => [
            pool.name === 'all' ? 'Connections' : `Connections to ${pool.name}`,
            `${formatCount(pool.inUse)} of ${pool.limit === 0n ? 'no limit' : formatCount(pool.limit)} in use, ${plural(pool.waits, 'wait')}`,
          ]),
          s.error === '' ? undefined : ['Unknown because', s.error],
        ]}
      />
    </Panel>
  )
}
