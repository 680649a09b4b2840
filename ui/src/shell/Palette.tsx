import { keepPreviousData, useQuery } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import { Command } from 'cmdk'
import { useDeferredValue, useState } from 'react'
import { clients, milliseconds } from '../api'
import { useProjects, useViews } from '../app'
import { Ago, Dialog, setPreferences, usePreferences } from '../kit'
import { readLabel, labelParameter, labelProblem } from '../labels'
import { type Action, actionsOf } from './actions'
import { findable, foundOf, headingOf, searchable } from './find'
import styles from './Palette.module.css'
import { pathOf, placesOf } from './pages'

/** Finds runs, problems, workflows, tasks, events and more by a text, does what is asked of it, and leads to pages, views and projects. */
export default function Palette({
  project,
  onClose,
  onStart,
  onKeys,
}: {
  project: string
  onClose: () => void
  onStart: () => void
  onKeys: () => void
}) {
  const navigate = useNavigate()
  const projects = useProjects()
  const views = useViews(project)
  const [typed, setTyped] = useState('')
  const text = searchable(useDeferredValue(typed))
  const search = useQuery({
    queryKey: ['search', project, text],
    queryFn: ({ signal }) => clients.search.search({ project, text, limit: 8 }, { signal }),
    enabled: text !== '' && project !== '',
    placeholderData: keepPreviousData,
  })
  const groups = text === '' ? [] : (search.data?.groups ?? [])
  const go = (to: string, search: Record<string, string> = {}) => {
    onClose()
    void navigate({ to, search })
  }
  const preferences = usePreferences()
  const act = (action: Action) => {
    if (action.kind === 'runs') return go(`${base}/runs`, action.search)
    if (action.kind === 'start') return onStart()
    if (action.kind === 'shortcuts') return onKeys()
    onClose()
    setPreferences(action.change)
  }
  const base = `/p/${encodeURIComponent(project)}`
  const label = readLabel(typed.trim())
  const listed: Record<string, string> =
    label !== undefined && labelProblem(label) === '' ? { label: labelParameter(label) } : { words: text }
  return (
    <Dialog title="Find" open onClose={onClose}>
      <Command label="Find" className={styles.palette}>
        <Command.Input
          className={styles.input}
          placeholder={findable}
          value={typed}
          onValueChange={setTyped}
          autoFocus
        />
        <Command.List className={styles.list}>
          {/* Items that are always there do not count as found. */}
          {text === '' || project === '' ? (
            <Command.Empty className={styles.empty}>Nothing found.</Command.Empty>
          ) : null}
          {text !== '' && search.isError ? <div className={styles.empty}>The search is not available.</div> : null}
          {text !== '' && search.data?.groups.length === 0 && !search.isFetching ? (
            <div className={styles.empty}>Nothing found in {project}.</div>
          ) : null}
          {groups.map((group) => (
            <Command.Group key={group.kind} heading={headingOf(group)} forceMount>
              {group.hits.map((hit) => {
                const found = foundOf(group.kind, hit, project)
                return (
                  <Command.Item
                    key={found.value}
                    forceMount
                    value={found.value}
                    onSelect={() => go(found.path, found.search)}
                  >
                    <span className={styles.name}>{found.name}</span>
                    <span className={styles.facts}>
                      {found.status === '' ? null : <span>{found.status}</span>}
                      {found.project === '' ? null : <span>in {found.project}</span>}
                      {hit.time === undefined ? null : <Ago at={milliseconds(hit.time)} />}
                      {found.parts.length === 0 ? null : (
                        <span>
                          {found.field}:{' '}
                          {found.parts.map((part, i) => (part.match ? <mark key={i}>{part.text}</mark> : part.text))}
                        </span>
                      )}
                      {found.detail === '' ? null : <span>{found.detail}</span>}
                    </span>
                  </Command.Item>
                )
              })}
            </Command.Group>
          ))}
          {text === '' || project === '' ? null : (
            <Command.Item
              forceMount
              value={`list ${text}`}
              onSelect={() => go(`${base}/runs`, listed)}
            >{`List the runs with “${typed.trim()}”`}</Command.Item>
          )}
          <Command.Group heading="Actions">
            {actionsOf(project, preferences).map((action) => (
              <Command.Item key={action.name} value={action.name} onSelect={() => act(action)}>
                {action.name}
              </Command.Item>
            ))}
          </Command.Group>
          <Command.Group heading="Pages">
            {placesOf(project).map((place) => (
              <Command.Item key={place.path} value={place.name} onSelect={() => go(pathOf(place, project))}>
                {place.name}
              </Command.Item>
            ))}
          </Command.Group>
          {views.data === undefined || views.data.length === 0 ? null : (
            <Command.Group heading={`Views of runs in ${project}`}>
              {views.data.map((v) => (
                <Command.Item
                  key={v.id}
                  value={`view ${v.name} ${v.id}`}
                  onSelect={() => go(`${base}/runs`, { view: v.id })}
                >
                  {v.name}
                  {v.shared ? ` (shared by ${v.owner})` : ''}
                </Command.Item>
              ))}
            </Command.Group>
          )}
          <Command.Group heading="Projects">
            {(projects.data ?? []).slice(0, 50).map((p) => (
              <Command.Item
                key={p.name}
                value={`project ${p.name}`}
                onSelect={() => go(`/p/${encodeURIComponent(p.name)}/runs`)}
              >
                {p.name}
              </Command.Item>
            ))}
          </Command.Group>
        </Command.List>
      </Command>
    </Dialog>
  )
}
