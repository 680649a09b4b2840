import { isObject, type Json, JsonError, printJson, readJson } from '../api'
import { initial, withoutMarks } from './schema'

/** The input as a person writes it. */
export interface Draft {
  workflow: string
  /** The version whose schema the form has; empty before it was read. */
  version: string
  mode: 'form' | 'json'
  /** In the form. */
  value: Json | undefined
  /** In JSON. */
  text: string
  /** Whether a person has changed it: then it is kept when the version changes. */
  touched: boolean
  /** Counts the times that the value was replaced as a whole, which makes the fields anew. */
  filled: number
}

export const noDraft: Draft = {
  workflow: '',
  version: '',
  mode: 'form',
  value: undefined,
  text: '',
  touched: false,
  filled: 0,
}

/** readSchema reads the schema of a version's input; undefined if it has none, or none that a form can be made of. */
export function readSchema(text: string): Json | undefined {
  if (text === '') return undefined
  try {
    const schema = readJson(text)
    return isObject(schema) ? schema : undefined
  } catch {
    return undefined // too deep for a form: the server validates it nevertheless
  }
}

const printed = (value: Json | undefined) => (value === undefined ? '' : printJson(value, 2))

/** adopted returns the draft for a version: what was typed for another version of the workflow, or the defaults. */
export function adopted(before: Draft, workflow: string, version: string, schema: Json | undefined): Draft {
  const next = { ...before, workflow, version, filled: before.filled + 1 }
  if (before.touched && before.workflow === workflow) {
    return schema === undefined && before.mode === 'form'
      ? { ...next, mode: 'json', text: printed(before.value) }
      : next
  }
  const value = schema === undefined ? undefined : initial(schema, schema, true)
  return {
    ...next,
    touched: false,
    value,
    text: schema === undefined ? '{}' : '',
    mode: schema === undefined ? 'json' : 'form',
  }
}

/** valueOf returns the value of a draft; the problem is a text for a person, of a JSON text that cannot be read. */
export function valueOf({ mode, value, text }: Draft): { value: Json | undefined; problem: string | undefined } {
  if (mode === 'form') return { value, problem: undefined }
  if (text.trim() === '') return { value: undefined, problem: undefined }
  try {
    return { value: readJson(text), problem: undefined }
  } catch (error) {
    if (!(error instanceof JsonError)) throw error
    return { value: undefined, problem: error.message }
  }
}

/** inMode returns the draft as a form or as JSON, with the same value. A text that is not JSON has no form. */
export function inMode(draft: Draft, mode: Draft['mode']): Draft {
  if (draft.mode === mode) return draft
  if (mode === 'json') return { ...draft, mode, text: printed(draft.value) }
  const { value, problem } = valueOf(draft)
  return problem === undefined ? { ...draft, mode, value, filled: draft.filled + 1 } : draft
}

/** filledWith returns the draft with another value as a whole. */
export const filledWith = (draft: Draft, value: Json | undefined): Draft => ({
  ...draft,
  value,
  text: printed(value),
  touched: true,
  filled: draft.filled + 1,
})

/**
 * lastInput returns the input of the last run, without the values that are not shown, and what to say about it. The run is undefined if there
 * is none.
 */
export function lastInput(
  workflow: string,
  run: { input?: { json: string } | undefined } | undefined,
): { input: { value: Json | undefined } | undefined; note: string | undefined } {
  if (run === undefined) return { input: undefined, note: `There is no earlier run of ${workflow}.` }
  if (run.input === undefined) return { input: undefined, note: 'The last run had no input.' }
  const { value, removed } = withoutMarks(readJson(run.input.json))
  const empty = removed.map((pointer) => (pointer === '' ? 'the whole input' : pointer)).join(', ')
  return {
    input: { value },
    note: empty === '' ? undefined : `Sensitive values of the last input are empty here: ${empty}.`,
  }
}
