import { Link } from '@tanstack/react-router'
import { useState } from 'react'
import { callError } from '../api'
import { formatFullTime, plural, Popover, usePreferences } from '../kit'
import type { Annotation } from '../gen/signalbox/v1/project_pb'
import { icons } from './AnnotationMarks'
import styles from './annotations.module.css'
import { kinds, when, words } from './marks'
import type { Annotations } from './query'

/** What the marks of a chart mean, with their numbers: a button that lists all of them. Nothing if nothing happened. */
export function AnnotationLegend({
  query,
  list,
  project,
}: {
  query: Annotations
  list: Annotation[]
  project: string
}) {
  const { zone } = usePreferences()
  const [open, setOpen] = useState(false)
  if (query.isError)
    return (
      <span className={styles.unknown}>Outages and publications are not known: {callError(query.error).message}</span>
    )
  if (list.length === 0) return null
  const more = query.data?.more ?? []
  const counts = kinds
    .map((kind) => ({ kind, count: list.filter((a) => a.kind === kind).length }))
    .filter(({ count }) => count > 0)
  return (
    <Popover
      label="What happened around the runs"
      open={open}
      onOpen={setOpen}
      trigger={
        <button type="button" className={styles.legend}>
          {counts.map(({ kind, count }) => {
            const Icon = icons[kind]
            return (
              <span key={kind} className={kind === 'outage' ? styles.amber : undefined}>
                <Icon size={12} aria-hidden /> {more.includes(kind) ? 'more than ' : ''}
                {plural(count, ...words[kind])}
              </span>
            )
          })}
        </button>
      }
    >
      <ul className={styles.list}>
        {list.toReversed().map((a, i) => {
          const kind = kinds.find((k) => k === a.kind)
          const Icon = kind === undefined ? undefined : icons[kind]
          const [namespace = '', name = ''] = a.subject.split('/')
          return (
            <li key={i}>
              <span className={a.kind === 'outage' ? styles.amber : styles.icon}>
                {Icon === undefined ? null : <Icon size={14} aria-hidden />}
              </span>
              <span>
                {a.kind === 'publish' ? (
                  <Link to="/p/$project/workflows/$namespace/$name" params={{ project, namespace, name }}>
                    {a.title}
                  </Link>
                ) : (
                  a.title
                )}
                <span className={styles.detail}>{when(a, (at) => formatFullTime(at, zone))}</span>
                {a.detail === '' ? null : <span className={styles.detail}>{a.detail}</span>}
              </span>
            </li>
          )
        })}
      </ul>
      {kinds
        .filter((kind) => more.includes(kind))
        .map((kind) => (
          <p key={kind} className={styles.detail}>
            Only the newest 500 {words[kind][1]} are listed.
          </p>
        ))}
    </Popover>
  )
}
