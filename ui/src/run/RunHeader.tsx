import { Link, useNavigate } from '@tanstack/react-router'
import { usePageKeys, workflowParams } from '../app'
import { ChevronDown, ChevronLeft, ChevronRight, ExternalLink } from 'lucide-react'
import { lazy, Suspense, useState } from 'react'
import { callError, clients, milliseconds } from '../api'
import { lastList } from '../app/list'
import { type Control, ControlDialog, refusalOf } from '../control'
import {
  Button,
  CancelRequestedBadge,
  command,
  copyCLI,
  copyCurl,
  copyText,
  Elapsed,
  formatDuration,
  Id,
  Menu,
  type MenuItem,
  StatusBadge,
  Time,
  toast,
  Tooltip,
  useLinkRefusal,
} from '../kit'
import type { Run, Step } from '../gen/signalbox/v1/run_pb'
import { LabelChips } from '../labels'
import { incident } from './incident'
import styles from './run.module.css'
import { neighbours, temporalAddress } from './tabs'

const ReplayDialog = lazy(() => import('../control/ReplayDialog'))

const runPath = (project: string, id: string) => `/p/${encodeURIComponent(project)}/runs/${encodeURIComponent(id)}`

/** What the run is, and everything that can be done with it. */
export function RunHeader({ run, failed }: { run: Run; failed: Step | undefined }) {
  const [open, setOpen] = useState<Control | ''>('')
  const navigate = useNavigate()
  const offline = useLinkRefusal()
  const refused = (control: Control) => offline ?? refusalOf(run, control)
  const show = (control: Control) => {
    if (refused(control) === undefined) setOpen(control)
  }
  const compare = () => {
    void navigate({ to: '/p/$project/compare', params: { project: run.project }, search: { a: run.id } })
  }
  usePageKeys({
    r: () => {
      show('replay')
    },
    c: () => {
      show('cancel')
    },
    o: compare,
    '.': () => {
      document.getElementById('run-more')?.focus()
    },
  })

  const item = (control: Control, label: string, danger = false): MenuItem => ({
    key: control,
    label,
    danger,
    refused: refused(control),
    onSelect: () => setOpen(control),
  })
  const api = `/v1/projects/${encodeURIComponent(run.project)}/runs/${run.id}`
  const more: MenuItem[] = [
    item('pause', 'Pause…'),
    item('unpause', 'Unpause…'),
    item('resume_quota', 'Resume quota…'),
    item('terminate', 'Terminate…', true),
    { key: 's1', kind: 'separator', label: '' },
    {
      key: 'export',
      label: 'Export as JSON',
      refused: refused('export'),
      onSelect: () => void download(run),
    },
    {
      key: 'cli',
      label: 'Copy CLI',
      onSelect: () => copyCLI(command(['run', 'show', run.id], { project: run.project })),
    },
    {
      key: 'curl',
      label: 'Copy curl',
      onSelect: () => copyCurl({ method: 'GET', path: api }),
    },
    {
      key: 'incident',
      label: 'Copy incident as Markdown',
      onSelect: () =>
        void copyText(incident(run, failed, window.location.href)).then((done) => {
          toast(done ? 'Incident copied.' : 'The browser did not allow to copy.', done ? 'normal' : 'error')
        }),
    },
  ]
  const created = milliseconds(run.createTime)
  const started = milliseconds(run.startTime)
  const close = () => {
    setOpen('')
  }
  return (
    <header className={styles.header}>
      <Trail run={run} />
      <div className={styles.title}>
        <h1 className={styles.status}>
          <StatusBadge of="run" status={run.status} detail={run.queuedReason || run.waitingKind} size="large" />
        </h1>
        {run.cancelRequested && run.endTime === undefined ? <CancelRequestedBadge /> : null}
        <Link
          to="/p/$project/workflows/$namespace/$name"
          params={workflowParams(run.project, run.workflow)}
          search={{ version: run.version } as never}
          className={styles.workflow}
        >
          {run.workflow}@{run.version}
        </Link>
        <Id id={run.id} />
        <div className={styles.actions}>
          <Button refused={refused('replay')} onClick={() => setOpen('replay')}>
            Replay…
          </Button>
          <Button refused={refused('cancel')} onClick={() => setOpen('cancel')}>
            Cancel…
          </Button>
          <Button onClick={compare}>Compare…</Button>
          <Menu
            trigger={
              <Button id="run-more" icon={<ChevronDown size={14} aria-hidden />}>
                More
              </Button>
            }
            items={more}
          />
        </div>
      </div>
      <div className={styles.facts}>
        <Tooltip
          text={
            <>
              Started by {run.actor === '' ? 'unknown' : run.actor}
              <br />
              Request ID {run.requestId}
            </>
          }
        >
          <span tabIndex={0}>{run.trigger}</span>
        </Tooltip>
        <span>
          queued <Time at={created} />
        </span>
        <span>
          {started === undefined ? (
            run.endTime === undefined ? (
              'not started yet'
            ) : (
              'never started'
            )
          ) : created === undefined ? (
            <>
              started <Time at={started} />
            </>
          ) : (
            <>started +{formatDuration(started - created)}</>
          )}
        </span>
        {started === undefined ? null : (
          <span>
            <Elapsed from={started} to={milliseconds(run.endTime)} />
            {run.endTime === undefined ? ' so far' : ''}
          </span>
        )}
        {run.temporal === undefined || run.temporal.taskQueue === '' ? null : (
          <span className={styles.mono}>{run.temporal.taskQueue}</span>
        )}
        <TemporalLink run={run} />
        {run.legacyEngine === '' ? null : <span>imported from {run.legacyEngine}</span>}
      </div>
      {Object.keys(run.labels).length === 0 ? null : <LabelChips labels={run.labels} project={run.project} copy />}
      {open === '' || open === 'export' ? null : open === 'replay' ? (
        <Suspense>
          <ReplayDialog run={run} onClose={close} />
        </Suspense>
      ) : (
        <ControlDialog control={open} run={run} onClose={close} />
      )}
    </header>
  )
}

