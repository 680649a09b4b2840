import {
  escapePointer,
  find,
  hasMark,
  isNumberText,
  isObject,
  type Json,
  jsonEqual,
  JsonNumber,
  type JsonObject,
  printJson,
} from '../api'

/**
 * The model of a form for a JSON Schema (2020-12). The form edits a JSON value directly: what the form cannot show, for reasons of the
 * schema or of the value, is a field of JSON text. The server validates the value; the form only helps to write it.
 */
export type FormField = {
  title: string
  description: string
  /** Whether null is allowed beside the kind's own values. */
  nullable: boolean
  /** What else the schema demands, for a person: "1 to 10", "an e-mail address". */
  hint: string
} & (
  | {
      kind: 'object'
      members: Member[]
      /** Schema of further members; undefined if there may be none. */ more: Json | undefined
    }
  | { kind: 'array'; items: Json; prefix: Json[]; least: number; most: number }
  | { kind: 'choice'; options: { title: string; schema: Json }[] }
  | { kind: 'enum'; values: Json[] }
  | {
      kind: 'text'
      format: string
      long: boolean
      /** Whether the text is not shown while it is typed. */ secret: boolean
    }
  | { kind: 'number'; integer: boolean }
  | { kind: 'boolean' }
  | { kind: 'json'; /** Why it is JSON text; empty if the schema allows anything. */ why: string }
)

export interface Member {
  name: string
  schema: Json
  required: boolean
}

const deepest = 24

const text = (schema: JsonObject, name: string): string => {
  const value = schema.get(name)
  return typeof value === 'string' ? value : ''
}

const list = (schema: JsonObject, name: string): Json[] | undefined => {
  const value = schema.get(name)
  return Array.isArray(value) ? value : undefined
}

const numberText = (schema: JsonObject, name: string): string | undefined => {
  const value = schema.get(name)
  return value instanceof JsonNumber ? value.text : undefined
}

const small = (schema: JsonObject, name: string, otherwise: number): number => {
  const value = Number(numberText(schema, name))
  return Number.isFinite(value) ? value : otherwise
}

function decoded(fragment: string): string {
  try {
    return decodeURIComponent(fragment)
  } catch {
    return fragment // a "%" that begins no escape stands for itself
  }
}

