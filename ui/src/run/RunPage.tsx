import { useParams } from '@tanstack/react-router'
import { useCallback, useMemo } from 'react'
import { useRun } from '../api'
import { chosenTab, useFilters, usePageKeys } from '../app'
import { AlertSlot, ErrorView, Page, PageHead, shortId, Skeleton, Tabs } from '../kit'
import type { Run } from '../gen/signalbox/v1/run_pb'
import { useRunAlerts } from './alerts'
import { AuditTab } from './AuditTab'
import { EventsTab } from './EventsTab'
import { GraphTab } from './GraphTab'
import { JsonTab } from './JsonTab'
import { useLive, useSteps } from './live'
import { RelatedTab } from './RelatedTab'
import { RunHeader } from './RunHeader'
import { StepPane } from './StepPane'
import { nextFailure } from './steps'
import { StepsTab } from './StepsTab'
import { runTabs, withSteps } from './tabs'
import { TimelineTab } from './TimelineTab'
import { WaitsTab } from './WaitsTab'
import { buildTree, failures } from './tree'
import styles from './run.module.css'

/** One run: its state, what is wrong with it, its steps, and what can be done. */
export function RunPage() {
  const { project = '', id = '' }: { project?: string; id?: string } = useParams({ strict: false })
  const run = useRun(project, id)
  const title = run.data === undefined ? `Run ${shortId(id)}` : `${run.data.workflow} ${run.data.status} ${shortId(id)}`
  return (
    <Page title={title} fill>
      {run.data !== undefined ? (
        <Loaded key={id} run={run.data} />
      ) : (
        <>
          <PageHead title={`Run ${shortId(id)}`} />
          {run.isError ? (
            <ErrorView error={run.error} what={`Run ${id}`} onRetry={() => void run.refetch()} />
          ) : (
            <Skeleton rows={10} height={24} gap={12} />
          )}
        </>
      )}
    </Page>
  )
}

function Loaded({ run }: { run: Run }) {
  const { values, change } = useFilters(['tab', 'step', 'pane', 'only', 'q'])
  const steps = useSteps(run.project, run.id)
  useLive(run.project, run.id, run, steps.data)
  const list = useMemo(() => steps.data?.steps ?? [], [steps.data])
  const root = useMemo(() => buildTree(list), [list])
  const failed = useMemo(() => failures(root), [root])
  const selected = useMemo(() => list.find((step) => String(step.number) === values.step), [list, values.step])
  const select = useCallback(
    (step: string, pane = '') => {
      change({ step, pane })
    },
    [change],
  )
  const alerts = useRunAlerts(
    run,
    failed,
    (step) => {
      change({ step, tab: 'steps', pane: 'error', only: '', q: '' })
    },
    () => {
      change({ tab: 'waits' })
    },
  )

  const summary = steps.data?.summary ?? run.stepSummary
  const tabs = runTabs(run, values.tab)
  const tab = chosenTab(tabs, values.tab, 'steps')
  const toFailure = (by: 1 | -1) => {
    const next = nextFailure(failed, selected?.number, by)
    if (next !== undefined)
      change({
        step: String(next.number),
        pane: 'error',
        only: '',
        q: '',
        ...(withSteps.has(tab) ? {} : { tab: 'steps' }),
      })
  }
  usePageKeys({
    ...Object.fromEntries(
      tabs.map((t, i) => [
        String(i + 1),
        () => {
          change({ tab: t.id })
        },
      ]),
    ),
    n: () => {
      toFailure(1)
    },
    N: () => {
      toFailure(-1)
    },
  })

  return (
    <>
      <RunHeader run={run} failed={failed.at(-1)} />
      <AlertSlot alerts={alerts} />
      <div className={styles.tabs}>
        <Tabs tabs={tabs} value={tab} onChange={(next) => change({ tab: next })} label="Parts of the run">
          {withSteps.has(tab) ? (
            <div className={styles.split}>
              <div className={styles.left}>
                {steps.data === undefined ? (
                  steps.isError ? (
                    <ErrorView error={steps.error} what="The steps" onRetry={() => void steps.refetch()} />
                  ) : (
                    <Skeleton rows={8} height={20} gap={12} />
                  )
                ) : tab === 'steps' ? (
                  <StepsTab
                    run={run}
                    root={root}
                    failed={failed}
                    summary={summary}
                    complete={steps.data.complete}
                    selected={selected}
                    onSelect={select}
                    onFailure={toFailure}
                  />
                ) : tab === 'graph' ? (
                  <GraphTab
                    run={run}
                    root={root}
                    steps={list}
                    summary={summary}
                    selected={selected}
                    onSelect={select}
                  />
                ) : (
                  <TimelineTab
                    full={steps.data.full || !steps.data.complete}
                    run={run}
                    root={root}
                    summary={summary}
                    selected={selected}
                    onSelect={select}
                  />
                )}
              </div>
              {selected === undefined ? null : (
                <StepPane key={String(selected.number)} step={selected} run={run} onClose={() => select('')} />
              )}
            </div>
          ) : null}
          {tab === 'events' ? <EventsTab run={run} /> : null}
          {tab === 'related' ? <RelatedTab run={run} /> : null}
          {tab === 'audit' ? <AuditTab run={run} /> : null}
          {tab === 'json' ? <JsonTab run={run} /> : null}
          {tab === 'waits' ? <WaitsTab run={run} /> : null}
        </Tabs>
      </div>
    </>
  )
}
