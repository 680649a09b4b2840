import { isObject, type Json, JsonError, printJson, readJson } from '../api/json'
import { diffJson, type EditProblem, markProblems, numberMarks, type Operation, seals, undo } from '../api/patch'

/** The input of a run as it is edited: the shown value with numbered marks, and the text of the editor. */
export interface Draft {
  original: Json
  pointers: Map<number, string>
  text: string
}

/** newDraft begins an edit of an input. It throws a JsonError if the input is not JSON. */
export function newDraft(input: string): Draft {
  const { value, pointers } = numberMarks(readJson(input))
  return { original: value, pointers, text: printJson(value, 2) }
}

/** What an edit amounts to. */
export interface Edit {
  operations: Operation[]
  problems: EditProblem[]
  /** Why the text is not JSON; empty if it is. */
  syntax: string
  value: Json | undefined
  /** Pointers of the sealed values that stay as they are. */
  kept: string[]
}

/** The server takes at most this many operations. */
const mostOperations = 1000

/** readEdit compares the text of the editor with the input. */
export function readEdit(draft: Draft): Edit {
  let value: Json
  try {
    value = readJson(draft.text)
  } catch (error) {
    return {
      operations: [],
      problems: [],
      syntax: error instanceof JsonError ? error.message : 'the text is not JSON',
      value: undefined,
      kept: [],
    }
  }
  const operations = diffJson(draft.original, value)
  const problems = markProblems(operations, draft.pointers)
  if (operations.length > mostOperations)
    problems.push({
      path: '',
      message: `There are ${operations.length} changes; the server takes at most ${mostOperations}.`,
    })
  const present = new Set(seals(value))
  return {
    operations,
    problems,
    syntax: '',
    value,
    kept: [...draft.pointers].filter(([id]) => present.has(String(id))).map(([, pointer]) => pointer),
  }
}

/** undoEdit takes one change back. */
export const undoEdit = (draft: Draft, value: Json, operation: Operation): Draft => ({
  ...draft,
  text: printJson(undo(value, operation), 2),
})

/** changeSealed replaces the sealed value of a pointer of the original by an empty text, or removes it. */
export function changeSealed(draft: Draft, value: Json, pointer: string, how: 'replace' | 'remove'): Draft {
  const id = [...draft.pointers].find(([, p]) => p === pointer)?.[0]
  const visit = (v: Json): Json | undefined => {
    if (typeof v === 'string') return seals(v).includes(String(id)) ? (how === 'replace' ? '' : undefined) : v
    if (Array.isArray(v)) return v.map(visit).filter((item) => item !== undefined)
    return isObject(v)
      ? new Map(
          [...v]
            .map(([name, item]) => [name, visit(item)] as const)
            .filter((entry): entry is [string, Json] => entry[1] !== undefined),
        )
      : v
  }
  return { ...draft, text: printJson(visit(value) ?? null, 2) }
}
