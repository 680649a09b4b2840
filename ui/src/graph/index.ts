import { lazy } from 'react'

export { nodeTitle, type TaskState } from './model'

/** The graph with its layout is loaded when it is first shown. */
export const TaskGraph = lazy(() => import('./TaskGraph'))
