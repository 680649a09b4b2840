export * as clients from './clients'
export { now, useNow, observeServerTime } from './clock'
export { type CallError, callError, isRepeatable, ofField } from './errors'
export { type Link, reportAnswer, useLink } from './link'
export { type ListPage, type Pages, usePages } from './pages'
export { problemsKey, usePlatformProblems, useProblem, useProblemCounts } from './problems'
export { durationMilliseconds, milliseconds, timestamp } from './time'
export {
  escapePointer,
  isNumberText,
  isObject,
  type Json,
  jsonEqual,
  JsonError,
  JsonNumber,
  type JsonObject,
  printJson,
  readJson,
} from './json'
export { newRequestID } from './requestid'
export { useConnection, useSystemStatus } from './status'
export { maintenanceKey, useMaintenance } from './maintenance'
export {
  brief,
  diffJson,
  type EditProblem,
  find,
  hasMark,
  insert,
  isSealed,
  mark,
  markProblems,
  numberMarks,
  type Operation,
  plainMarks,
  printPatch,
  splitPointer,
  undo,
} from './patch'
export { fetchRun, hasEnded, runKey, useRun } from './run'
export { cspNonce } from './nonce'
export { setCSRFToken } from './csrf'
export { requireSignIn, useSignInNeeded } from './signin'
export { followStream, retryDelay } from './stream'
