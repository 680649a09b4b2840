import { useBlocker } from '@tanstack/react-router'
import { createContext, useEffect, useRef, useState } from 'react'

/** Closes the dialog or drawer around; it asks first where something was typed. Undefined outside of one. */
export const CloseContext = createContext<(() => void) | undefined>(undefined)

const fields =
  'textarea, [contenteditable=true], input:not([type=search], [type=checkbox], [type=radio], [role=combobox])'

const textOf = (field: Element) =>
  field instanceof HTMLInputElement || field instanceof HTMLTextAreaElement ? field.value : (field.textContent ?? '')

/** The texts of the fields in an element, as they were first and as they were typed. Searches are left out: nothing is lost with them. */
export class TypedTexts {
  private readonly first = new WeakMap<Element, string>()
  private readonly typed = new Map<Element, string>()
  /** Whether what was typed has been submitted, and nothing was typed since. */
  submitted = false

  /** follow observes the fields in an element, also those that appear later; the returned function ends that. */
  follow(root: HTMLElement, onTyped: () => void): () => void {
    const remember = (field: Element | null) => {
      if (field !== null && !this.first.has(field)) this.first.set(field, textOf(field))
    }
    const onFocus = (event: Event) => {
      remember((event.target as Element).closest(fields))
    }
    const onInput = (event: Event) => {
      const field = (event.target as Element).closest(fields)
      if (field === null) return
      this.submitted = false
      this.typed.set(field, textOf(field))
      onTyped()
    }
    for (const field of root.querySelectorAll(fields)) remember(field)
    root.addEventListener('focusin', onFocus)
    root.addEventListener('input', onInput)
    return () => {
      root.removeEventListener('focusin', onFocus)
      root.removeEventListener('input', onInput)
    }
  }

  /** kept reports whether a field has another text than first. A field that is gone counts with its last text. */
  kept(): boolean {
    return [...this.typed].some(
      ([field, last]) => (field.isConnected ? textOf(field) : last) !== (this.first.get(field) ?? ''),
    )
  }
}

/** A change of the page while a dialog is open. */
interface Leaving {
  /** Whether a field has another text than first. */
  kept: boolean
  submitted: boolean
  action: string
  from: string
  to: string
}

/**
 * asksFirst reports whether leaving a page asks first, because what was typed would be lost. An action that succeeds closes its dialog and may
 * open another page in the same turn; a change of the query string keeps the page. Going back or forward may lead anywhere.
 */
export const asksFirst = ({ kept, submitted, action, from, to }: Leaving): boolean =>
  kept && ((action !== 'PUSH' && action !== 'REPLACE') || (!submitted && from !== to))

/**
 * useTyped keeps what is typed in a dialog or drawer from being lost: closing it and leaving the page ask first. `content` is its element.
 * `asking` is set while it asks; the answer is `stay` or `discard`.
 */
export function useTyped(content: HTMLElement | null, onClose: () => void) {
  const [texts] = useState(() => new TypedTexts())
  const [typed, setTyped] = useState(false)
  const [closing, setClosing] = useState(false)
  useEffect(
    () =>
      content === null
        ? undefined
        : texts.follow(content, () => {
            setTyped(true)
          }),
    [content, texts],
  )
  const away = useBlocker({
    disabled: !typed,
    withResolver: true,
    enableBeforeUnload: () => texts.kept(),
    shouldBlockFn: ({ current, next, action }) =>
      asksFirst({
        kept: texts.kept(),
        submitted: texts.submitted,
        action,
        from: current.pathname,
        to: next.pathname,
      }),
  })
  const close = useRef(onClose)
  useEffect(() => {
    close.current = onClose
  }, [onClose])
  const [request] = useState(() => () => {
    if (texts.kept()) setClosing(true)
    else close.current()
  })
  return {
    request,
    onSubmit: () => {
      texts.submitted = true
    },
    asking: closing || away.status === 'blocked',
    stay: () => {
      setClosing(false)
      away.reset?.()
    },
    discard: () => {
      setClosing(false)
      if (away.status === 'blocked') away.proceed()
      else onClose()
    },
  }
}
