import { escapePointer, isObject, type Json } from '../api'
import { fieldOf, optionOf, suits } from './schema'

/** What is wrong with a value, by JSON pointer, in the words of the form. */
export type Problems = Map<string, string>

const two = (text: string | undefined, most: number) => Number(text) <= most

function isDate(text: string): boolean {
  const found = /^(\d{4})-(\d{2})-(\d{2})$/.exec(text)
  if (found === null) return false
  const date = new Date(`${text}T00:00:00Z`)
  return !Number.isNaN(date.getTime()) && date.toISOString().startsWith(text)
}

function isTime(text: string): boolean {
  const found = /^(\d{2}):(\d{2}):(\d{2})(\.\d+)?(z|[+-](\d{2}):(\d{2}))$/i.exec(text)
  return (
    found !== null &&
    two(found[1], 23) &&
    two(found[2], 59) &&
    two(found[3], 60) &&
    two(found[6] ?? '0', 23) &&
    two(found[7] ?? '0', 59)
  )
}

const isIPv4 = (text: string) =>
  /^\d{1,3}(\.\d{1,3}){3}$/.test(text) &&
  text.split('.').every((part) => Number(part) <= 255 && String(Number(part)) === part)

/** The formats that are checked. JSON Schema leaves it to each program whether it does; the server does not. */
const formats: Record<string, { test: (text: string) => boolean; not: string }> = {
  date: { test: isDate, not: 'Not a date, such as 2026-01-31' },
  time: { test: isTime, not: 'Not a time with its zone, such as 12:00:00Z' },
  'date-time': {
    test: (text) => {
      const at = text.search(/[tT ]/)
      return at > 0 && isDate(text.slice(0, at)) && isTime(text.slice(at + 1))
    },
    not: 'Not a date and time with its zone, such as 2026-01-31T12:00:00Z',
  },
  duration: {
    test: (text) => /^P(?=.)(\d+W|(\d+Y)?(\d+M)?(\d+D)?(T(?=\d)(\d+H)?(\d+M)?(\d+S)?)?)$/.test(text),
    not: 'Not a length of time, such as PT5M',
  },
  email: { test: (text) => /^[^\s@]+@[^\s@.]+(\.[^\s@.]+)*$/.test(text), not: 'Not an e-mail address' },
  uri: {
    test: (text) => /^[a-z][a-z0-9+.-]*:\S+$/i.test(text),
    not: 'Not an address with its scheme, such as https://example.com/',
  },
  uuid: { test: (text) => /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i.test(text), not: 'Not a UUID' },
  ipv4: { test: isIPv4, not: 'Not an IPv4 address' },
}

/**
 * problemsOf returns what the form itself finds: values that are missing, and texts that are not of their format. Of a choice, it is what the
 * option needs that the value fits best. `shown` collects the pointers of all values that the form shows, with whether a choice is around
 * them and they are as their option needs them.
 */
export function problemsOf(
  schema: Json,
  value: Json | undefined,
  root: Json,
  shown: Map<string, { choice: boolean; right: boolean }> = new Map(),
): Problems {
  const problems: Problems = new Map()
  const visit = (of: Json, v: Json | undefined, pointer: string, required: boolean, choice: boolean) => {
    const field = fieldOf(of, root)
    const fits = suits(field, v, root)
    shown.set(pointer, {
      choice,
      right: choice && v !== undefined && fits && ['object', 'array', 'enum', 'boolean'].includes(field.kind),
    })
    if (v === undefined) {
      if (required) problems.set(pointer, 'Required')
      return
    }
    if (!fits || (v === null && field.nullable)) return
    if (field.kind === 'object' && isObject(v)) {
      for (const member of field.members)
        visit(member.schema, v.get(member.name), `${pointer}/${escapePointer(member.name)}`, member.required, choice)
      const known = new Set(field.members.map((member) => member.name))
      for (const [name, inner] of v)
        if (!known.has(name)) visit(field.more ?? true, inner, `${pointer}/${escapePointer(name)}`, true, choice)
    }
    if (field.kind === 'array' && Array.isArray(v))
      v.forEach((inner, i) => {
        visit(field.prefix[i] ?? field.items, inner, `${pointer}/${i}`, true, choice)
      })
    if (field.kind === 'choice') {
      const option = field.options[optionOf(field.options, v, root)]
      if (option !== undefined) visit(option.schema, v, pointer, true, true)
    }
    if (field.kind === 'text' && typeof v === 'string' && Object.hasOwn(formats, field.format)) {
      const format = formats[field.format]
      if (format !== undefined && !format.test(v)) problems.set(pointer, format.not)
    }
  }
  visit(schema, value, '', true, false)
  return problems
}

/**
 * fieldErrors returns the errors that a form shows, one for each value, and whether one of the server's is left out that no field can show. The
 * server reports what each option of a choice lacks: only that of the chosen one is shown.
 */
export function fieldErrors(
  schema: Json,
  value: Json | undefined,
  reported: { path: string; message: string }[],
): { errors: Problems; hidden: boolean } {
  const shown = new Map<string, { choice: boolean; right: boolean }>()
  const errors = problemsOf(schema, value, schema, shown)
  const choices = [...shown].filter(([, { choice }]) => choice).map(([pointer]) => pointer)
  let hidden = false
  let dropped = false
  for (const { path, message } of reported) {
    if (path !== 'input' && !path.startsWith('input/')) continue
    const pointer = path.slice('input'.length)
    const field = shown.get(pointer)
    if (field?.right === true || (field === undefined && choices.some((around) => pointer.startsWith(`${around}/`))))
      dropped = true
    else if (field === undefined) hidden = true
    else if (!errors.has(pointer)) errors.set(pointer, message)
  }
  return { errors, hidden: hidden || (dropped && errors.size === 0) }
}
