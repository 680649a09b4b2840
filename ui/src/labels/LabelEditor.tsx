import { Plus, Trash2 } from 'lucide-react'
import { useEffect, useRef } from 'react'
import { Button, TextField } from '../kit'
import { type LabelRow, labelList, labelText, mostLabels, nextID, rowProblems, serverProblems } from './label'
import styles from './labels.module.css'

export interface LabelEditorProps {
  rows: LabelRow[]
  onChange: (rows: LabelRow[]) => void
  /** What the server says about labels, by path: "labels" or "labels.KEY". */
  fields?: readonly { path: string; message: string }[]
  /** The labels that the run has without any row; a row with the same key replaces one. */
  inherited?: Record<string, string>
  /** The labels that the workflow computes from the input, as far as they are known. */
  computed?: Record<string, string>
  disabled?: boolean
}

/** Labels as rows of key and value. Enter in a value adds the next row. */
export function LabelEditor({
  rows,
  onChange,
  fields = [],
  inherited = {},
  computed = {},
  disabled = false,
}: LabelEditorProps) {
  const list = useRef<HTMLDivElement>(null)
  // The field that a new row begins in.
  const focus = useRef<'' | 'key' | 'value'>('')
  useEffect(() => {
    if (focus.current === '') return
    list.current?.querySelector<HTMLInputElement>(`[data-row]:last-of-type [data-part=${focus.current}] input`)?.focus()
    focus.current = ''
  }, [rows.length])
  const problems = rowProblems(rows)
  const add = (key = '', value = '') => {
    focus.current = key === '' ? 'key' : 'value'
    onChange([...rows, { id: nextID(rows), key, value }])
  }
  const remove = (id: number) => {
    list.current?.querySelector('button')?.focus()
    onChange(rows.filter((row) => row.id !== id))
  }
  const set = (id: number, part: Partial<LabelRow>) => {
    onChange(rows.map((row) => (row.id === id ? { ...row, ...part } : row)))
  }
  const keys = new Set(rows.map((row) => row.key.trim()))
  const { at, elsewhere } = serverProblems(fields, keys)
  return (
    <div ref={list} role="group" aria-label="Labels" className={styles.editor}>
      <div className={styles.line}>
        <h3>Labels</h3>
        <Button
          kind="quiet"
          icon={<Plus size={14} aria-hidden />}
          refused={rows.length >= mostLabels ? `A run has at most ${mostLabels} labels` : undefined}
          disabled={disabled}
          onClick={() => add()}
        >
          Add a label
        </Button>
      </div>
      {Object.keys(inherited).length === 0 ? null : (
        <>
          <p className={styles.hint}>The new run has the labels of the replayed run. Choose one to replace it.</p>
          <ul className={styles.chips} aria-label="Labels of the replayed run">
            {labelList(inherited).map((label) => (
              <li key={label.key} className={`${styles.chip} ${keys.has(label.key) ? styles.replaced : ''}`}>
                <button
                  type="button"
                  className={styles.text}
                  title={labelText(label)}
                  aria-label={keys.has(label.key) ? `${labelText(label)}, replaced` : `Replace ${labelText(label)}`}
                  disabled={disabled || keys.has(label.key)}
                  onClick={() => add(label.key, label.value)}
                >
                  <span className={styles.key}>{label.key}=</span>
                  {label.value}
                </button>
              </li>
            ))}
          </ul>
        </>
      )}
      {rows.map((row, index) => {
        const key = row.key.trim()
        const before = Object.hasOwn(inherited, key) ? inherited[key] : undefined
        return (
          <div key={row.id} data-row className={styles.row}>
            <div data-part="key">
              <TextField
                label={`Key of label ${index + 1}`}
                labelHidden
                placeholder="Key"
                value={row.key}
                disabled={disabled}
                error={key === '' ? undefined : problems.get(row.id)?.key}
                onChange={(event) => set(row.id, { key: event.target.value })}
              />
            </div>
            <div data-part="value">
              <TextField
                label={`Value of label ${index + 1}`}
                labelHidden
                placeholder="Value"
                value={row.value}
                disabled={disabled}
                hint={before === undefined ? undefined : <span className={styles.hint}>Replaces {before}</span>}
                error={(row.value.trim() === '' ? undefined : problems.get(row.id)?.value) ?? at.get(key)}
                onChange={(event) => set(row.id, { value: event.target.value })}
                onKeyDown={(event) => {
                  if (event.key !== 'Enter' || event.ctrlKey || event.metaKey) return
                  event.preventDefault()
                  if (key !== '' && row.value.trim() !== '' && rows.length < mostLabels) add()
                }}
              />
            </div>
            <Button
              kind="quiet"
              aria-label={key === '' ? `Remove label ${index + 1}` : `Remove label ${key}`}
              icon={<Trash2 size={14} aria-hidden />}
              disabled={disabled}
              onClick={() => remove(row.id)}
            />
          </div>
        )
      })}
      {Object.keys(computed).length === 0 ? null : (
        <p className={styles.hint}>
          Computed by the workflow:{' '}
          {labelList(computed).map((label) => (
            <code key={label.key}>{labelText(label)} </code>
          ))}
        </p>
      )}
      {elsewhere.map((message) => (
        <p key={message} className={styles.error} role="alert">
          {message}
        </p>
      ))}
    </div>
  )
}
