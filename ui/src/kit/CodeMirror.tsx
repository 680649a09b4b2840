import { defaultKeymap, history, historyKeymap } from '@codemirror/commands'
import { json } from '@codemirror/lang-json'
import { bracketMatching, HighlightStyle, indentOnInput, syntaxHighlighting } from '@codemirror/language'
import { linter, lintGutter } from '@codemirror/lint'
import { EditorState } from '@codemirror/state'
import { drawSelection, EditorView, highlightActiveLine, keymap, lineNumbers } from '@codemirror/view'
import { tags } from '@lezer/highlight'
import { useEffect, useRef } from 'react'
import { cspNonce, JsonError, readJson } from '../api'
import styles from './CodeEditor.module.css'
import { sealedValues } from './sealed'

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

const colours = HighlightStyle.define([
  { tag: tags.propertyName, color: 'var(--blue)' },
  { tag: tags.string, color: 'var(--green)' },
  { tag: [tags.number, tags.bool, tags.null], color: 'var(--violet)' },
  { tag: tags.comment, color: 'var(--text-3)' },
])

const look = EditorView.theme({
  '&': { fontSize: '12px', color: 'var(--text)', backgroundColor: 'var(--surface)', height: '100%' },
  '&.cm-focused': { outline: 'none' },
  '.cm-content': { fontFamily: 'var(--mono)', caretColor: 'var(--text)' },
  '.cm-cursor': { borderLeftColor: 'var(--text)' },
  '.cm-gutters': { backgroundColor: 'var(--sunken)', color: 'var(--text-3)', border: 'none' },
  '.cm-activeLine, .cm-activeLineGutter': { backgroundColor: 'transparent' },
  '.cm-selectionBackground, &.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground': {
    backgroundColor: 'var(--selected)',
  },
  '.cm-tooltip': { backgroundColor: 'var(--raised)', color: 'var(--text)', border: '1px solid var(--border)' },
})

/** Marks where a text is not JSON; an empty text is not marked. */
const jsonLinter = linter((view) => {
  const text = view.state.doc.toString()
  if (text.trim() === '') return []
  try {
    readJson(text)
    return []
  } catch (error) {
    if (!(error instanceof JsonError)) throw error
    const from = Math.min(error.offset, text.length)
    return [{ from, to: Math.min(from + 1, text.length), severity: 'error', message: error.message }]
  }
})

/** The editor itself; loaded on demand by CodeEditor. */
export default function CodeMirror({
  value,
  onChange,
  label,
  readOnly = false,
  autoFocus = false,
  describedBy,
}: CodeEditorProps) {
  const host = useRef<HTMLDivElement>(null)
  const view = useRef<EditorView | null>(null)
  const onText = useRef(onChange)
  const first = useRef(value)
  useEffect(() => {
    onText.current = onChange
  }, [onChange])

  useEffect(() => {
    if (host.current === null) return undefined
    const nonce = cspNonce()
    const editor = new EditorView({
      parent: host.current,
      state: EditorState.create({
        doc: first.current,
        extensions: [
          ...(nonce === undefined ? [] : [EditorView.cspNonce.of(nonce)]),
          lineNumbers(),
          history(),
          drawSelection(),
          indentOnInput(),
          bracketMatching(),
          highlightActiveLine(),
          // Tab leaves the editor, so that the keyboard is not trapped in it; Ctrl-Enter submits the dialog around it.
          keymap.of([...defaultKeymap.filter((key) => key.key !== 'Mod-Enter'), ...historyKeymap]),
          json(),
          syntaxHighlighting(colours),
          jsonLinter,
          lintGutter(),
          sealedValues,
          look,
          EditorView.lineWrapping,
          EditorState.readOnly.of(readOnly),
          EditorView.contentAttributes.of({
            'aria-label': label,
            ...(describedBy === undefined ? {} : { 'aria-describedby': describedBy }),
          }),
          EditorView.updateListener.of((update) => {
            if (update.docChanged) onText.current?.(update.state.doc.toString())
          }),
        ],
      }),
    })
    view.current = editor
    if (autoFocus) editor.focus()
    return () => {
      view.current = null
      first.current = editor.state.doc.toString()
      editor.destroy()
    }
  }, [label, readOnly, autoFocus, describedBy])

  useEffect(() => {
    const editor = view.current
    if (editor === null || editor.state.doc.toString() === value) return
    editor.dispatch({ changes: { from: 0, to: editor.state.doc.length, insert: value } })
  }, [value])

  return <div ref={host} className={styles.host} />
}
