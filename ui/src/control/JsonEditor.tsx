import { defaultKeymap, history, historyKeymap } from '@codemirror/commands'
import { json } from '@codemirror/lang-json'
import { bracketMatching, defaultHighlightStyle, HighlightStyle, indentUnit, syntaxHighlighting } from '@codemirror/language'
import { EditorState, type Extension, RangeSetBuilder } from '@codemirror/state'
import { Decoration, type DecorationSet, EditorView, keymap, lineNumbers, ViewPlugin, type ViewUpdate, WidgetType } from '@codemirror/view'
import { useEffect, useRef } from 'react'
import { cspNonce } from '../api'
import styles from './control.module.css'

class Seal extends WidgetType {
  override toDOM(): HTMLElement {
    const element = document.createElement('span')
    element.className = styles.seal ?? ''
    element.textContent = 'sealed'
    element.title = 'A sensitive value: keep it, replace it or remove it as a whole'
    return element
  }

  override eq(): boolean {
    return true
  }
}

const seal = Decoration.replace({ widget: new Seal() })

function seals(view: EditorView): DecorationSet {
  const builder = new RangeSetBuilder<Decoration>()
  for (const { from, to } of view.visibleRanges) {
    for (const found of view.state.sliceDoc(from, to).matchAll(/⟦redacted(?::\d+)?⟧/g)) builder.add(from + found.index, from + found.index + found[0].length, seal)
  }
  return builder.finish()
}

/** Shows each mark as one piece: the cursor passes it as a whole, and a deletion removes it as a whole. */
const sealed = ViewPlugin.fromClass(
  class {
    decorations: DecorationSet
    constructor(view: EditorView) {
      this.decorations = seals(view)
    }

    update(update: ViewUpdate): void {
      if (update.docChanged || update.viewportChanged) this.decorations = seals(update.view)
    }
  },
  { decorations: (plugin) => plugin.decorations, provide: (plugin) => EditorView.atomicRanges.of((view) => view.plugin(plugin)?.decorations ?? Decoration.none) },
)

const theme = EditorView.theme({
  '&': { height: '100%', backgroundColor: 'var(--surface)', color: 'var(--text)', fontSize: '12px' },
  '.cm-scroller': { fontFamily: 'var(--mono)', lineHeight: '18px' },
  '.cm-gutters': { backgroundColor: 'var(--sunken)', color: 'var(--text-3)', border: '0' },
  '.cm-content': { caretColor: 'var(--text)' },
  '.cm-cursor': { borderLeftColor: 'var(--text)' },
  '&.cm-focused': { outline: '2px solid var(--blue)', outlineOffset: '1px' },
  '&.cm-focused .cm-selectionBackground, .cm-selectionBackground, ::selection': { backgroundColor: 'var(--selected) !important' },
})

/** The default's tags in the colours of the theme, which have the contrast in dark and light. */
const themed: Record<string, string> = { '#219': 'var(--violet)', '#164': 'var(--blue)', '#a11': 'var(--green)', '#00c': 'var(--text-2)', '#f00': 'var(--red)' }
const colours = HighlightStyle.define(defaultHighlightStyle.specs.map(({ tag, color }) => ({ tag, color: themed[String(color)] ?? 'var(--text)' })))

interface Props {
  text: string
  label: string
  onChange: (text: string) => void
}

/** A JSON editor in which sealed values are single pieces. Escape and then Tab leaves it; Tab alone moves on, too. */
export default function JsonEditor({ text, label, onChange }: Props) {
  const host = useRef<HTMLDivElement>(null)
  const view = useRef<EditorView | undefined>(undefined)
  const changed = useRef(onChange)
  changed.current = onChange
  const initial = useRef(text)
  useEffect(() => {
    if (host.current === null) return undefined
    const nonce = cspNonce()
    const extensions: Extension[] = [
      ...(nonce === undefined ? [] : [EditorView.cspNonce.of(nonce)]),
      lineNumbers(), history(), bracketMatching(), indentUnit.of('  '), json(), syntaxHighlighting(colours), sealed, theme,
      keymap.of([...defaultKeymap.filter((key) => key.key !== 'Mod-Enter'), ...historyKeymap]),
      EditorView.lineWrapping,
      EditorView.contentAttributes.of({ 'aria-label': label }),
      EditorView.updateListener.of((update) => { if (update.docChanged) changed.current(update.state.doc.toString()) }),
    ]
    const made = new EditorView({ parent: host.current, state: EditorState.create({ doc: initial.current, extensions }) })
    view.current = made
    made.focus()
    return () => {
      made.destroy()
    }
  }, [label])
  useEffect(() => {
    const shown = view.current
    if (shown === undefined || shown.state.doc.toString() === text) return
    shown.dispatch({ changes: { from: 0, to: shown.state.doc.length, insert: text } })
  }, [text])
  return <div ref={host} className={styles.editor} />
}
