import { useVirtualizer } from '@tanstack/react-virtual'
import { ZoomIn, ZoomOut } from 'lucide-react'
import { useMemo, useRef, useState } from 'react'
import { AnnotationLegend, AnnotationMarks, useAnnotations } from '../annotations'
import { callError, hasEnded, milliseconds, useNow } from '../api'
import {
  Button,
  flipped,
  formatCount,
  formatDuration,
  formatTime,
  StateView,
  statusWord,
  toneClass,
  usePreferences,
} from '../kit'
import type { Run, Step, StepSummary } from '../gen/signalbox/v1/run_pb'
import { useAttempts } from './live'
import styles from './timeline.module.css'
import { barsOf, type Piece, pieces, position, spansBelow, tickOrigin, ticks } from './scale'
import { groupLabel } from './steps'
import { countsText, flatten, type Node, type Row, sumCounts } from './tree'

interface Props {
  run: Run
  root: Node
  summary: StepSummary | undefined
  selected: Step | undefined
  onSelect: (number: string) => void
  /** Whether the steps have their attempts. */
  full: boolean
}

const zooms = [1, 2, 4, 8, 16, 32]

/** When the steps executed and when they waited. Long idle stretches are folded. */
export function TimelineTab({ run, root, summary, selected, onSelect, full }: Props) {
  const attempts = useAttempts(run.project, run.id, !full)
  const open = !hasEnded(run.status)
  const now = useNow(open)
  const { zone, density } = usePreferences()
  const [zoom, setZoom] = useState(0)
  const [unfolded, setUnfolded] = useState<ReadonlySet<string>>(new Set())
  const [toggled, setToggled] = useState<ReadonlySet<string>>(new Set())
  const scroller = useRef<HTMLDivElement>(null)
  const rows = useMemo(
    () => flatten(root, { toggled, unfolded, matches: undefined, reveal: selected?.path ?? '' }),
    [root, toggled, unfolded, selected],
  )
  const all = useMemo(() => spansBelow(root, open ? now : 0), [root, open, now])
  const from = milliseconds(run.startTime) ?? all.reduce((least, s) => Math.min(least, s.from), Infinity)
  const to = Math.max(from, milliseconds(run.endTime) ?? now)
  const axis = useMemo(() => pieces(all, from, to), [all, from, to])
  // Of the project's publications, those of the run's workflow.
  const around = useAnnotations(run.project, Number.isFinite(from) ? from : undefined, open ? undefined : to + 1)
  const marks = useMemo(
    () => (around.data?.annotations ?? []).filter((a) => a.kind !== 'publish' || a.subject === run.workflow),
    [around.data, run.workflow],
  )
  const share = (at: number) => position(axis, at)
  const height = density === 'compact' ? 28 : 32
  const virtual = useVirtualizer({
    count: rows.length,
    getScrollElement: () => scroller.current,
    estimateSize: () => height,
    overscan: 12,
  })
  if (rows.length === 0)
    return <StateView kind="empty" title={open ? 'Nothing has run yet.' : 'The run ended before its first step.'} />
  const act = (row: Row) => {
    if (row.kind === 'fold') setUnfolded(flipped(unfolded, row.of.key))
    else if (row.step === undefined) setToggled(flipped(toggled, row.key))
    else onSelect(row.step.number === selected?.number ? '' : String(row.step.number))
  }
  // A short run counts from its start, a long one has the times of the clock.
  const short = to - from < 60_000
  const marked = ticks(axis, tickOrigin(from, short, zone), 6 * (zooms[zoom] ?? 1)).map(({ time, share }) => ({
    share,
    text: short ? `+${formatDuration(time - from)}` : formatTime(time, now, zone),
  }))
  const width = `${(zooms[zoom] ?? 1) * 100}%`
  return (
    <>
      <div className={styles.tools}>
        <span className={styles.legend}>
          <i className={styles.executing} /> executing <i className={styles.waiting} /> waiting
        </span>
        <span className={styles.faint}>
          {formatDuration(to - from)} from {formatTime(from, now, zone)}
        </span>
        {summary === undefined || summary.steps === 0n ? null : (
          <span className={styles.faint}>{formatCount(summary.steps)} steps are counted, not listed</span>
        )}
        {full ? null : (
          <span className={styles.faint} role="status">
            {attempts.isError ? `Attempts are unknown: ${callError(attempts.error).message}` : 'reading the attempts'}
          </span>
        )}
        <AnnotationLegend query={around} list={marks} project={run.project} />
        <span className={styles.zoom}>
          <Button
            kind="quiet"
            aria-label="Zoom out"
            icon={<ZoomOut size={14} aria-hidden />}
            refused={zoom === 0 ? 'All is in view.' : undefined}
            onClick={() => setZoom(zoom - 1)}
          />
          <Button
            kind="quiet"
            aria-label="Zoom in"
            icon={<ZoomIn size={14} aria-hidden />}
            refused={zoom === zooms.length - 1 ? 'This is the largest scale.' : undefined}
            onClick={() => setZoom(zoom + 1)}
          />
          <Button kind="quiet" onClick={() => setZoom(0)}>
            Fit
          </Button>
        </span>
      </div>
      <div ref={scroller} className={styles.frame} tabIndex={0} role="group" aria-label="Timeline">
        <div className={styles.canvas} style={{ width: `max(${width}, 480px)` }}>
          <div className={styles.axis}>
            <div className={styles.corner}>Step</div>
            <div className={styles.scale}>
              {marked.map(({ share, text }, i) =>
                text === marked[i - 1]?.text ? null : (
                  <span
                    key={share}
                    className={styles.tick}
                    style={{ left: `${share * 100}%`, transform: `translateX(-${share * 100}%)` }}
                  >
                    {text}
                  </span>
                ),
              )}
              {axis
                .filter((piece) => piece.folded)
                .map((piece) => (
                  <Idle key={piece.from} piece={piece} label />
                ))}
              <span className={styles.symbols}>
                <AnnotationMarks list={marks} share={share} now={now} slots={40 * (zooms[zoom] ?? 1)} lines={false} />
              </span>
            </div>
          </div>
          <div className={styles.rows} style={{ height: virtual.getTotalSize() }}>
            {virtual.getVirtualItems().map((item) => {
              const row = rows[item.index]
              if (row === undefined) return null
              return (
                <button
                  key={row.key}
                  type="button"
                  className={`${styles.row} ${row.kind === 'node' && row.step !== undefined && row.step.number === selected?.number ? styles.selected : ''}`}
                  aria-pressed={
                    row.kind === 'node' && row.step !== undefined ? row.step.number === selected?.number : undefined
                  }
                  style={{ height, transform: `translateY(${item.start}px)` }}
                  onClick={() => act(row)}
                >
                  <Label row={row} />
                  <span className={styles.scale}>
                    {row.kind === 'node' ? <Bars row={row} axis={axis} now={now} /> : null}
                  </span>
                </button>
              )
            })}
            <div className={styles.bands} aria-hidden>
              <div className={styles.corner} />
              <div className={styles.scale}>
                {axis
                  .filter((piece) => piece.folded)
                  .map((piece) => (
                    <Idle key={piece.from} piece={piece} />
                  ))}
                <AnnotationMarks list={marks} share={share} now={now} slots={40 * (zooms[zoom] ?? 1)} symbols={false} />
                {open ? <span className={styles.now} style={{ left: `${position(axis, now) * 100}%` }} /> : null}
              </div>
            </div>
          </div>
        </div>
      </div>
    </>
  )
}

