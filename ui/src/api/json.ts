/** A JSON value that keeps what JSON.parse loses: the digits of numbers, the order and the names of members. */
export type Json = null | boolean | string | JsonNumber | Json[] | JsonObject

export type JsonObject = Map<string, Json>

/** A number as it is written. */
export class JsonNumber {
  constructor(readonly text: string) {}
}

/** Why a text is not JSON, and where: `offset` counts from 0, `line` and `column` from 1. */
export class JsonError extends Error {
  readonly line: number
  readonly column: number
  constructor(
    problem: string,
    text: string,
    readonly offset: number,
  ) {
    const before = text.slice(0, offset).split('\n')
    const line = before.length
    const column = (before.at(-1)?.length ?? 0) + 1
    super(`line ${line}, column ${column}: ${problem}`)
    this.line = line
    this.column = column
  }
}

const deepest = 1000
const space = /[ \t\n\r]*/y
const number = /-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?/y
const numberAlone = new RegExp(`^(?:${number.source})$`)
// Everything up to the closing quote: plain characters and escapes.
const quoted = /"((?:[^"\\\u0000-\u001f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*)"/y
const escapes: Record<string, string> = { b: '\b', f: '\f', n: '\n', r: '\r', t: '\t' }

/** isNumberText reports whether a text is a number of JSON. */
export const isNumberText = (text: string): boolean => numberAlone.test(text)

const unescape = (text: string) =>
  text.replace(/\\(?:u([0-9a-fA-F]{4})|(.))/g, (_, code: string | undefined, char: string) =>
    code === undefined ? (escapes[char] ?? char) : String.fromCharCode(parseInt(code, 16)),
  )

class Reader {
  private at = 0
  constructor(private readonly text: string) {}

  document(): Json {
    const value = this.value(0)
    this.skip()
    if (this.at < this.text.length) this.fail('there is text after the value')
    return value
  }

  private fail(problem: string): never {
    throw new JsonError(problem, this.text, this.at)
  }

  private match(pattern: RegExp): RegExpExecArray | null {
    pattern.lastIndex = this.at
    const found = pattern.exec(this.text)
    if (found !== null) this.at += found[0].length
    return found
  }

  private skip(): string {
    this.match(space)
    return this.text.charAt(this.at)
  }

  private value(depth: number): Json {
    if (depth > deepest) this.fail(`the value has more than ${deepest} levels`)
    const char = this.skip()
    if (char === '{') return this.object(depth)
    if (char === '[') return this.array(depth)
    if (char === '"') return this.string()
    for (const [word, value] of [
      ['true', true],
      ['false', false],
      ['null', null],
    ] as const) {
      if (this.text.startsWith(word, this.at)) {
        this.at += word.length
        return value
      }
    }
    const found = this.match(number)
    if (found === null)
      this.fail(char === '' ? 'the text ends where a value is expected' : `a value cannot begin with ${char}`)
    return new JsonNumber(found[0])
  }

  private string(): string {
    const found = this.match(quoted)
    if (found === null) this.fail('the string has no end, or contains a character that must be escaped')
    return unescape(found[1] ?? '')
  }

  private array(depth: number): Json[] {
    const list: Json[] = []
    this.at++
    if (this.skip() === ']') {
      this.at++
      return list
    }
    for (;;) {
      list.push(this.value(depth + 1))
      const char = this.skip()
      if (char !== ',' && char !== ']') this.fail('a comma or ] is expected')
      this.at++
      if (char === ']') return list
    }
  }

  private object(depth: number): JsonObject {
    const members: JsonObject = new Map()
    this.at++
    if (this.skip() === '}') {
      this.at++
      return members
    }
    for (;;) {
      if (this.skip() !== '"') this.fail('the name of a member, in quotes, is expected')
      const name = this.string()
      if (this.skip() !== ':') this.fail('a colon is expected')
      this.at++
      members.set(name, this.value(depth + 1))
      const char = this.skip()
      if (char !== ',' && char !== '}') this.fail('a comma or } is expected')
      this.at++
      if (char === '}') return members
    }
  }
}

/** readJson reads JSON text; it throws a JsonError if the text is not JSON. Of members with the same name, the last one counts. */
export const readJson = (text: string): Json => new Reader(text).document()

/** printJson prints a value, with `indent` spaces a level, or in one line. */
export function printJson(value: Json, indent = 0, level = 0): string {
  if (value === null || typeof value === 'boolean') return String(value)
  if (typeof value === 'string') return JSON.stringify(value)
  if (value instanceof JsonNumber) return value.text
  const list = Array.isArray(value)
  const parts = list
    ? value.map((v) => printJson(v, indent, level + 1))
    : [...value].map(([k, v]) => `${JSON.stringify(k)}:${indent > 0 ? ' ' : ''}${printJson(v, indent, level + 1)}`)
  const [open, close] = list ? '[]' : '{}'
  if (parts.length === 0 || indent === 0) return `${open ?? ''}${parts.join(',')}${close ?? ''}`
  const pad = ' '.repeat(indent * (level + 1))
  return `${open ?? ''}\n${pad}${parts.join(`,\n${pad}`)}\n${' '.repeat(indent * level)}${close ?? ''}`
}

export const isObject = (value: Json | undefined): value is JsonObject => value instanceof Map

/** jsonEqual reports whether two values are equal; numbers by their text, members in any order. */
export function jsonEqual(a: Json, b: Json): boolean {
  if (a instanceof JsonNumber) return b instanceof JsonNumber && a.text === b.text
  if (Array.isArray(a))
    return Array.isArray(b) && a.length === b.length && a.every((v, i) => jsonEqual(v, b[i] ?? null))
  if (a instanceof Map)
    return b instanceof Map && a.size === b.size && [...a].every(([k, v]) => b.has(k) && jsonEqual(v, b.get(k) ?? null))
  return a === b
}

/** escapePointer escapes a name for a JSON pointer. */
export const escapePointer = (name: string): string => name.replaceAll('~', '~0').replaceAll('/', '~1')
