import { type Json, JsonNumber, printJson } from '../api/json'

/** quote quotes a word for the shell where that is necessary. */
export const quote = (word: string): string =>
  /^[A-Za-z0-9_@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`

/**
 * command prints a command of the CLI that can be pasted into a shell. Values that are undefined, empty or false are left out with their
 * flag; true is a flag without a value, and a list repeats the flag.
 */
export function command(
  words: string[],
  flags: Record<string, string | boolean | readonly string[] | undefined> = {},
): string {
  const parts = words.map(quote)
  for (const [name, given] of Object.entries(flags)) {
    for (const value of typeof given === 'object' ? given : [given]) {
      if (value === undefined || value === '' || value === false) continue
      parts.push(`--${name}`, ...(value === true ? [] : [quote(value)]))
    }
  }
  return ['signalbox', ...parts].join(' ')
}

/** curl prints a call of the REST API for the shell. The token, where the server requires one, is read from the variable of the CLI. */
export function curl(origin: string, { method, path, body, type = 'application/json' }: Rest): string {
  const parts = [
    'curl',
    ...(method === 'GET' ? [] : ['-X', method]),
    quote(`${origin}${path}`),
    '-H',
    '"Authorization: Bearer $SIGNALBOX_TOKEN"',
  ]
  if (body !== undefined) parts.push('-H', quote(`Content-Type: ${type}`), '-d', quote(body))
  return parts.join(' ')
}

/** A call of the REST API; `body` is JSON text, of another media type than JSON itself where that is given. */
export interface Rest {
  method: string
  path: string
  body?: string
  type?: string
}

/** A value of a request. Values that are undefined are left out. */
export type Part = Json | number | bigint | undefined | readonly Part[] | { readonly [name: string]: Part }

/** asJson converts a value as the API writes it: 64-bit numbers are strings. */
function asJson(value: Part): Json {
  if (value === undefined || value === null || typeof value === 'boolean' || typeof value === 'string')
    return value ?? null
  if (value instanceof JsonNumber || value instanceof Map) return value
  if (typeof value === 'bigint') return String(value)
  if (typeof value === 'number') return new JsonNumber(String(value))
  if (Array.isArray(value)) return value.map(asJson)
  return new Map(
    Object.entries(value)
      .filter(([, part]) => part !== undefined)
      .map(([name, part]) => [name, asJson(part)]),
  )
}

/**
 * restCall returns the call of the REST API for a request: the fields that `{name}` in the template names are in the path, the others in the
 * body, or for a method without one, in the query.
 */
export function restCall(method: string, template: string, request: Record<string, Part>): Rest {
  const body = { ...request }
  const path = template.replace(/\{(\w+)\}/g, (_, name: string) => {
    const value = request[name]
    body[name] = undefined
    return encodeURIComponent(typeof value === 'string' || typeof value === 'bigint' ? String(value) : '').replaceAll(
      '%2F',
      '/',
    )
  })
  if (method !== 'GET' && method !== 'DELETE') return { method, path, body: printJson(asJson(body)) }
  const query = new URLSearchParams(
    Object.entries(body).flatMap(([name, value]) =>
      typeof value === 'string' || typeof value === 'bigint' ? [[name, String(value)]] : [],
    ),
  ).toString()
  return { method, path: query === '' ? path : `${path}?${query}` }
}
