import { useRef, useState, type KeyboardEvent, type PointerEvent, type ReactNode } from 'react'
import { type Bar, type Choice, choose, chosenBars, describe, shareOf, stack, total } from './bars'
import { formatCount, formatFullTime, formatTime } from './format'
import styles from './Histogram.module.css'
import { usePreferences } from './preferences'
import type { Tone } from './status'

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

/** Counts over time as stacked bars. A period is chosen by dragging; by keys with arrows, Shift and Enter. A table holds the numbers. */
export function Histogram({ label, series, bars, now, onPeriod, marks, legend, note }: HistogramProps) {
  const { zone } = usePreferences()
  const area = useRef<SVGSVGElement>(null)
  const [chosen, setChosen] = useState<Choice | undefined>(undefined)
  const [dragging, setDragging] = useState(false)
  const most = Math.max(1, ...bars.map(total))
  const last = bars.length - 1
  const period = chosenBars(bars, chosen)

  const indexAt = (event: PointerEvent) => {
    const box = area.current?.getBoundingClientRect()
    if (box === undefined || box.width === 0) return 0
    return Math.min(last, Math.max(0, Math.floor(((event.clientX - box.left) / box.width) * bars.length)))
  }
  const apply = () => {
    const [first, end] = [period[0], period.at(-1)]
    setChosen(undefined)
    if (first !== undefined && end !== undefined) onPeriod(first.start, end.end)
  }
  const keys = (event: KeyboardEvent) => {
    const next = choose(event.key, event.shiftKey, chosen, bars.length)
    if (next !== undefined) {
      event.preventDefault()
      setChosen(next)
    } else if (event.key === 'Enter' && chosen !== undefined) {
      event.preventDefault()
      apply()
    } else if (event.key === 'Escape' && chosen !== undefined) {
      event.preventDefault()
      setChosen(undefined)
    }
  }
  const more = period[0] === undefined ? '' : (note?.(period[0].start, period.at(-1)?.end ?? 0) ?? '')
  const text = [describe(period, series, zone), more].filter((part) => part !== '').join('; ')
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
          {chosen === undefined ? null : (
            <rect
              className={styles.range}
              x={Math.min(chosen.from, chosen.to)}
              y={0}
              width={period.length}
              height={height}
            />
          )}
          {bars.map((bar, index) =>
            stack(bar.counts, most, height).map((part, s) =>
              part === undefined ? null : (
                <rect
                  key={`${index} ${s}`}
                  className={styles[series[s]?.tone ?? 'slate']}
                  x={index + 0.1}
                  y={part.top}
                  width={0.8}
                  height={part.size}
                />
              ),
            ),
          )}
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
              .filter((bar) => total(bar) > 0)
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
