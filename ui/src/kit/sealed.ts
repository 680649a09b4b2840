import { RangeSetBuilder } from '@codemirror/state'
import { Decoration, type DecorationSet, EditorView, ViewPlugin, type ViewUpdate, WidgetType } from '@codemirror/view'
import styles from './CodeEditor.module.css'

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
    for (const found of view.state.sliceDoc(from, to).matchAll(/⟦redacted(?::\d+)?⟧/g))
      builder.add(from + found.index, from + found.index + found[0].length, seal)
  }
  return builder.finish()
}

/** Shows each mark of a sensitive value as one piece: the cursor passes it as a whole, and a deletion removes it as a whole. */
export const sealedValues = ViewPlugin.fromClass(
  class {
    decorations: DecorationSet
    constructor(view: EditorView) {
      this.decorations = seals(view)
    }

    update(update: ViewUpdate): void {
      if (update.docChanged || update.viewportChanged) this.decorations = seals(update.view)
    }
  },
  {
    decorations: (plugin) => plugin.decorations,
    provide: (plugin) => EditorView.atomicRanges.of((view) => view.plugin(plugin)?.decorations ?? Decoration.none),
  },
)
