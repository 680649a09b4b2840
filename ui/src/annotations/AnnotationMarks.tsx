import { ArrowLeftRight, type LucideIcon, Tag, Unplug } from 'lucide-react'
import { formatFullTime, usePreferences } from '../kit'
import type { Annotation } from '../gen/signalbox/v1/project_pb'
import styles from './annotations.module.css'
import { bands, describe, groups, type Kind } from './marks'

export const icons: Record<Kind, LucideIcon> = { outage: Unplug, publish: Tag, owner: ArrowLeftRight }

/** within keeps symbols inside of the chart at its ends. */
const within = (share: number) => `clamp(14px, ${share * 100}%, calc(100% - 14px))`

/** What happened around the runs, over a chart: outages as hatched bands, other events as lines. The legend lists the same in words. */
export function AnnotationMarks({
  list,
  share,
  now,
  slots = 40,
  lines = true,
  symbols = true,
}: {
  list: Annotation[]
  share: (at: number) => number
  now: number
  slots?: number
  lines?: boolean
  symbols?: boolean
}) {
  const { zone } = usePreferences()
  const print = (at: number) => formatFullTime(at, zone)
  return (
    <span className={styles.marks} aria-hidden data-marks>
      {lines
        ? bands(list, share, now).map(({ annotation, left, width }, i) => (
            <i
              key={`outage ${i}`}
              className={styles.band}
              style={{ left: `${left * 100}%`, width: `max(3px, ${width * 100}%)` }}
              title={describe([annotation], print)}
            />
          ))
        : null}
      {symbols
        ? bands(list, share, now).map(({ annotation, left, width }, i) => (
            <span
              key={`symbol ${i}`}
              className={`${styles.symbols} ${styles.amber}`}
              style={{ left: within(left + width / 2) }}
              title={describe([annotation], print)}
            >
              <Unplug size={12} />
            </span>
          ))
        : null}
      {groups(list, share, slots).map(({ left, parts }) => {
        const title = parts.map(({ annotations }) => describe(annotations, print)).join('\n')
        return (
          <span key={left}>
            {lines ? <i className={styles.line} style={{ left: `${left * 100}%` }} title={title} /> : null}
            {symbols ? (
              <span className={styles.symbols} style={{ left: within(left) }} title={title}>
                {parts.map(({ kind }) => {
                  const Icon = icons[kind]
                  return <Icon key={kind} size={12} />
                })}
              </span>
            ) : null}
          </span>
        )
      })}
    </span>
  )
}
