export { RestorePage } from './RestorePage'
export { SystemPage } from './SystemPage'
