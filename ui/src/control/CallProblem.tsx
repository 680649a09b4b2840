import { CircleX } from 'lucide-react'
import { callError } from '../api'
import styles from './control.module.css'

/** The refusal of a call: the server's sentence, its reason, the fields. It stays until the next try. */
export function CallProblem({ error, except = [] }: { error: unknown; except?: string[] }) {
  const problem = callError(error)
  const fields = problem.fields.filter((field) => !except.includes(field.path))
  return (
    <div className={styles.problem} role="alert">
      <CircleX size={16} aria-hidden />
      <div>
        {problem.message}
        {problem.reason === '' ? null : <> <code>{problem.reason}</code></>}
        {problem.unreached ? <div>It is not known whether the call took effect. Sending it again is safe.</div> : null}
        {problem.retryAfter === undefined ? null : <div>Try again in {Math.ceil(problem.retryAfter)} s.</div>}
        {fields.map((field) => <div key={field.path}><code>{field.path}</code> {field.message}</div>)}
      </div>
    </div>
  )
}
