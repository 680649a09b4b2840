import { useQuery } from '@tanstack/react-query'
import { clients } from '../api'
import type { Run, Step } from '../gen/signalbox/v1/run_pb'
import { CopyButton, ErrorView, Skeleton, StateView } from '../kit'
import { allLogs, skippedText, streamsOf } from './logs'
import styles from './run.module.css'

/** What the attempts of a program have printed; live while one runs. */
export function LogsTab({ step, run }: { step: Step; run: Run }) {
  const open = step.endTime === undefined
  const query = useQuery({
    queryKey: ['step-logs', run.project, run.id, String(step.number), String(step.sequence)],
    queryFn: ({ signal }) =>
      allLogs((pageToken) =>
        clients.runs.listLogs({ project: run.project, id: run.id, number: step.number, pageToken }, { signal }),
      ),
    refetchInterval: open ? 1500 : false,
    placeholderData: (before) => before,
  })
  const data = query.data
  if (query.isError && data === undefined)
    return <ErrorView error={query.error} what="The logs" onRetry={() => void query.refetch()} />
  if (data === undefined) return <Skeleton rows={4} />
  return (
    <>
      {data.unknown === '' ? null : <p role="status">The log of the running program is unknown: {data.unknown}</p>}
      {data.logs.length === 0 && data.unknown === '' ? (
        <StateView kind="empty" title={open ? 'Nothing was printed yet.' : 'Nothing was printed.'}>
          Scripts, shell commands and containers that their task awaits have logs.
        </StateView>
      ) : null}
      {data.logs.map((log) => {
        const streams = streamsOf(log)
        return (
          <section key={log.attempt} aria-label={`Log of attempt ${log.attempt}`}>
            <h3 className={styles.logHead}>
              Attempt {log.attempt}
              {log.running ? ' (running)' : ''}
            </h3>
            {streams.length === 0 ? (
              <p className={styles.faint}>It printed nothing{log.running ? ' yet' : ''}.</p>
            ) : null}
            {streams.map(({ name, stream }) => (
              <div key={name}>
                <div className={styles.logName}>
                  {name} <CopyButton text={stream.text} label={`Copy the ${name.toLowerCase()}`} />
                  <span className={styles.faint}>{skippedText(stream)}</span>
                </div>
                <pre className={styles.log} tabIndex={0} aria-label={`${name} of attempt ${log.attempt}`}>
                  {stream.text}
                </pre>
              </div>
            ))}
          </section>
        )
      })}
    </>
  )
}
