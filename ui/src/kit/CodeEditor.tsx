import { lazy, Suspense } from 'react'
import styles from './CodeEditor.module.css'
import type { CodeEditorProps } from './CodeMirror'
import { Skeleton } from './StateView'

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
