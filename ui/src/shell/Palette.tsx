import { useNavigate } from '@tanstack/react-router'
import { Command } from 'cmdk'
import { useState } from 'react'
import { clients } from '../api'
import { useProjects, useViews } from '../app'
import { Dialog, toastError } from '../kit'
import { suggestions } from './find'
import styles from './Palette.module.css'
import { pathOf, placesOf } from './pages'

/** Finds pages, projects and runs: any ID may be pasted. */
export default function Palette({ project, onClose }: { project: string; onClose: () => void }) {
  const navigate = useNavigate()
  const projects = useProjects()
  const views = useViews(project)
  const [text, setText] = useState('')
  const go = (to: string, search: Record<string, string> = {}) => {
    onClose()
    void navigate({ to, search })
  }
  const base = `/p/${encodeURIComponent(project)}`
  // The address of a delivery has the name of its webhook.
  const goToDelivery = (id: string) => {
    clients.webhooks.getWebhookDelivery({ project, id }).then(({ delivery }) => {
      go(`${base}/webhooks/${delivery?.webhook ?? ''}/deliveries/${id}`)
    }, toastError)
  }
  const found = suggestions(text, project)
  return (
    <Dialog title="Find" open onClose={onClose}>
      <Command label="Find" className={styles.palette}>
        <Command.Input
          className={styles.input}
          placeholder="ID, request ID, label, page"
          value={text}
          onValueChange={setText}
          autoFocus
        />
        <Command.List className={styles.list}>
          {/* Items that are always there do not count as found. */}
          {found.length > 0 ? null : <Command.Empty className={styles.empty}>Nothing found.</Command.Empty>}
          {found.length === 0 ? null : (
            <Command.Group heading={`In ${project}`} forceMount>
              {found.map(({ value, text, target }) => (
                <Command.Item
                  key={value}
                  forceMount
                  value={value}
                  onSelect={() => {
                    if ('delivery' in target) goToDelivery(target.delivery)
                    else go(`${base}/${target.page}`, target.search)
                  }}
                >
                  {text}
                </Command.Item>
              ))}
            </Command.Group>
          )}
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
