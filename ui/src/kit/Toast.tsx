import { Toast as Radix } from 'radix-ui'
import { useSyncExternalStore, type ReactNode } from 'react'
import styles from './Toast.module.css'

interface Message {
  id: number
  text: ReactNode
  tone: 'normal' | 'error'
}

let messages: Message[] = []
let next = 1
const listeners = new Set<() => void>()

function change(list: Message[]): void {
  messages = list
  for (const listener of listeners) listener()
}

/** toast shows a short message that goes away by itself. What needs an answer belongs into the page or a dialog. */
export function toast(text: ReactNode, tone: Message['tone'] = 'normal'): void {
  change([...messages.slice(-3), { id: next++, text, tone }])
}

const subscribe = (listener: () => void) => {
  listeners.add(listener)
  return () => {
    listeners.delete(listener)
  }
}

export function Toasts() {
  const list = useSyncExternalStore(subscribe, () => messages)
  return (
    <Radix.Provider duration={6000} swipeDirection="right">
      {list.map(({ id, text, tone }) => (
        <Radix.Root
          key={id}
          className={`${styles.toast} ${tone === 'error' ? styles.error : ''}`}
          onOpenChange={(open) => {
            if (!open) change(messages.filter((m) => m.id !== id))
          }}
        >
          <Radix.Description>{text}</Radix.Description>
        </Radix.Root>
      ))}
      <Radix.Viewport className={styles.viewport} />
    </Radix.Provider>
  )
}
