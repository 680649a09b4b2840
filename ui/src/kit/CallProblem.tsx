import { CircleX } from 'lucide-react'
import { useEffect, useRef } from 'react'
import { callError, ofField } from '../api'
import styles from './CallProblem.module.css'

/**
 * The refusal of a call: the server's sentence, its reason, the fields. It stays until the next try. Errors of the fields in `except`, and of
 * what is in them, are shown at the fields themselves.
 */
export function CallProblem({ error, except = [] }: { error: unknown; except?: string[] }) {
  const box = useRef<HTMLDivElement>(null)
  useEffect(() => {
    box.current?.scrollIntoView({ block: 'nearest' })
  }, [error])
  const problem = callError(error)
  const fields = problem.fields.filter(({ path }) => !except.some((name) => ofField(path, name)))
  return (
    <div className={styles.problem} role="alert" ref={box}>
      <CircleX size={16} aria-hidden />
      <div>
        {problem.message}
        {problem.reason === '' ? null : (
          <>
            {' '}
            <code>{problem.reason}</code>
          </>
        )}
        {problem.unreached ? <div>It is not known whether the call took effect. Sending it again is safe.</div> : null}
        {problem.retryAfter === undefined ? null : <div>Try again in {Math.ceil(problem.retryAfter)} s.</div>}
        {fields.map((field) => (
          <div key={`${field.path} ${field.message}`}>
            <code>{field.path}</code> {field.message}
          </div>
        ))}
      </div>
    </div>
  )
}
