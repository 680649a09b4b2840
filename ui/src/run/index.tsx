export { RunPage } from './RunPage'
export function ComparePage() { return null }