function Label({ row }: { row: Row }) {
  const indent = { paddingLeft: 8 + Math.min(row.depth, 10) * 12 }
  if (row.kind === 'fold')
    return (
      <span className={`${styles.corner} ${styles.faint}`} style={indent}>
        {row.open ? 'Show fewer' : `${formatCount(row.hidden.length)} more: ${countsText(sumCounts(row.hidden))}`}
      </span>
    )
  const { icon: Icon, tone, word } = statusWord('step', row.caught ? 'caught' : (row.step?.status ?? ''))
  const group = row.node.kind === 'step' ? '' : `${groupLabel(row.node)} `
  return (
    <span className={styles.corner} style={indent} title={row.step === undefined ? group : `${row.step.task}: ${word}`}>
      {row.step === undefined ? null : (
        <span className={toneClass(tone)}>
          <Icon size={12} aria-label={word} />
        </span>
      )}
      <span className={styles.name}>
        {group}
        {row.step?.task ?? ''}
      </span>
    </span>
  )
}

function Bars({ row, axis, now }: { row: Row & { kind: 'node' }; axis: Piece[]; now: number }) {
  return barsOf(row, axis, now).map(({ step, span, around, left, width }, i) => (
    <i
      key={i}
      className={`${styles.bar} ${styles[around ? 'around' : span.kind]} ${step.status === 'failed' ? styles.failed : ''}`}
      style={{ left: `${left * 100}%`, width: `max(2px, ${width * 100}%)` }}
      title={`${step.task} ${span.kind === 'around' ? '' : span.kind} ${formatDuration(span.to - span.from)}`}
    />
  ))
}

function Idle({ piece, label = false }: { piece: Piece; label?: boolean }) {
  return (
    <span
      className={label ? styles.idleLabel : styles.idle}
      style={{ left: `${piece.left * 100}%`, width: `${(piece.right - piece.left) * 100}%` }}
    >
      {label ? `idle ${formatDuration(piece.to - piece.from)}` : null}
    </span>
  )
}
