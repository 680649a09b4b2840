import { useQuery, useQueryClient } from '@tanstack/react-query'
import { Link, useParams } from '@tanstack/react-router'
import { useState } from 'react'
import { useRefusal } from '../app'
import { clients, milliseconds } from '../api'
import type { ProgramLimits, Project } from '../gen/signalbox/v1/project_pb'
import type { GetQuotaResponse } from '../gen/signalbox/v1/quota_pb'
import {
  ActionDialog,
  Button,
  Checkbox,
  command,
  Countdown,
  durationText,
  ErrorView,
  Facts,
  formatBytes,
  formatCount,
  formatDuration,
  orDash,
  Page,
  PageHead,
  Panel,
  plural,
  restCall,
  Skeleton,
  TextField,
  Time,
  toast,
  useLinkRefusal,
} from '../kit'
import { quotaRefusal, stepsRefusal } from './limits'
import { Use } from './Use'

type DialogName = '' | 'settings' | 'quota' | 'resume'

/** One project: its settings, and its quota with its use. */
export function ProjectPage() {
  const { name = '' }: { name?: string } = useParams({ strict: false })
  const [dialog, setDialog] = useState<DialogName>('')
  const refusal = useRefusal()
  const offline = useLinkRefusal()
  const query = useQuery({
    queryKey: ['project', name],
    queryFn: ({ signal }) => clients.projects.getProject({ name }, { signal }),
  })
  const quota = useQuery({
    queryKey: ['quota', name],
    queryFn: ({ signal }) => clients.quotas.getQuota({ project: name }, { signal }),
    refetchInterval: 5000,
  })
  const project = query.data?.project
  const admin = offline ?? refusal('admin', name)
  const close = () => {
    setDialog('')
  }
  return (
    <Page title={`Project ${name}`}>
      <PageHead
        title={
          <>
            <Link to="/projects">Projects</Link> / {name}
          </>
        }
        actions={
          <Link to="/p/$project/runs" params={{ project: name }}>
            Runs of {name}
          </Link>
        }
      />
      {query.isError && project === undefined ? (
        <ErrorView error={query.error} what={`Project ${name}`} onRetry={() => void query.refetch()} />
      ) : project === undefined ? (
        <Skeleton rows={8} />
      ) : (
        <Panel
          title="Settings"
          actions={
            <Button refused={admin} onClick={() => setDialog('settings')}>
              Change…
            </Button>
          }
        >
          <Facts
            facts={[
              ['Description', orDash(project.description)],
              [
                'Task queue',
                <span key="q" className="mono">
                  {project.taskQueue}
                </span>,
              ],
              ['Created', <Time key="t" at={milliseconds(project.createTime)} />],
              [
                'Parked since',
                project.parkTime === undefined ? 'not parked' : <Time key="p" at={milliseconds(project.parkTime)} />,
              ],
              [
                'Steps of one run at most',
                project.settings === undefined
                  ? 'unknown'
                  : project.settings.maxSteps === 0n
                    ? 'the limit of the servers'
                    : formatCount(project.settings.maxSteps),
              ],
              ['Programs', programs(project.settings?.runners ?? [])],
              [
                'Images of containers',
                project.settings === undefined
                  ? 'unknown'
                  : project.settings.images.join(', ') || 'any that the runner permits',
              ],
              ['Limits of programs', limits(project.settings?.programLimits)],
              ['Poison runs', project.settings?.endPoison ? 'are terminated' : 'are only reported'],
            ]}
          />
        </Panel>
      )}
      {query.isError && project === undefined ? null : quota.isError && quota.data === undefined ? (
        <ErrorView error={quota.error} what={`The quota of ${name}`} onRetry={() => void quota.refetch()} />
      ) : quota.data === undefined ? (
        <Skeleton rows={4} />
      ) : (
        <Quota
          quota={quota.data}
          admin={admin}
          operator={offline ?? refusal('operator', name)}
          onSet={() => setDialog('quota')}
          onResume={() => setDialog('resume')}
        />
      )}
      <Webhooks project={name} />
      {dialog === 'settings' && project !== undefined ? <SettingsDialog project={project} onClose={close} /> : null}
      {dialog === 'quota' && quota.data !== undefined ? (
        <QuotaDialog project={name} quota={quota.data} onClose={close} />
      ) : null}
      {dialog === 'resume' ? <ResumeDialog project={name} onClose={close} /> : null}
    </Page>
  )
}

