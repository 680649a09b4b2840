import { useEffect, useRef } from 'react'
import { usePreferences } from '../kit'

/** typing reports whether a key belongs to a field or an open menu or dialog, not to the page. */
export const typing = (target: EventTarget | null): boolean =>
  target instanceof HTMLElement &&
  target.closest('input, textarea, select, [contenteditable=true], [role=menu], [role=dialog]') !== null

/** isPlain reports whether a key is pressed without another one that would change its meaning; Shift is part of the key itself. */
export const isPlain = (key: { ctrlKey: boolean; metaKey: boolean; altKey: boolean }): boolean =>
  !key.ctrlKey && !key.metaKey && !key.altKey

/** usePageKeys handles keys of one page; they do nothing while a person types or a menu or dialog is open. */
export function usePageKeys(actions: Record<string, () => void>): void {
  const { shortcuts } = usePreferences()
  const current = useRef(actions)
  current.current = actions
  useEffect(() => {
    if (!shortcuts) return undefined
    const onKey = (event: KeyboardEvent) => {
      if (event.defaultPrevented || !isPlain(event) || typing(event.target)) return
      if (document.querySelector('[role=dialog][data-state=open]:not([data-peek])') !== null) return
      const action = current.current[event.key]
      if (action === undefined) return
      event.preventDefault()
      action()
    }
    window.addEventListener('keydown', onKey)
    return () => {
      window.removeEventListener('keydown', onKey)
    }
  }, [shortcuts])
}
