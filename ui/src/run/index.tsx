export { ComparePage } from './ComparePage'
export { RunPage } from './RunPage'
