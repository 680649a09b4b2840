import { useNavigate } from '@tanstack/react-router'
import { Command } from 'cmdk'
import { useState } from 'react'
import { callError, clients } from '../api'
import { useProjects, useViews } from '../app'
import { Dialog, toast } from '../kit'
import { labelParameter, labelProblem, labelText, readLabel } from '../labels'
import styles from './Palette.module.css'

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
    clients.webhooks.getWebhookDelivery({ project, id }).then(
      ({ delivery }) => {
        go(`${base}/webhooks/${delivery?.webhook ?? ''}/deliveries/${id}`)
      },
      (error: unknown) => {
        toast(callError(error).message, 'error')
      },
    )
  }
  const query = text.trim()
  const uuid = /^[0-9a-f]{8}-[0-9a-f-]{27}$/i.test(query)
  const label = readLabel(query)
  const searches = query.length >= 3 && project !== ''
  const pages: [string, string][] = [
    ...(project === ''
      ? []
      : ([
          ['Runs', `${base}/runs`],
          ['Workflows', `${base}/workflows`],
          ['Events', `${base}/events`],
          ['Webhooks', `${base}/webhooks`],
          ['Batches', `${base}/batches`],
          ['Audit', `${base}/audit`],
        ] as [string, string][])),
    ['Problems', '/problems'],
    ['Workflows of all projects', '/workflows'],
    ['Dispatchers', '/dispatchers'],
    ['Workers', '/workers'],
    ['System', '/system'],
    ['Restore check', '/system/restore'],
    ['Licences', '/system/licences'],
    ['Projects', '/projects'],
    ['Access', '/access'],
  ]
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
          {searches ? null : <Command.Empty className={styles.empty}>Nothing found.</Command.Empty>}
          {!searches ? null : (
            <Command.Group heading={`In ${project}`} forceMount>
              {uuid ? (
                <Command.Item forceMount value={`run ${query}`} onSelect={() => go(`${base}/runs/${query}`)}>
                  Open run {query}
                </Command.Item>
              ) : null}
              {uuid ? (
                <Command.Item forceMount value={`batch ${query}`} onSelect={() => go(`${base}/batches/${query}`)}>
                  Open batch {query}
                </Command.Item>
              ) : null}
              {/^msg_[0-9a-f]+$/.test(query) ? (
                <Command.Item forceMount value={`delivery ${query}`} onSelect={() => goToDelivery(query)}>
                  Open delivery {query}
                </Command.Item>
              ) : null}
              {label === undefined || labelProblem(label) !== '' ? null : (
                <Command.Item
                  forceMount
                  value={`label ${query}`}
                  onSelect={() => go(`${base}/runs`, { label: labelParameter(label) })}
                >
                  Find runs with the label {labelText(label)}
                </Command.Item>
              )}
              <Command.Item forceMount value={`search ${query}`} onSelect={() => go(`${base}/runs`, { text: query })}>
                Find runs with “{query}”
              </Command.Item>
              <Command.Item forceMount value={`event ${query}`} onSelect={() => go(`${base}/events`, { id: query })}>
                Find events with the ID “{query}”
              </Command.Item>
              <Command.Item
                forceMount
                value={`workflow ${query}`}
                onSelect={() => go(`${base}/workflows`, { q: query })}
              >
                Find workflows with “{query}”
              </Command.Item>
            </Command.Group>
          )}
          <Command.Group heading="Pages">
            {pages.map(([name, to]) => (
              <Command.Item key={to} value={name} onSelect={() => go(to)}>
                {name}
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
