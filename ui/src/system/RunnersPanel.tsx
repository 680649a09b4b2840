import { milliseconds } from '../api'
import type { GetStatusResponse, Runner } from '../gen/signalbox/v1/system_pb'
import { Ago, orDash, Panel, Table } from '../kit'

/** The runners of the projects that permit programs, as Temporal lists them; nothing where no project permits any. */
export function RunnersPanel({ status }: { status: GetStatusResponse }) {
  if (status.runners.length === 0 && status.runnersError === '') return null
  return (
    <Panel title="Runners of projects that permit programs" flush={status.runners.length > 0}>
      {status.runnersError === '' ? null : `Not known: ${status.runnersError}`}
      {status.runners.length === 0 ? null : (
        <Table heads={['Project', 'Permits', 'Runner', 'Polling', 'Last poll', 'Executes', 'Error']} label="Runners">
          {status.runners.flatMap((queue) => {
            const head = (
              <>
                <td>{queue.project}</td>
                <td>{queue.kinds.join(', ')}</td>
              </>
            )
            if (queue.runners.length === 0)
              return (
                <tr key={queue.project}>
                  {head}
                  <td>{queue.error === '' ? 'none: programs wait' : 'unknown'}</td>
                  <td>{queue.error === '' ? 'no' : 'unknown'}</td>
                  <td>{queue.error === '' ? 'none known' : 'unknown'}</td>
                  <td>–</td>
                  <td>{orDash(queue.error)}</td>
                </tr>
              )
            return queue.runners.map((runner) => (
              <tr key={`${queue.project} ${runner.serverId}`}>
                {head}
                <td className="mono">{runner.serverId}</td>
                <td>{runner.polling ? 'yes' : 'no'}</td>
                <td>
                  <Ago at={milliseconds(runner.lastPollTime)} />
                </td>
                <td>{executed(runner)}</td>
                <td>–</td>
              </tr>
            ))
          })}
          {status.moreRunners ? (
            <tr>
              <td colSpan={7}>More projects permit programs; their runners were not read.</td>
            </tr>
          ) : null}
        </Table>
      )}
    </Panel>
  )
}

/** The kinds of programs that a runner executes, with their isolation. */
function executed(runner: Runner): string {
  const kinds = Object.keys(runner.isolations).sort()
  return kinds.length === 0
    ? 'unknown'
    : kinds.map((kind) => (runner.isolations[kind] === kind ? kind : `${kind} (${runner.isolations[kind]})`)).join(', ')
}

/** The runners that execute programs without isolation. */
export function notIsolated(status: GetStatusResponse): string[] {
  const open = status.runners
    .flatMap((queue) => queue.runners)
    .filter((runner) => Object.values(runner.isolations).includes('none'))
  return [...new Set(open.map((runner) => runner.serverId))]
}
