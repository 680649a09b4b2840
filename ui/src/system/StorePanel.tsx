import type { StoreFacts } from '../gen/signalbox/v1/system_pb'
import { durationText, Facts, formatBytes, Panel } from '../kit'
import { databaseText, poolText, schemaText } from './words'

/** The database as this server uses it. A fact that could not be read is unknown, with the reason. */
export function StorePanel({ store: s }: { store: StoreFacts | undefined }) {
  if (s === undefined) return <Panel title="Store">Unknown: the server did not report its database.</Panel>
  return (
    <Panel title="Store">
      <Facts
        facts={[
          ['Database', databaseText(s)],
          [
            'Location',
            <span key="l" className="mono">
              {s.location}
            </span>,
          ],
          ['Schema', schemaText(s)],
          ['Size', s.bytes === undefined ? 'unknown' : formatBytes(Number(s.bytes))],
          ['Answers in', durationText(s.latency)],
          ...s.pools.map((pool): [string, string] => [
            pool.name === 'all' ? 'Connections' : `Connections to ${pool.name}`,
            poolText(pool),
          ]),
          s.error === '' ? undefined : ['Unknown because', s.error],
        ]}
      />
    </Panel>
  )
}
