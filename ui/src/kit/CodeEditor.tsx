import { lazy, Suspense } from 'react'
import styles from './CodeEditor.module.css'
import { Skeleton } from './StateView'

export interface CodeEditorProps {
  value: string
  onChange?: (text: string) => void
  /** Names the editor for screen readers. */
  label: string
  readOnly?: boolean
  /** The keyboard is in the editor when it is shown. */
  autoFocus?: boolean
  /** ID of an element that describes the editor, such as its error. */
  describedBy?: string
}

const CodeMirror = lazy(() => import('./CodeMirror'))

/** An editor for JSON text, with line numbers and marks where the text is not JSON; each sensitive value in it is one piece. It is loaded when it is first shown. */
export function CodeEditor(props: CodeEditorProps) {
  return (
    <div className={styles.frame}>
      <Suspense fallback={<Skeleton rows={8} />}>
        <CodeMirror {...props} />
      </Suspense>
    </div>
  )
}
