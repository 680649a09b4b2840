export { DispatcherPage } from './DispatcherPage'
export { DispatchersPage } from './DispatchersPage'
