import type { FunctionUser } from '../gen/signalbox/v1/workflow_pb'

/** A workflow whose published versions call a function. */
export interface Caller {
  workflow: string
  versions: string[]
  /** Whether the latest version of the workflow is one of them. */
  latest: boolean
}

/** callersOf groups the versions that call a function by workflow. First are those whose latest version calls it. */
export function callersOf(users: readonly Pick<FunctionUser, 'workflow' | 'version' | 'latest'>[]): Caller[] {
  const found = new Map<string, Caller>()
  for (const { workflow, version, latest } of users) {
    const caller = found.get(workflow) ?? { workflow, versions: [], latest: false }
    caller.versions.push(version)
    caller.latest ||= latest
    found.set(workflow, caller)
  }
  return [...found.values()].sort((a, b) => Number(b.latest) - Number(a.latest))
}
