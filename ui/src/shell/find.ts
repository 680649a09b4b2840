import type { SearchGroup, SearchHit } from '../gen/signalbox/v1/search_pb'
import { shortId, statusWord } from '../kit'

/** Something that the search found, as the palette offers it. */
export interface Found {
  /** Names it among all items. */
  value: string
  /** What it is, in words. */
  name: string
  /** Its status in words; empty for none. */
  status: string
  /** What matched, in parts; empty where the name shows it. */
  field: string
  parts: readonly { text: string; match: boolean }[]
  /** The error of a run; empty for none. */
  detail: string
  /** The project, unless it is the present one. */
  project: string
  /** Its page, and the query string. */
  path: string
  search: Record<string, string>
}

/** What a person may type to find something. */
export const findable = 'ID, label, error, workflow, page'

/** The shortest and the longest text that is searched for: the server refuses others. */
const shortest = 2
const longest = 200
const mostWords = 8

/** searchable returns the text to search for; empty for one that the server would refuse. */
export function searchable(typed: string): string {
  const text = typed.trim()
  const words = text.match(/[\p{L}\p{N}\p{M}]+/gu) ?? []
  const bytes = new TextEncoder().encode(text).length
  return [...text].length < shortest || bytes > longest || words.length === 0 || words.length > mostWords ? '' : text
}

const headings: Record<string, string> = {
  run: 'Runs',
  problem: 'Problems',
  workflow: 'Workflows',
  task: 'Tasks',
  event: 'Events',
  batch: 'Batches',
  delivery: 'Deliveries of webhooks',
  project: 'Projects',
}

/** headingOf returns the heading of the hits of a kind. */
export const headingOf = ({ kind, more }: Pick<SearchGroup, 'kind' | 'more'>): string =>
  `${headings[kind] ?? kind}${more ? ', the newest' : ''}`

/** The field that the name of a hit shows. */
const named = ['', 'id', 'name', 'title', 'position']

/** foundOf returns a hit of a kind as the palette offers it. */
export function foundOf(kind: string, hit: SearchHit, present: string): Found {
  const { path, search } = target(kind, hit)
  const status = kind === 'run' || kind === 'batch' ? statusWord(kind, hit.status).word : hit.status
  return {
    value: `${kind} ${hit.project} ${hit.workflow} ${hit.id}`,
    name: nameOf(kind, hit),
    status,
    field: named.includes(hit.field) ? '' : hit.field.replace(/^label\./, '').replace('_', ' '),
    parts: named.includes(hit.field) ? [] : hit.parts,
    detail: hit.field === 'error' ? '' : hit.detail,
    project: hit.project === present ? '' : hit.project,
    path,
    search,
  }
}

function nameOf(kind: string, { id, title, workflow, webhook }: SearchHit): string {
  switch (kind) {
    case 'run':
      return `${shortId(id)} ${workflow}`
    case 'batch':
      return `${shortId(id)} ${title}`
    case 'task':
      return `${title} of ${workflow}`
    case 'event':
      return `${id} ${title}`
    case 'delivery':
      return `${id} to ${webhook}`
    case 'problem':
      return workflow === '' ? title : `${title} in ${workflow}`
    case 'project':
      return id
    default:
      return title === '' || title === id ? id : `${id}: ${title}`
  }
}

function target(kind: string, hit: SearchHit): { path: string; search: Record<string, string> } {
  const base = `/p/${encodeURIComponent(hit.project)}`
  const page = (path: string, search: Record<string, string> = {}) => ({ path, search })
  switch (kind) {
    case 'run':
      return page(`${base}/runs/${hit.id}`)
    case 'batch':
      return page(`${base}/batches/${hit.id}`)
    case 'event':
      return page(`${base}/events/${hit.position.toString()}`)
    case 'delivery':
      return page(`${base}/webhooks/${encodeURIComponent(hit.webhook)}/deliveries/${hit.id}`)
    case 'problem':
      return page('/problems', { open: hit.id })
    case 'project':
      return page(`${base}/runs`)
    default:
      return page(
        `${base}/workflows/${(kind === 'task' ? hit.workflow : hit.id).split('/').map(encodeURIComponent).join('/')}`,
      )
  }
}