function Quota({
  quota: q,
  admin,
  operator,
  onSet,
  onResume,
}: {
  quota: GetQuotaResponse
  admin: string | undefined
  operator: string | undefined
  onSet: () => void
  onResume: () => void
}) {
  const period = Number(q.quota?.periodSeconds ?? 0n)
  return (
    <Panel
      title="Quota"
      actions={
        <>
          <Button
            refused={operator ?? (q.waitingRuns === 0n ? 'No run waits for the next period.' : undefined)}
            onClick={onResume}
          >
            Resume waiting runs…
          </Button>
          <Button refused={admin} onClick={onSet}>
            Change…
          </Button>
        </>
      }
    >
      <Facts
        facts={[
          ['Concurrent runs', <Use key="c" used={q.admittedRuns} limit={q.quota?.concurrentRuns ?? 0n} />],
          ['Queued for a slot', formatCount(q.queuedRuns)],
          [
            period === 0 ? 'Steps' : `Steps per ${formatDuration(period * 1000)}`,
            <Use key="s" used={q.usedSteps} limit={q.quota?.steps ?? 0n} />,
          ],
          ['Wait for the next period', formatCount(q.waitingRuns)],
          q.resetTime === undefined
            ? undefined
            : [
                'Next period',
                <span key="r">
                  in <Countdown at={milliseconds(q.resetTime)} />
                </span>,
              ],
        ]}
      />
    </Panel>
  )
}

/** How many webhooks the project has, and how many do not deliver. */
function Webhooks({ project }: { project: string }) {
  const query = useQuery({
    queryKey: ['webhooks', project],
    queryFn: ({ signal }) => clients.webhooks.listWebhooks({ project }, { signal }),
    refetchInterval: 15_000,
  })
  const list = query.data?.webhooks
  if (list === undefined) return query.isError ? null : <Skeleton rows={2} />
  const count = (status: string) => list.filter((w) => w.status === status).length
  return (
    <Panel
      title="Webhooks"
      actions={
        <Link to="/p/$project/webhooks" params={{ project }}>
          Open
        </Link>
      }
    >
      {list.length === 0 ? (
        'None: events are not sent to other systems.'
      ) : (
        <Facts
          facts={[
            ['Active', formatCount(count('active'))],
            ['Failing', formatCount(count('failing'))],
            ['Paused', formatCount(count('paused'))],
          ]}
        />
      )}
    </Panel>
  )
}

// PROGRAMS are the kinds of programs that a project may permit, and how they are called.
const PROGRAMS: readonly (readonly [string, string])[] = [
  ['script', 'scripts'],
  ['shell', 'shell commands'],
  ['container', 'containers'],
]

// programs describes the permitted kinds of programs.
function programs(kinds: readonly string[]): string {
  const permitted = PROGRAMS.filter(([kind]) => kinds.includes(kind)).map(([, label]) => label)
  return permitted.length === 0 ? 'only those that the servers permit' : permitted.join(', ') + ' are permitted'
}

/** The limits of the programs of a project, as `signalbox project set --program-limits` has them. */
function limits(of: ProgramLimits | undefined): string {
  if (of === undefined) return 'those of the runner'
  return [
    of.memoryBytes > 0n && `${formatBytes(Number(of.memoryBytes))} of memory`,
    of.processes > 0 && plural(of.processes, 'process', 'processes'),
    of.processors > 0 && `${of.processors} of the time of a processor`,
    of.diskBytes > 0n && `${formatBytes(Number(of.diskBytes))} of files`,
    of.outputBytes > 0n && `${formatBytes(Number(of.outputBytes))} of output`,
    of.time !== undefined && durationText(of.time),
    of.network !== '' && `network ${of.network}`,
  ]
    .filter((limit) => limit !== false)
    .join(', ')
}

