export { WorkflowPage } from './WorkflowPage'
export { AllWorkflowsPage, WorkflowsPage } from './WorkflowsPage'
