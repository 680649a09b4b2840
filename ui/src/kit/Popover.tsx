import { Popover as Radix } from 'radix-ui'
import type { ReactElement, ReactNode } from 'react'
import styles from './overlay.module.css'

/** A small panel that opens from a button and closes with Escape or a click beside it. */
export function Popover({
  trigger,
  label,
  open,
  onOpen,
  children,
  align = 'start',
}: {
  trigger: ReactElement
  label: string
  open: boolean
  onOpen: (open: boolean) => void
  children: ReactNode
  align?: 'start' | 'end'
}) {
  return (
    <Radix.Root open={open} onOpenChange={onOpen}>
      <Radix.Trigger asChild>{trigger}</Radix.Trigger>
      <Radix.Portal>
        <Radix.Content className={styles.popover} align={align} sideOffset={4} collisionPadding={8} aria-label={label}>
          {children}
        </Radix.Content>
      </Radix.Portal>
    </Radix.Root>
  )
}
