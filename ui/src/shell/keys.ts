import { useNavigate } from '@tanstack/react-router'
import { useEffect, useRef } from 'react'
import { useProject } from '../app'
import { isPlain, typing } from '../app/keys'
import { usePreferences } from '../kit'
import { pathOf, placesOf } from './pages'

/** What a key does on every page. */
export type GlobalAction = { kind: 'palette' } | { kind: 'help' } | { kind: 'going' } | { kind: 'go'; key: string }

/** The longest time in milliseconds between g and the key of a page. */
const longestPause = 1500

interface Key {
  key: string
  timeStamp: number
  ctrlKey: boolean
  metaKey: boolean
  altKey: boolean
}

/**
 * globalAction returns what a key does on every page: Ctrl-K, ?, and g followed by the key of a page; undefined for nothing. `going` is the time
 * of a g before it, `ready` says that keys are switched on and that nothing is being typed.
 */
export function globalAction(key: Key, going: number | undefined, ready: boolean): GlobalAction | undefined {
  if ((key.ctrlKey || key.metaKey) && key.key.toLowerCase() === 'k') return { kind: 'palette' }
  if (!ready || !isPlain(key)) return undefined
  if (going !== undefined && key.timeStamp - going < longestPause) return { kind: 'go', key: key.key }
  if (key.key === 'g') return { kind: 'going' }
  return key.key === '?' ? { kind: 'help' } : undefined
}

/** useKeys handles the keys that work on every page. */
export function useKeys({ palette, help }: { palette: () => void; help: () => void }): void {
  const { shortcuts } = usePreferences()
  const project = useProject()
  const navigate = useNavigate()
  const going = useRef<number>(undefined)
  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      const action = globalAction(event, going.current, shortcuts && !typing(event.target))
      if (action === undefined) return
      going.current = action.kind === 'going' ? event.timeStamp : undefined
      if (action.kind === 'help') help()
      if (action.kind === 'palette') {
        event.preventDefault()
        palette()
      }
      const place = action.kind === 'go' ? placesOf(project).find(({ key }) => key === action.key) : undefined
      if (place === undefined) return
      event.preventDefault()
      event.stopPropagation()
      void navigate({ to: pathOf(place, project) })
    }
    window.addEventListener('keydown', onKey, true)
    return () => {
      window.removeEventListener('keydown', onKey, true)
    }
  }, [palette, help, shortcuts, project, navigate])
}
