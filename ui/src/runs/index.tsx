export { BatchDialog } from './BatchDialog'
export { noFilter } from './filter'
export { RunsPage } from './RunsPage'