/** resolved follows $ref within the document and joins what stands beside it; a text says why that is not possible. */
function resolved(schema: Json, root: Json): JsonObject | boolean | string {
  let current = schema
  for (let depth = 0; depth < deepest; depth++) {
    if (typeof current === 'boolean') return current
    if (!isObject(current)) return 'the schema of this value is not a schema'
    if (current.has('$dynamicRef')) return 'its schema refers dynamically'
    const reference = current.get('$ref')
    if (reference === undefined) return current
    if (typeof reference !== 'string' || !/^#(\/|$)/.test(reference))
      return 'its schema refers to another document or to an anchor'
    const target = find(root, decoded(reference.slice(1)))
    if (target === undefined) return `its schema refers to ${reference}, which does not exist`
    const beside = [...current].filter(([name]) => name !== '$ref')
    if (typeof target === 'boolean' || beside.length === 0) current = target
    else current = new Map([...(isObject(target) ? target : []), ...beside])
  }
  return 'its schema refers to itself'
}

/** joined merges allOf where its parts are plain objects; undefined where that could lose a demand. */
function joined(schema: JsonObject, root: Json): JsonObject | undefined {
  const parts = list(schema, 'allOf')
  if (parts === undefined) return schema
  let whole: JsonObject = new Map([...schema].filter(([name]) => name !== 'allOf'))
  for (const part of parts) {
    const target = resolved(part, root)
    if (target === true) continue
    if (!isObject(target as Json) || typeof target === 'string' || typeof target === 'boolean') return undefined
    const inner = joined(target, root)
    if (inner === undefined) return undefined
    const next: JsonObject = new Map(whole)
    for (const [name, value] of inner) {
      const before = next.get(name)
      if (before === undefined || jsonEqual(before, value)) next.set(name, value)
      else if (
        name === 'properties' &&
        isObject(before) &&
        isObject(value) &&
        [...value.keys()].every((key) => !before.has(key))
      )
        next.set(name, new Map([...before, ...value]))
      else if (name === 'required' && Array.isArray(before) && Array.isArray(value))
        next.set(name, [...before, ...value])
      else if (name === 'title' || name === 'description') continue
      else return undefined
    }
    whole = next
  }
  return whole
}

const formats: Record<string, string> = {
  date: 'a date, such as 2026-01-31',
  'date-time': 'a date and time with zone, such as 2026-01-31T12:00:00Z',
  time: 'a time with zone, such as 12:00:00Z',
  duration: 'a length of time, such as PT5M',
  email: 'an e-mail address',
  uri: 'an address, such as https://example.com/',
  uuid: 'a UUID',
}

function hintOf(schema: JsonObject): string {
  const parts: string[] = []
  const bounds = (least: string | undefined, most: string | undefined, unit: string) => {
    const what = unit === '' ? '' : (most ?? least) === '1' ? ` ${unit}` : ` ${unit}s`
    if (least !== undefined && most !== undefined) parts.push(`${least} to ${most}${what}`)
    else if (least !== undefined) parts.push(`at least ${least}${what}`)
    else if (most !== undefined) parts.push(`at most ${most}${what}`)
  }
  const format = formats[text(schema, 'format')]
  if (format !== undefined) parts.push(format)
  bounds(numberText(schema, 'minimum'), numberText(schema, 'maximum'), '')
  for (const [name, words] of [
    ['exclusiveMinimum', 'more than'],
    ['exclusiveMaximum', 'less than'],
    ['multipleOf', 'a multiple of'],
  ] as const) {
    const bound = numberText(schema, name)
    if (bound !== undefined) parts.push(`${words} ${bound}`)
  }
  bounds(numberText(schema, 'minLength'), numberText(schema, 'maxLength'), 'character')
  bounds(numberText(schema, 'minItems'), numberText(schema, 'maxItems'), 'item')
  if (text(schema, 'pattern') !== '') parts.push(`matches ${text(schema, 'pattern')}`)
  const fallback = schema.get('default')
  if (fallback !== undefined) parts.push(`default ${printJson(fallback)}`)
  return parts.join(', ')
}

const typesOf = (schema: JsonObject): string[] => {
  const type = schema.get('type')
  const named = typeof type === 'string' ? [type] : Array.isArray(type) ? type.filter((t) => typeof t === 'string') : []
  if (named.length > 0) return named
  // Without a type, keywords that only concern one type show which one is meant.
  if (schema.has('properties') || schema.has('additionalProperties')) return ['object']
  if (schema.has('items') || schema.has('prefixItems')) return ['array']
  return []
}

const isNullSchema = (schema: Json) =>
  isObject(schema) && (schema.get('type') === 'null' || (schema.has('const') && schema.get('const') === null))

/** fieldOf returns the form's field for a schema within its document. */
export function fieldOf(schema: Json, root: Json): FormField {
  const anything = { title: '', description: '', nullable: false, hint: '' }
  const found = resolved(schema, root)
  if (found === true) return { ...anything, kind: 'json', why: '' }
  if (found === false) return { ...anything, kind: 'json', why: 'its schema allows no value' }
  if (typeof found === 'string') return { ...anything, kind: 'json', why: found }
  const common = {
    title: text(found, 'title'),
    description: text(found, 'description'),
    nullable: false,
    hint: hintOf(found),
  }
  const whole = joined(found, root)
  if (whole === undefined)
    return { ...common, kind: 'json', why: 'its schema joins others in a way that a form cannot show' }
  return kindOf(whole, root, { ...common, hint: hintOf(whole) })
}

type Common = Pick<FormField, 'title' | 'description' | 'nullable' | 'hint'>

function kindOf(schema: JsonObject, root: Json, common: Common): FormField {
  const fixed = schema.get('const')
  if (fixed !== undefined) return { ...common, kind: 'enum', values: [fixed] }
  const values = list(schema, 'enum')
  if (values !== undefined) return { ...common, kind: 'enum', values }
  const options = list(schema, 'oneOf') ?? list(schema, 'anyOf')
  if (options !== undefined) return choiceOf(schema, options, root, common)
  const types = typesOf(schema)
  const nullable = types.includes('null')
  const others = types.filter((type) => type !== 'null')
  if (others.length > 1) {
    return {
      ...common,
      nullable,
      kind: 'choice',
      options: others.map((type) => ({ title: type, schema: new Map([...schema, ['type', type]]) })),
    }
  }
  if (others.length === 0 && nullable) return { ...common, kind: 'enum', values: [null] }
  return { ...common, nullable, ...typeOf(schema, others[0] ?? '') } as FormField
}

/** A choice between schemas. What stands beside oneOf or anyOf holds for each option. */
function choiceOf(schema: JsonObject, options: Json[], root: Json, common: Common): FormField {
  const beside = [...schema].filter(([name]) => !['oneOf', 'anyOf', 'title', 'description', 'default'].includes(name))
  const nullable = options.some((option) => isNullSchema(option))
  const others = options.filter((option) => !isNullSchema(option))
  const joint = (option: Json): Json =>
    beside.length === 0 ? option : new Map<string, Json>([['allOf', [option, new Map(beside)]]])
  const [only] = others
  if (only !== undefined && others.length === 1) {
    const field = fieldOf(joint(only), root)
    return {
      ...field,
      nullable: nullable || field.nullable,
      title: common.title === '' ? field.title : common.title,
      description: common.description === '' ? field.description : common.description,
    }
  }
  return {
    ...common,
    nullable,
    kind: 'choice',
    options: others.map((option, index) => {
      const field = fieldOf(option, root)
      const named =
        field.title !== ''
          ? field.title
          : field.kind === 'enum'
            ? field.values.map((v) => printJson(v)).join(', ')
            : field.kind === 'json'
              ? ''
              : field.kind
      return { title: named === '' ? `option ${index + 1}` : named, schema: joint(option) }
    }),
  }
}

function typeOf(schema: JsonObject, type: string) {
  switch (type) {
    case 'object': {
      const properties = schema.get('properties')
      const required = (list(schema, 'required') ?? []).filter((name) => typeof name === 'string')
      const named = isObject(properties)
        ? [...properties].map(([name, of]) => ({ name, schema: of, required: required.includes(name) }))
        : []
      const unnamed = required
        .filter((name) => !named.some((member) => member.name === name))
        .map((name) => ({ name, schema: true, required: true }))
      const members = [...named, ...unnamed] // in the order of the document
      const further = schema.get('additionalProperties') ?? schema.get('unevaluatedProperties')
      return {
        kind: 'object',
        members,
        more: further === false ? undefined : (further ?? (members.length === 0 ? true : undefined)),
      }
    }
    case 'array':
      return {
        kind: 'array',
        items: schema.get('items') ?? true,
        prefix: list(schema, 'prefixItems') ?? [],
        least: small(schema, 'minItems', 0),
        most: small(schema, 'maxItems', Infinity),
      }
    case 'string':
      return {
        kind: 'text',
        format: text(schema, 'format'),
        secret: text(schema, 'format') === 'password' || schema.get('writeOnly') === true,
        long: small(schema, 'maxLength', 0) > 200 || schema.has('contentMediaType'),
      }
    case 'integer':
    case 'number':
      return { kind: 'number', integer: type === 'integer' }
    case 'boolean':
      return { kind: 'boolean' }
    case '':
      return { kind: 'json', why: '' }
    default:
      return { kind: 'json', why: `its schema has the unknown type ${type}` }
  }
}

/** suits reports whether the form can show a value in its field. */
export function suits(field: FormField, value: Json | undefined, root: Json): boolean {
  if (value === undefined || (value === null && field.nullable)) return true
  switch (field.kind) {
    case 'object':
      return isObject(value)
    case 'array':
      return Array.isArray(value)
    case 'choice':
      return optionOf(field.options, value, root) >= 0
    case 'enum':
      return field.values.some((v) => jsonEqual(v, value))
    case 'text':
      return typeof value === 'string'
    case 'number':
      return value instanceof JsonNumber
    case 'boolean':
      return typeof value === 'boolean'
    case 'json':
      return true
  }
}

/** optionOf returns the index of the option that a value fits best; -1 if it fits none. */
export function optionOf(options: { schema: Json }[], value: Json, root: Json): number {
  let best = -1
  let most = -1
  options.forEach(({ schema }, index) => {
    const points = fit(fieldOf(schema, root), value, root, 0)
    if (points > most) {
      most = points
      best = index
    }
  })
  return best
}

/** fit returns how well a value fits a field: -1 if not at all, else the number of members that fit. */
function fit(field: FormField, value: Json, root: Json, depth: number): number {
  if (!suits(field, value, root)) return -1
  if (field.kind === 'json') return 0
  if (field.kind !== 'object' || !isObject(value) || depth > 3) return 1
  let points = 1
  for (const member of field.members) {
    const inner = value.get(member.name)
    if (inner === undefined) {
      if (member.required) return 0
      continue
    }
    const of = fieldOf(member.schema, root)
    const found = fit(of, inner, root, depth + 1)
    if (found < 0) return of.kind === 'enum' ? -1 : 0
    // A member with one certain value names the option.
    points += of.kind === 'enum' && of.values.length === 1 ? 100 : 1
  }
  return points
}

/** A schema may require itself: then the value with which a form begins ends here. */
const deepestInitial = 6

/** initial returns the value with which a field begins: defaults, and the containers of what is required. Undefined is no value. */
export function initial(schema: Json, root: Json, required: boolean, depth = 0): Json | undefined {
  const found = resolved(schema, root)
  const fallback = typeof found === 'object' ? found.get('default') : undefined
  if (fallback !== undefined) return fallback
  if (depth > deepestInitial) return undefined
  const field = fieldOf(schema, root)
  if (!required) return undefined
  switch (field.kind) {
    case 'enum':
      return field.values.length === 1 ? field.values[0] : undefined
    case 'object': {
      const members: JsonObject = new Map()
      for (const member of field.members) {
        const value = initial(member.schema, root, member.required, depth + 1)
        if (value !== undefined) members.set(member.name, value)
      }
      return members
    }
    case 'array':
      return depth > deepestInitial / 2
        ? []
        : Array.from({ length: Math.min(field.least, 20) }, (_, i) =>
            blank(field.prefix[i] ?? field.items, root, depth + 1),
          )
    case 'choice': {
      const [first] = field.options
      return first === undefined ? undefined : initial(first.schema, root, true, depth + 1)
    }
    default:
      return undefined
  }
}

/** blank returns the value of a new element of an array or of a new further member, where there must be one. */
export function blank(schema: Json, root: Json, depth = 0): Json {
  const value = initial(schema, root, true, depth)
  if (value !== undefined) return value
  const { kind } = fieldOf(schema, root)
  return kind === 'text' ? '' : kind === 'number' ? new JsonNumber('') : kind === 'boolean' ? false : null
}

/** withMember returns an object with a member set, or removed if the value is undefined; members keep the order of the form. */
export function withMember(object: JsonObject, members: Member[], name: string, value: Json | undefined): JsonObject {
  const next: JsonObject = new Map(object)
  if (value === undefined) {
    next.delete(name)
    return next
  }
  if (next.has(name)) return next.set(name, value)
  next.set(name, value)
  const known = members.map((member) => member.name).filter((known) => next.has(known))
  return new Map(
    [...known, ...[...next.keys()].filter((key) => !known.includes(key))].map((key) => [key, next.get(key) ?? null]),
  )
}

/** wrongNumbers returns the JSON pointers of numbers that are not numbers of JSON: what a person has not finished to type. */
export function wrongNumbers(value: Json | undefined, pointer = ''): string[] {
  if (value instanceof JsonNumber) return isNumberText(value.text) ? [] : [pointer]
  if (Array.isArray(value)) return value.flatMap((v, i) => wrongNumbers(v, `${pointer}/${i}`))
  if (isObject(value)) return [...value].flatMap(([name, v]) => wrongNumbers(v, `${pointer}/${escapePointer(name)}`))
  return []
}

/** withoutMarks removes the values that contain a mark, and names them by JSON pointer. An element of an array becomes null. */
export function withoutMarks(value: Json, pointer = ''): { value: Json | undefined; removed: string[] } {
  if (typeof value === 'string' && hasMark(value)) return { value: undefined, removed: [pointer] }
  const removed: string[] = []
  const inner = (v: Json, name: string) => {
    const result = withoutMarks(v, `${pointer}/${escapePointer(name)}`)
    removed.push(...result.removed)
    return result.value
  }
  if (Array.isArray(value)) return { value: value.map((v, i) => inner(v, String(i)) ?? null), removed }
  if (!isObject(value)) return { value, removed }
  const members: JsonObject = new Map()
  for (const [name, v] of value) {
    if (hasMark(name)) {
      removed.push(`${pointer}/${escapePointer(name)}`)
      continue
    }
    const kept = inner(v, name)
    if (kept !== undefined) members.set(name, kept)
  }
  return { value: members, removed }
}
