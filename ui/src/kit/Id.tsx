import { Check, Copy } from 'lucide-react'
import { useState, type ReactNode } from 'react'
import { shortId } from './format'
import styles from './Id.module.css'

/** copyText copies a text and reports whether the browser allowed it. */
export async function copyText(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text)
    return true
  } catch {
    return false
  }
}

/** A button that copies a text. */
export function CopyButton({ text, label }: { text: string; label: string }) {
  const [state, setState] = useState<'' | 'copied' | 'refused'>('')
  return (
    <button
      type="button"
      className={styles.copy}
      aria-label={state === '' ? label : state === 'copied' ? 'Copied' : 'The browser did not allow to copy'}
      title={state === 'refused' ? 'The browser did not allow to copy' : label}
      onClick={(event) => {
        event.preventDefault()
        event.stopPropagation()
        void copyText(text).then((done) => {
          setState(done ? 'copied' : 'refused')
          window.setTimeout(() => {
            setState('')
          }, 1500)
        })
      }}
    >
      {state === 'copied' ? <Check size={12} aria-hidden /> : <Copy size={12} aria-hidden />}
    </button>
  )
}

/** An ID: its first 8 and last 4 characters, whole in the tooltip and when copied. `children` replaces the text, for links. */
export function Id({ id, children, whole = false }: { id: string; children?: ReactNode; whole?: boolean }) {
  return (
    <span className={`${styles.id} ${whole ? styles.whole : ''}`} title={id}>
      <span className={styles.text}>{children ?? (whole ? id : shortId(id))}</span>
      <CopyButton text={id} label="Copy the whole ID" />
    </span>
  )
}
