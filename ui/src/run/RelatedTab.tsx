import { milliseconds, useRun } from '../api'
import { RunId } from '../app'
import { Elapsed, ErrorView, Skeleton, StateView, StatusBadge, Time } from '../kit'
import type { Run } from '../gen/signalbox/v1/run_pb'
import styles from './run.module.css'
import { related } from './tabs'

/** The runs that this one is linked to: parent, original, replays, children. */
export function RelatedTab({ run }: { run: Run }) {
  const list = related(run)
  if (list.length === 0)
    return (
      <StateView kind="empty" title="No related runs.">
        The run has no parent, starts no other run, and is no replay and was not replayed.
      </StateView>
    )
  return (
    <div className={styles.related}>
      <ul>
        {list.map((item) => (
          <Related key={`${item.what} ${item.id}`} project={run.project} {...item} />
        ))}
      </ul>
      {run.children.length >= 100 ? <p className={styles.faint}>The newest 100 children are listed.</p> : null}
      {run.replays.length >= 20 ? <p className={styles.faint}>The newest 20 replays are listed.</p> : null}
    </div>
  )
}

function Related({ project, id, what }: { project: string; id: string; what: string }) {
  const run = useRun(project, id, 10_000)
  return (
    <li className={styles.relatedRow}>
      <span className={styles.what}>{what}</span>
      <RunId project={project} id={id} />
      {run.isError ? (
        <ErrorView error={run.error} what="This run" />
      ) : run.data === undefined ? (
        <Skeleton />
      ) : (
        <>
          <StatusBadge of="run" status={run.data.status} detail={run.data.queuedReason || run.data.waitingKind} />
          <span>
            {run.data.workflow}@{run.data.version}
          </span>
          <span className={styles.faint}>
            <Time at={milliseconds(run.data.createTime)} />
          </span>
          <span className={styles.faint}>
            <Elapsed from={milliseconds(run.data.startTime)} to={milliseconds(run.data.endTime)} />
          </span>
        </>
      )}
    </li>
  )
}
