import { X } from 'lucide-react'
import { useEffect, useState } from 'react'
import { Button } from './Button'
import { Select, TextField } from './Field'
import styles from './FilterFields.module.css'

export interface FilterField {
  name: string
  label: string
  /** A choice of one of these; without options a text. */
  options?: { value: string; label: string }[]
  placeholder?: string
}

/** The filters of a list. Their values are in the URL: the caller passes them and writes a change there. */
export function FilterFields({
  fields,
  values,
  onChange,
}: {
  fields: FilterField[]
  values: Record<string, string>
  onChange: (change: Record<string, string | undefined>) => void
}) {
  const set = fields.filter((f) => (values[f.name] ?? '') !== '')
  return (
    <div className={styles.fields} role="search">
      {fields.map((field) =>
        field.options === undefined ? (
          <Text
            key={field.name}
            field={field}
            value={values[field.name] ?? ''}
            onChange={(value) => onChange({ [field.name]: value === '' ? undefined : value })}
          />
        ) : (
          <Select
            key={field.name}
            label={field.label}
            labelHidden
            options={[{ value: '', label: `${field.label}: all` }, ...field.options]}
            value={values[field.name] ?? ''}
            onChange={(event) => onChange({ [field.name]: event.target.value === '' ? undefined : event.target.value })}
          />
        ),
      )}
      {set.length === 0 ? null : (
        <Button
          kind="quiet"
          icon={<X size={14} aria-hidden />}
          onClick={() => onChange(Object.fromEntries(set.map((f) => [f.name, undefined])))}
        >
          Clear
        </Button>
      )}
    </div>
  )
}

/** A text that is applied when typing pauses, or at once with Enter. */
function Text({ field, value, onChange }: { field: FilterField; value: string; onChange: (value: string) => void }) {
  const [text, setText] = useState(value)
  useEffect(() => {
    setText(value)
  }, [value])
  useEffect(() => {
    if (text === value) return undefined
    const timer = window.setTimeout(() => {
      onChange(text.trim())
    }, 350)
    return () => {
      window.clearTimeout(timer)
    }
  }, [text, value, onChange])
  return (
    <TextField
      label={field.label}
      labelHidden
      type="search"
      placeholder={field.placeholder ?? field.label}
      value={text}
      onChange={(event) => setText(event.target.value)}
      onKeyDown={(event) => {
        if (event.key === 'Enter') onChange(text.trim())
      }}
      data-filter={field.name}
    />
  )
}
