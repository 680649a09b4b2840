import { useNavigate } from '@tanstack/react-router'
import { useEffect, useRef } from 'react'
import { useProject } from '../app'
import { typing } from '../app/keys'
import { usePreferences } from '../kit'

const pages: Record<string, string> = {
  p: '/problems',
  r: 'runs',
  w: 'workflows',
  e: 'events',
  h: 'webhooks',
  b: 'batches',
  a: 'audit',
  d: '/dispatchers',
  k: '/workers',
  s: '/system',
}

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
