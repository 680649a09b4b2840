import { useNavigate } from '@tanstack/react-router'
import { useEffect, useRef } from 'react'
import { usePreferences } from '../kit'
import { useProject } from './project'

const pages: Record<string, string> = {
  p: '/problems', r: 'runs', w: 'workflows', e: 'events', h: 'webhooks', b: 'batches', a: 'audit', d: '/dispatchers', k: '/workers', s: '/system',
}

/** typing reports whether a key belongs to a field or an open menu or dialog, not to the page. */
export const typing = (target: EventTarget | null): boolean =>
  target instanceof HTMLElement && target.closest('input, textarea, select, [contenteditable=true], [role=menu], [role=dialog]') !== null

/** useKeys handles the keys that work on every page: Ctrl-K, ?, and g followed by the first letter of a page. */
export function useKeys({ palette, help }: { palette: () => void; help: () => void }): void {
  const { shortcuts } = usePreferences()
  const project = useProject()
  const navigate = useNavigate()
  const going = useRef(0)
  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === 'k') {
        event.preventDefault()
        palette()
        return
      }
      if (!shortcuts || event.ctrlKey || event.metaKey || event.altKey || typing(event.target)) return
      if (event.timeStamp - going.current < 1500 && going.current > 0) {
        going.current = 0
        const page = pages[event.key]
        if (page === undefined) return
        event.preventDefault()
        event.stopPropagation()
        void navigate({ to: page.startsWith('/') ? page : `/p/${encodeURIComponent(project)}/${page}` })
        return
      }
      if (event.key === 'g') going.current = event.timeStamp
      if (event.key === '?') help()
    }
    window.addEventListener('keydown', onKey, true)
    return () => {
      window.removeEventListener('keydown', onKey, true)
    }
  }, [palette, help, shortcuts, project, navigate])
}

/** usePageKeys handles keys of one page; they do nothing while a person types or a menu or dialog is open. */
export function usePageKeys(actions: Record<string, () => void>): void {
  const { shortcuts } = usePreferences()
  const current = useRef(actions)
  current.current = actions
  useEffect(() => {
    if (!shortcuts) return undefined
    const onKey = (event: KeyboardEvent) => {
      if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || typing(event.target)) return
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
