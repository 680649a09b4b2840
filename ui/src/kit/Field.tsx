import {
  useId,
  type InputHTMLAttributes,
  type ReactNode,
  type SelectHTMLAttributes,
  type TextareaHTMLAttributes,
} from 'react'
import styles from './Field.module.css'

interface Around {
  label: ReactNode
  hint?: ReactNode
  /** What is wrong with the value. */
  error?: ReactNode
  required?: boolean
  /** The label is only for screen readers. */
  labelHidden?: boolean
}

/** What an input needs to be tied to its label, hint and error. */
export interface FieldProps {
  id: string
  'aria-describedby': string | undefined
  'aria-invalid': true | undefined
  'aria-required': true | undefined
}

/** A labelled input with its hint and error. */
export function Field({
  label,
  hint,
  error,
  required = false,
  labelHidden = false,
  children,
}: Around & { children: (props: FieldProps) => ReactNode }) {
  const id = useId()
  const described = [hint === undefined ? '' : `${id}-hint`, error ? `${id}-error` : ''].filter(Boolean).join(' ')
  return (
    <div className={styles.field}>
      <label htmlFor={id} className={labelHidden ? 'hidden' : styles.label}>
        {label}
        {required ? (
          <span className={styles.required} aria-hidden>
            {' '}
            *
          </span>
        ) : null}
      </label>
      {children({
        id,
        'aria-describedby': described === '' ? undefined : described,
        'aria-invalid': error ? true : undefined,
        'aria-required': required || undefined,
      })}
      {hint === undefined ? null : (
        <div id={`${id}-hint`} className={styles.hint}>
          {hint}
        </div>
      )}
      {error ? (
        <div id={`${id}-error`} className={styles.error} role="alert">
          {error}
        </div>
      ) : null}
    </div>
  )
}

export function TextField({
  label,
  hint,
  error,
  required,
  labelHidden,
  ...input
}: Around & InputHTMLAttributes<HTMLInputElement>) {
  return (
    <Field label={label} hint={hint} error={error} required={required ?? false} labelHidden={labelHidden ?? false}>
      {(props) => (
        <input type="text" autoComplete="off" spellCheck={false} {...input} {...props} className={styles.input} />
      )}
    </Field>
  )
}

export function TextArea({
  label,
  hint,
  error,
  required,
  labelHidden,
  ...input
}: Around & TextareaHTMLAttributes<HTMLTextAreaElement>) {
  return (
    <Field label={label} hint={hint} error={error} required={required ?? false} labelHidden={labelHidden ?? false}>
      {(props) => <textarea rows={2} {...input} {...props} className={styles.input} />}
    </Field>
  )
}

/** A choice of one. The browser's own control is accessible and works on a phone. */
export function Select({
  label,
  hint,
  error,
  required,
  labelHidden,
  options,
  ...input
}: Around &
  SelectHTMLAttributes<HTMLSelectElement> & { options: { value: string; label: string; disabled?: boolean }[] }) {
  return (
    <Field label={label} hint={hint} error={error} required={required ?? false} labelHidden={labelHidden ?? false}>
      {(props) => (
        <select {...input} {...props} className={styles.input}>
          {options.map((option) => (
            <option key={option.value} value={option.value} disabled={option.disabled}>
              {option.label}
            </option>
          ))}
        </select>
      )}
    </Field>
  )
}

export function Checkbox({
  label,
  hint,
  ...input
}: { label: ReactNode; hint?: ReactNode } & Omit<InputHTMLAttributes<HTMLInputElement>, 'type'>) {
  const id = useId()
  return (
    <div className={styles.check}>
      <input type="checkbox" id={id} {...input} aria-describedby={hint === undefined ? undefined : `${id}-hint`} />
      <label htmlFor={id}>{label}</label>
      {hint === undefined ? null : (
        <div id={`${id}-hint`} className={styles.hint}>
          {hint}
        </div>
      )}
    </div>
  )
}