function SettingsDialog({ project, onClose }: { project: Project; onClose: () => void }) {
  const [description, setDescription] = useState(project.description)
  const [steps, setSteps] = useState(String(project.settings?.maxSteps ?? 0n))
  const [endPoison, setEndPoison] = useState(project.settings?.endPoison ?? false)
  const [kinds, setKinds] = useState(project.settings?.runners ?? [])
  const queries = useQueryClient()
  return (
    <ActionDialog
      title={`Settings of ${project.name}`}
      description="They apply to runs from their next step on."
      action="Save"
      reason="none"
      refused={stepsRefusal(steps)}
      run={() =>
        clients.projects.updateProject({
          name: project.name,
          description,
          maxSteps: BigInt(steps),
          endPoison,
          runners: { kinds },
        })
      }
      cli={() =>
        command(['project', 'set', project.name, `--end-poison=${String(endPoison)}`], {
          description,
          'max-steps': steps,
          runners: kinds.join(',') || 'none',
        })
      }
      rest={() =>
        restCall('PATCH', '/v1/projects/{name}', {
          name: project.name,
          description,
          maxSteps: steps,
          endPoison,
          runners: { kinds },
        })
      }
      onDone={() => {
        toast('Saved.')
        void queries.invalidateQueries({ queryKey: ['project', project.name] })
        onClose()
      }}
      onClose={onClose}
    >
      <TextField label="Description" value={description} onChange={(e) => setDescription(e.target.value)} />
      <TextField
        label="Steps of one run at most"
        inputMode="numeric"
        value={steps}
        onChange={(e) => setSteps(e.target.value)}
        hint="0 means the limit of the servers, which also applies if it is lower."
      />
      <Checkbox
        label="Terminate poison runs"
        hint="Runs whose task crashes workers again and again."
        checked={endPoison}
        onChange={(e) => setEndPoison(e.target.checked)}
      />
      {PROGRAMS.map(([kind, label]) => (
        <Checkbox
          key={kind}
          label={`Permit ${label}`}
          hint={`Tasks with run: ${kind}, on a runner.`}
          checked={kinds.includes(kind)}
          onChange={(e) =>
            setKinds(PROGRAMS.map(([k]) => k).filter((k) => (k === kind ? e.target.checked : kinds.includes(k))))
          }
        />
      ))}
    </ActionDialog>
  )
}

function QuotaDialog({ project, quota, onClose }: { project: string; quota: GetQuotaResponse; onClose: () => void }) {
  const [runs, setRuns] = useState(String(quota.quota?.concurrentRuns ?? 0n))
  const [steps, setSteps] = useState(String(quota.quota?.steps ?? 0n))
  const [period, setPeriod] = useState(String(quota.quota?.periodSeconds ?? 0n))
  const queries = useQueryClient()
  return (
    <ActionDialog
      title={`Quota of ${project}`}
      description="Runs over the quota wait; none is refused or lost."
      action="Save"
      reason="none"
      refused={quotaRefusal(runs, steps, period)}
      run={() =>
        clients.quotas.setQuota({
          project,
          quota: { concurrentRuns: BigInt(runs), steps: BigInt(steps), periodSeconds: BigInt(period) },
        })
      }
      cli={() => command(['quota', 'set'], { project, 'concurrent-runs': runs, steps, period: `${period}s` })}
      rest={() =>
        restCall('PUT', '/v1/projects/{project}/quota', {
          project,
          quota: { concurrentRuns: runs, steps, periodSeconds: period },
        })
      }
      onDone={() => {
        toast('Saved.')
        void queries.invalidateQueries({ queryKey: ['quota', project] })
        onClose()
      }}
      onClose={onClose}
    >
      <TextField
        label="Concurrent runs"
        inputMode="numeric"
        value={runs}
        onChange={(e) => setRuns(e.target.value)}
        hint="0 means no limit."
      />
      <TextField
        label="Steps per period"
        inputMode="numeric"
        value={steps}
        onChange={(e) => setSteps(e.target.value)}
        hint="0 means no limit."
      />
      <TextField
        label="Length of a period in seconds"
        inputMode="numeric"
        value={period}
        onChange={(e) => setPeriod(e.target.value)}
      />
    </ActionDialog>
  )
}

function ResumeDialog({ project, onClose }: { project: string; onClose: () => void }) {
  const queries = useQueryClient()
  return (
    <ActionDialog
      title={`Resume the waiting runs of ${project}`}
      description="Runs that wait for the next period go on at once; their steps count in the current period."
      action="Resume"
      run={(reason) => clients.quotas.resumeQuota({ project, reason })}
      cli={(reason) => command(['quota', 'resume'], { project, reason })}
      rest={(reason) => restCall('POST', '/v1/projects/{project}/quota:resume', { project, reason })}
      onDone={(answer) => {
        toast(`Resumed ${plural(answer.resumed, 'run')}.`)
        void queries.invalidateQueries({ queryKey: ['quota', project] })
        onClose()
      }}
      onClose={onClose}
    />
  )
}
