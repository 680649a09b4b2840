/** workflowParams returns the parameters of the path of a workflow's page for its name, "namespace/name". */
export function workflowParams(
  project: string,
  workflow: string,
): { project: string; namespace: string; name: string } {
  const slash = workflow.indexOf('/')
  return { project, namespace: workflow.slice(0, Math.max(0, slash)), name: workflow.slice(slash + 1) }
}
