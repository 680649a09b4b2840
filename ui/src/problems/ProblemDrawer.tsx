import { lazy, Suspense, useState } from 'react'
import { milliseconds } from '../api'
import { RunId } from '../app'
import type { Problem } from '../gen/signalbox/v1/problem_pb'
import { Ago, Button, command, CopyCommand, Drawer, Facts, formatCount, inWords, Marked, plural, Time } from '../kit'
import { leftRuns } from './action'
import { ActionMenu } from './ActionMenu'
import { KindBadge, runsOf, Series, title, versions, where } from './problem'
import styles from './problems.module.css'

const ReplayGroup = lazy(async () => ({ default: (await import('../runs/ReplayGroup')).ReplayGroup }))

/** One problem: what, since when, why, what to do, and its runs. */
export function ProblemDrawer({
  problem: p,
  onClose,
  onRuns,
}: {
  problem: Problem
  onClose: () => void
  onRuns: (to: string, search: Record<string, string>) => void
}) {
  const runs = runsOf(p)
  const [replaying, setReplaying] = useState(false)
  const left = leftRuns(p)
  return (
    <Drawer title={title(p)} open onClose={onClose}>
      <div className={styles.drawer}>
        <div className={styles.line}>
          <KindBadge problem={p} /> <code>{p.code}</code> <CopyCommand cli={command(['problem', 'show', p.id])} />
        </div>
        {p.detail === '' ? null : (
          <p>
            <Marked text={p.detail} />
          </p>
        )}
        {p.advice === '' ? null : (
          <p className={styles.advice}>
            <Marked text={p.advice} />
          </p>
        )}
        <Facts
          facts={[
            ['Where', where(p)],
            p.versions.length === 0 ? undefined : ['Versions', versions(p)],
            ['State', inWords(p.state)],
            [
              'Since',
              <span key="s">
                <Time at={milliseconds(p.firstTime)} unknown="unknown" /> (<Ago at={milliseconds(p.firstTime)} />)
              </span>,
            ],
            ['Last seen', <Ago key="l" at={milliseconds(p.lastTime)} />],
            p.cause === ''
              ? undefined
              : ['Cause', /^[a-z_]+$/i.test(p.cause) ? inWords(p.cause) : <code key="c">{p.cause}</code>],
            p.count === undefined
              ? undefined
              : [p.state === 'resolved' ? 'Count, at last' : 'Count', formatCount(p.count, p.more)],
            p.notReplayed === undefined ? undefined : ['Without a replay', formatCount(left, left > 0n && p.more)],
            p.series === undefined ? undefined : ['Over time', <Series key="o" series={p.series} />],
            ['Owner', p.owner === '' ? 'none' : p.owner],
            p.acknowledgeTime === undefined
              ? undefined
              : [
                  'Acknowledged',
                  <span key="a">
                    <Time at={milliseconds(p.acknowledgeTime)} /> by {p.acknowledger}
                  </span>,
                ],
            p.snoozeUntil === undefined
              ? undefined
              : ['Snoozed until', <Time key="u" at={milliseconds(p.snoozeUntil)} />],
            p.snoozeCount === 0n ? undefined : ['Snoozed until there are', formatCount(p.snoozeCount)],
            p.runbook === ''
              ? undefined
              : [
                  'Runbook',
                  <a
                    key="r"
                    href={`https://github.com/signalbox-dev/signalbox/blob/main/${p.runbook}`}
                    target="_blank"
                    rel="noreferrer"
                  >
                    {p.runbook}
                  </a>,
                ],
          ]}
        />
        {p.note === '' ? null : <p className={styles.note}>{p.note}</p>}
        <div className={styles.line}>
          <ActionMenu problem={p} />
          {runs === undefined ? null : (
            <Button onClick={() => onRuns(runs.to, runs.search)}>
              {left > 0n ? 'Runs without a replay' : 'Its runs'}
            </Button>
          )}
          {left > 0n ? (
            <Button kind="primary" onClick={() => setReplaying(true)}>
              Replay {p.more ? `${formatCount(left)}+ runs` : plural(left, 'run')}…
            </Button>
          ) : null}
        </div>
        {p.samples.length === 0 ? null : (
          <section>
            <h3>Newest runs</h3>
            <ul>
              {p.samples.map((id) => (
                <li key={id}>
                  <RunId project={p.project} id={id} />
                </li>
              ))}
            </ul>
          </section>
        )}
      </div>
      {replaying ? (
        <Suspense fallback={null}>
          <ReplayGroup project={p.project} group={p.failureGroup} onClose={() => setReplaying(false)} />
        </Suspense>
      ) : null}
    </Drawer>
  )
}
