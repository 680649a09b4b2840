import { labelParameter, labelProblem, labelText, readLabel } from '../labels'

/** What the palette offers for a text. */
export interface Suggestion {
  /** Names it among all items. */
  value: string
  text: string
  /** The page of the project, and its query string; of a delivery the page is not known before it is read. */
  target: { page: string; search?: Record<string, string> } | { delivery: string }
}

/** The shortest text that is searched for. */
const shortest = 3

/** suggestions returns what a text may be in a project: an ID of several things, a label, or a part of what a list can be searched for. */
export function suggestions(typed: string, project: string): Suggestion[] {
  const query = typed.trim()
  if (query.length < shortest || project === '') return []
  const found: Suggestion[] = []
  if (/^[0-9a-f]{8}-[0-9a-f-]{27}$/i.test(query))
    found.push(
      { value: `run ${query}`, text: `Open run ${query}`, target: { page: `runs/${query}` } },
      { value: `batch ${query}`, text: `Open batch ${query}`, target: { page: `batches/${query}` } },
    )
  if (/^msg_[0-9a-f]+$/.test(query))
    found.push({ value: `delivery ${query}`, text: `Open delivery ${query}`, target: { delivery: query } })
  const label = readLabel(query)
  if (label !== undefined && labelProblem(label) === '')
    found.push({
      value: `label ${query}`,
      text: `Find runs with the label ${labelText(label)}`,
      target: { page: 'runs', search: { label: labelParameter(label) } },
    })
  found.push(
    { value: `search ${query}`, text: `Find runs with “${query}”`, target: { page: 'runs', search: { text: query } } },
    {
      value: `event ${query}`,
      text: `Find events with the ID “${query}”`,
      target: { page: 'events', search: { id: query } },
    },
    {
      value: `workflow ${query}`,
      text: `Find workflows with “${query}”`,
      target: { page: 'workflows', search: { q: query } },
    },
  )
  return found
}
