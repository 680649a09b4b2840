import { useRef, useState, type KeyboardEvent, type PointerEvent, type ReactNode } from 'react'
import { formatCount, formatFullTime, formatTime } from './format'
import styles from './Histogram.module.css'
import { usePreferences } from './preferences'
import type { Tone } from './status'

export interface Bar {
  /** Milliseconds since the epoch. */
  start: number
  end: number
  /** Numbers in the order of the series. */
  counts: number[]
}

export interface HistogramProps {
  label: string
  /** From the baseline up. */
  series: { name: string; tone: Tone }[]
  bars: Bar[]
  /** The server's time, to print times near to it shorter. */
  now: number
  /** A period was chosen by dragging, or by the arrow keys and Enter. */
  onPeriod: (start: number, end: number) => void
  /** Drawn over the bars; `share` is the place of a time, from 0 to 1. */
  marks?: (share: (at: number) => number) => ReactNode
  /** What the marks mean, below the bars. */
  legend?: ReactNode
  /** What else a chosen period has, in words. */
  note?: (start: number, end: number) => string
}

const height = 40
/** shareOf returns the place of a time on bars of equal width, from 0 to 1. */
export function shareOf(bars: Bar[], at: number): number {
  const index = bars.findIndex((bar) => at < bar.end)
  const bar = bars[index]
  if (bar === undefined) return bars.length === 0 ? 0 : 1
  return (index + Math.max(0, (at - bar.start) / Math.max(1, bar.end - bar.start))) / bars.length
}

const sum = (bar: Bar) => bar.counts.reduce((a, b) => a + b, 0)

/** Counts over time as stacked bars. A period is chosen by dragging; by keys with arrows, Shift and Enter. A table holds the numbers. */
export function Histogram({ label, series, bars, now, onPeriod, marks, legend, note }: HistogramProps) {
  const { zone } = usePreferences()
  const area = useRef<SVGSVGElement>(null)
  const [chosen, setChosen] = useState<{ from: number; to: number } | undefined>(undefined)
  const [dragging, setDragging] = useState(false)
  const most = Math.max(1, ...bars.map(sum))
  const last = bars.length - 1
  const range =
    chosen === undefined
      ? undefined
      : { low: Math.min(chosen.from, chosen.to), high: Math.min(last, Math.max(chosen.from, chosen.to)) }

  const indexAt = (event: PointerEvent) => {
    const box = area.current?.getBoundingClientRect()
    if (box === undefined || box.width === 0) return 0
    return Math.min(last, Math.max(0, Math.floor(((event.clientX - box.left) / box.width) * bars.length)))
  }
  const apply = () => {
    const first = range === undefined ? undefined : bars[range.low]
    const end = range === undefined ? undefined : bars[range.high]
    setChosen(undefined)
    if (first !== undefined && end !== undefined) onPeriod(first.start, end.end)
  }
  const keys = (event: KeyboardEvent) => {
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key]
    if (step !== undefined) {
      event.preventDefault()
      const to = Math.min(last, Math.max(0, (chosen?.to ?? (step < 0 ? bars.length : -1)) + step))
      setChosen({ from: event.shiftKey && chosen !== undefined ? chosen.from : to, to })
    } else if (event.key === 'Enter' && range !== undefined) {
      event.preventDefault()
      apply()
    } else if (event.key === 'Escape' && range !== undefined) {
      event.preventDefault()
      setChosen(undefined)
    }
  }
  const chosenBars = range === undefined ? [] : bars.slice(range.low, range.high + 1)
  const more = chosenBars[0] === undefined ? '' : (note?.(chosenBars[0].start, chosenBars.at(-1)?.end ?? 0) ?? '')
  const text =
    range === undefined ? '' : [describe(chosenBars, series, zone), more].filter((part) => part !== '').join('; ')
  return (
    <figure className={styles.figure}>
      <div
        className={styles.plot}
        role="application"
        aria-label={`${label}. Arrow keys choose a time, with Shift a period; Enter filters by it.`}
        tabIndex={0}
        onKeyDown={keys}
        onBlur={() => setChosen(undefined)}
        onPointerDown={(event) => {
          if (event.button !== 0) return
          event.currentTarget.setPointerCapture(event.pointerId)
          const index = indexAt(event)
          setDragging(true)
          setChosen({ from: index, to: index })
        }}
        onPointerMove={(event) => {
          const index = indexAt(event)
          setChosen((before) =>
            dragging && before !== undefined
              ? { ...before, to: index }
              : event.pointerType === 'mouse'
                ? { from: index, to: index }
                : before,
          )
        }}
        onPointerUp={() => {
          if (dragging) apply()
          setDragging(false)
        }}
        onPointerCancel={() => {
          setDragging(false)
          setChosen(undefined)
        }}
        onPointerLeave={() => {
          if (!dragging) setChosen(undefined)
        }}
      >
        <svg
          ref={area}
          className={styles.svg}
          viewBox={`0 0 ${Math.max(1, bars.length)} ${height}`}
          preserveAspectRatio="none"
          aria-hidden
        >
          {range === undefined ? null : (
            <rect className={styles.range} x={range.low} y={0} width={range.high - range.low + 1} height={height} />
          )}
          {bars.map((bar, index) => {
            let top = height
            return bar.counts.map((count, s) => {
              if (count === 0) return null
              // A number that is not zero is always visible.
              const size = Math.max(1, (count / most) * height)
              top -= size
              return (
                <rect
                  key={`${index} ${s}`}
                  className={styles[series[s]?.tone ?? 'slate']}
                  x={index + 0.1}
                  y={top}
                  width={0.8}
                  height={size}
                />
              )
            })
          })}
        </svg>
        {marks === undefined || bars.length === 0 ? null : marks((at) => shareOf(bars, at))}
      </div>
      <figcaption className={styles.caption}>
        <span>{bars[0] === undefined ? '' : formatTime(bars[0].start, now, zone)}</span>
        <span className={styles.middle}>
          <span className={styles.text} role="status">
            {text}
          </span>
          {/* It keeps its place while a time is chosen, and the keyboard reaches it: its list may be open. */}
          <span className={text === '' ? styles.legend : `${styles.legend} ${styles.away}`}>{legend}</span>
        </span>
        <span>{bars[last] === undefined ? '' : formatTime(bars[last].end, now, zone)}</span>
      </figcaption>
      <div className="hidden">
        <table>
          <caption>{label}</caption>
          <thead>
            <tr>
              <th scope="col">From</th>
              {series.map(({ name }) => (
                <th key={name} scope="col">
                  {name}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {bars
              .filter((bar) => sum(bar) > 0)
              .map((bar) => (
                <tr key={bar.start}>
                  <th scope="row">{formatFullTime(bar.start, zone)}</th>
                  {series.map(({ name }, i) => (
                    <td key={name}>{formatCount(bar.counts[i] ?? 0)}</td>
                  ))}
                </tr>
              ))}
          </tbody>
        </table>
      </div>
    </figure>
  )
}

function describe(bars: Bar[], series: { name: string }[], zone: 'local' | 'utc'): string {
  const [first] = bars
  const last = bars.at(-1)
  if (first === undefined || last === undefined) return ''
  const parts = series
    .map(({ name }, i) => ({ name, count: bars.reduce((total, bar) => total + (bar.counts[i] ?? 0), 0) }))
    .filter(({ count }) => count > 0)
  const counts =
    parts.length === 0
      ? 'no runs'
      : parts.map(({ name, count }) => `${formatCount(count)} ${name.toLowerCase()}`).join(', ')
  return `${formatFullTime(first.start, zone)} to ${formatFullTime(last.end, zone)}: ${counts}`
}
