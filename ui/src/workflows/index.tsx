export { FunctionPage } from './FunctionPage'
export { FunctionsPage } from './FunctionsPage'
export { WorkflowPage } from './WorkflowPage'
export { AllWorkflowsPage, WorkflowsPage } from './WorkflowsPage'