function TemporalLink({ run }: { run: Run }) {
  const address = temporalAddress(run)
  if (address === undefined) return null
  return (
    <a href={address} target="_blank" rel="noopener noreferrer" className={styles.external}>
      Temporal <ExternalLink size={12} aria-hidden />
    </a>
  )
}

/** The way back to the list with its filters, and to the runs before and after this one there. */
function Trail({ run }: { run: Run }) {
  const origin = lastList(run.project)
  const navigate = useNavigate()
  const beside = neighbours(origin?.ids ?? [], run.id)
  const go = (id: string | undefined) => {
    if (id !== undefined) void navigate({ to: runPath(run.project, id), search: {} })
  }
  usePageKeys({
    '[': () => {
      go(beside?.previous)
    },
    ']': () => {
      go(beside?.next)
    },
  })
  const filters = Object.values(origin?.search ?? {})
    .flat()
    .filter(Boolean)
    .join(', ')
  return (
    <div className={styles.trail}>
      <Link to="/p/$project/runs" params={{ project: run.project }} search={origin?.search ?? {}}>
        <ChevronLeft size={14} aria-hidden />
        Runs{filters === '' ? '' : ` (${filters})`}
      </Link>
      {beside === undefined ? null : (
        <span className={styles.neighbours}>
          <Button
            kind="quiet"
            refused={beside.previous === undefined ? 'This is the first row of the list.' : undefined}
            icon={<ChevronLeft size={14} aria-hidden />}
            onClick={() => go(beside.previous)}
          >
            Previous
          </Button>
          <Button
            kind="quiet"
            refused={beside.next === undefined ? 'This is the last row of the list as it was loaded.' : undefined}
            onClick={() => go(beside.next)}
          >
            Next <ChevronRight size={14} aria-hidden />
          </Button>
        </span>
      )}
    </div>
  )
}

async function download(run: Run): Promise<void> {
  try {
    const parts: BlobPart[] = []
    for await (const part of clients.runs.exportRun({ project: run.project, id: run.id }))
      parts.push(part.data as BlobPart)
    const address = URL.createObjectURL(new Blob(parts, { type: 'application/json' }))
    const anchor = document.createElement('a')
    anchor.href = address
    anchor.download = `run-${run.id}.json`
    anchor.click()
    window.setTimeout(() => {
      URL.revokeObjectURL(address)
    }, 60_000)
  } catch (error) {
    toast(`The export failed: ${callError(error).message}`, 'error')
  }
}
