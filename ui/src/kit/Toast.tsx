import { Toast as Radix } from 'radix-ui'
import type { ReactNode } from 'react'
import { callError } from '../api'
import { createStore, useStore } from '../api/store'
import styles from './Toast.module.css'

interface Message {
  id: number
  text: ReactNode
  tone: 'normal' | 'error'
}

export const messages = createStore<Message[]>([])
let next = 1

/** toast shows a short message that goes away by itself. What needs an answer belongs into the page or a dialog. */
export function toast(text: ReactNode, tone: Message['tone'] = 'normal'): void {
  messages.set([...messages.get().slice(-3), { id: next++, text, tone }])
}

/** toastError shows why a call failed. */
export const toastError = (error: unknown): void => {
  toast(callError(error).message, 'error')
}

export function Toasts() {
  const list = useStore(messages)
  return (
    <Radix.Provider duration={6000} swipeDirection="right">
      {list.map(({ id, text, tone }) => (
        <Radix.Root
          key={id}
          className={`${styles.toast} ${tone === 'error' ? styles.error : ''}`}
          onOpenChange={(open) => {
            if (!open) messages.set(messages.get().filter((m) => m.id !== id))
          }}
        >
          <Radix.Description>{text}</Radix.Description>
        </Radix.Root>
      ))}
      <Radix.Viewport className={styles.viewport} />
    </Radix.Provider>
  )
}
