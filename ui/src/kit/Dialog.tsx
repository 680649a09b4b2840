import { X } from 'lucide-react'
import { Dialog as Radix } from 'radix-ui'
import { type FormEvent, type ReactNode, use, useState } from 'react'
import { Button } from './Button'
import styles from './overlay.module.css'
import { CloseContext, useTyped } from './typed'

export interface DialogProps {
  title: ReactNode
  description?: ReactNode
  open: boolean
  onClose: () => void
  children?: ReactNode
  /** Buttons at the lower right. */
  actions?: ReactNode
  /** Left of the buttons: "Copy CLI" and the like. */
  aside?: ReactNode
  size?: 'small' | 'normal' | 'wide'
  onSubmit?: () => void
  /** Whether it can be closed without an answer. */
  closable?: boolean
}

/** Closes the dialog or drawer around it. Text that was typed is not dropped unasked. */
export function CloseButton({ children = 'Close' }: { children?: ReactNode }) {
  return <Button onClick={use(CloseContext)}>{children}</Button>
}

/** Asks whether what was typed is dropped. */
const Discard = ({ onStay, onDiscard }: { onStay: () => void; onDiscard: () => void }) => (
  <Dialog
    title="Discard what you typed?"
    description="It was not submitted."
    open
    size="small"
    onClose={onStay}
    actions={
      <>
        <CloseButton>Keep editing</CloseButton>
        <Button kind="danger" onClick={onDiscard}>
          Discard
        </Button>
      </>
    }
  />
)

/** A modal dialog, a full screen on a phone. Ctrl-Enter submits. Clicking beside it does not close it, and all else that would drop typed text asks first. */
export function Dialog({
  title,
  description,
  open,
  onClose,
  children,
  actions,
  aside,
  size = 'normal',
  onSubmit,
  closable = true,
}: DialogProps) {
  const [content, setContent] = useState<HTMLElement | null>(null)
  const typed = useTyped(content, onClose)
  const submit = (event: FormEvent) => {
    event.preventDefault()
    event.stopPropagation()
    typed.onSubmit()
    onSubmit?.()
  }
  return (
    <Radix.Root
      open={open}
      onOpenChange={(next) => {
        if (!next) typed.request()
      }}
    >
      <Radix.Portal>
        <Radix.Overlay className={styles.overlay} />
        <Radix.Content
          ref={setContent}
          className={`${styles.dialog} ${styles[size] ?? ''}`}
          onInteractOutside={(event) => event.preventDefault()}
          {...(description === undefined ? { 'aria-describedby': undefined } : {})}
        >
          <CloseContext value={typed.request}>
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
              {description === undefined ? null : (
                <Radix.Description className={styles.description}>{description}</Radix.Description>
              )}
              {children === undefined ? null : <div className={styles.body}>{children}</div>}
              {actions === undefined && aside === undefined ? null : (
                <div className={styles.foot}>
                  <div className={styles.aside}>{aside}</div>
                  {actions}
                </div>
              )}
            </form>
          </CloseContext>
          {typed.asking ? <Discard onStay={typed.stay} onDiscard={typed.discard} /> : null}
        </Radix.Content>
      </Radix.Portal>
    </Radix.Root>
  )
}

/** A panel at the right edge that leaves the page usable; a full screen on a phone. */
export function Drawer({
  title,
  open,
  onClose,
  children,
  tools,
}: {
  title: ReactNode
  open: boolean
  onClose: () => void
  children: ReactNode
  tools?: ReactNode
}) {
  const [content, setContent] = useState<HTMLElement | null>(null)
  const typed = useTyped(content, onClose)
  return (
    <Radix.Root
      open={open}
      modal={false}
      onOpenChange={(next) => {
        if (!next) typed.request()
      }}
    >
      <Radix.Portal>
        <Radix.Content
          ref={setContent}
          className={styles.drawer}
          data-peek
          aria-describedby={undefined}
          onInteractOutside={(event) => event.preventDefault()}
          onOpenAutoFocus={(event) => event.preventDefault()}
        >
          <div className={styles.head}>
            <Radix.Title className={styles.title}>{title}</Radix.Title>
            {tools}
            <Radix.Close asChild>
              <Button kind="quiet" aria-label="Close" icon={<X size={16} aria-hidden />} />
            </Radix.Close>
          </div>
          <div className={styles.body}>{children}</div>
          {typed.asking ? <Discard onStay={typed.stay} onDiscard={typed.discard} /> : null}
        </Radix.Content>
      </Radix.Portal>
    </Radix.Root>
  )
}
