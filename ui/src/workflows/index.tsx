export function WorkflowsPage() { return null }
export function WorkflowPage() { return null }
