export { SystemPage } from './SystemPage'
