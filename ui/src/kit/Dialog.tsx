import { X } from 'lucide-react'
import { Dialog as Radix } from 'radix-ui'
import type { FormEvent, ReactNode } from 'react'
import { Button } from './Button'
import styles from './overlay.module.css'

export interface DialogProps {
  title: ReactNode
  description?: ReactNode
  open: boolean
  onClose: () => void
  children: ReactNode
  /** Buttons at the lower right. */
  actions?: ReactNode
  /** Left of the buttons: "Copy CLI" and the like. */
  aside?: ReactNode
  size?: 'small' | 'normal' | 'wide'
  onSubmit?: () => void
  /** Whether it can be closed without an answer. */
  closable?: boolean
}

/** A modal dialog, a full screen on a phone. Ctrl-Enter submits. Clicking beside it does not close it: typed text would be lost. */
export function Dialog({ title, description, open, onClose, children, actions, aside, size = 'normal', onSubmit, closable = true }: DialogProps) {
  const submit = (event: FormEvent) => {
    event.preventDefault()
    event.stopPropagation()
    onSubmit?.()
  }
  return (
    <Radix.Root open={open} onOpenChange={(next) => { if (!next) onClose() }}>
      <Radix.Portal>
        <Radix.Overlay className={styles.overlay} />
        <Radix.Content
          className={`${styles.dialog} ${styles[size] ?? ''}`}
          onInteractOutside={(event) => { event.preventDefault() }}
          {...(description === undefined ? { 'aria-describedby': undefined } : {})}
        >
          <form
            className={styles.form}
            noValidate
            onSubmit={submit}
            onKeyDown={(event) => {
              if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) submit(event)
            }}
          >
            <div className={styles.head}>
              <Radix.Title className={styles.title}>{title}</Radix.Title>
              {closable ? (
                <Radix.Close asChild>
                  <Button kind="quiet" aria-label="Close" icon={<X size={16} aria-hidden />} />
                </Radix.Close>
              ) : null}
            </div>
            {description === undefined ? null : <Radix.Description className={styles.description}>{description}</Radix.Description>}
            <div className={styles.body}>{children}</div>
            {actions === undefined && aside === undefined ? null : (
              <div className={styles.foot}>
                <div className={styles.aside}>{aside}</div>
                {actions}
              </div>
            )}
          </form>
        </Radix.Content>
      </Radix.Portal>
    </Radix.Root>
  )
}

/** A panel at the right edge that leaves the page usable; a full screen on a phone. */
export function Drawer({ title, open, onClose, children, tools }: { title: ReactNode; open: boolean; onClose: () => void; children: ReactNode; tools?: ReactNode }) {
  return (
    <Radix.Root open={open} modal={false} onOpenChange={(next) => { if (!next) onClose() }}>
      <Radix.Portal>
        <Radix.Content
          className={styles.drawer}
          data-peek
          aria-describedby={undefined}
          onInteractOutside={(event) => { event.preventDefault() }}
          onOpenAutoFocus={(event) => { event.preventDefault() }}
        >
          <div className={styles.head}>
            <Radix.Title className={styles.title}>{title}</Radix.Title>
            {tools}
            <Radix.Close asChild>
              <Button kind="quiet" aria-label="Close" icon={<X size={16} aria-hidden />} />
            </Radix.Close>
          </div>
          <div className={styles.body}>{children}</div>
        </Radix.Content>
      </Radix.Portal>
    </Radix.Root>
  )
}
