export { WorkflowPage } from './WorkflowPage'
export { WorkflowsPage } from './WorkflowsPage'
