/** The query string of the URL as plain text: a name has one value, or a list where it is repeated. No JSON, no surprises. */
export type Search = Record<string, string | string[] | undefined>

export function parseSearch(text: string): Search {
  const search: Record<string, string | string[]> = {}
  for (const [name, value] of new URLSearchParams(text)) {
    const before = search[name]
    search[name] = before === undefined ? value : [...(Array.isArray(before) ? before : [before]), value]
  }
  return search
}

export function stringifySearch(search: Record<string, unknown>): string {
  const params = new URLSearchParams()
  for (const [name, value] of Object.entries(search)) {
    for (const one of Array.isArray(value) ? value : [value]) {
      if (one !== undefined && one !== null && one !== '') params.append(name, String(one))
    }
  }
  const text = params.toString().replaceAll('%2C', ',').replaceAll('%3A', ':').replaceAll('%2F', '/')
  return text === '' ? '' : `?${text}`
}

/** changed returns the search with some names set; an empty or absent value removes its name. */
export function changed(before: Search, change: Record<string, string | undefined>): Search {
  const next: Search = { ...before }
  for (const [name, value] of Object.entries(change)) {
    if (value === undefined || value === '') Reflect.deleteProperty(next, name)
    else next[name] = value
  }
  return next
}

/** listed returns a filter with one value as the list that a request has; empty for all. */
export const listed = (value: string): string[] => (value === '' ? [] : [value])

/** one returns the first value of a name; empty if it is absent. */
export const one = (search: Search, name: string): string => {
  const value = search[name]
  return (Array.isArray(value) ? value[0] : value) ?? ''
}

/** all returns the values of a name that is repeated; a comma is part of a value. */
export const all = (search: Search, name: string): string[] => {
  const value = search[name]
  return (Array.isArray(value) ? value : [value ?? '']).filter((v) => v !== '')
}

/** many returns the values of a name, repeated or separated by commas. */
export const many = (search: Search, name: string): string[] => {
  const value = search[name]
  return (Array.isArray(value) ? value : (value ?? '').split(',')).filter((v) => v !== '')
}
