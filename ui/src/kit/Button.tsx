import type { ButtonHTMLAttributes, ReactNode } from 'react'
import styles from './Button.module.css'
import { Tooltip } from './Tooltip'

export interface ButtonProps extends ButtonHTMLAttributes<HTMLButtonElement> {
  kind?: 'normal' | 'primary' | 'danger' | 'quiet'
  /** Why the button cannot be used at the moment; it stays focusable so that the reason can be read. */
  refused?: string | undefined
  icon?: ReactNode
  busy?: boolean
}

/** A button. With `refused`, it does nothing and shows the reason on hover and focus. */
export function Button({
  kind = 'normal',
  refused,
  icon,
  busy = false,
  className = '',
  children,
  onClick,
  ...rest
}: ButtonProps) {
  const off = refused !== undefined || busy
  const button = (
    <button
      type="button"
      {...rest}
      className={`${styles.button} ${styles[kind] ?? ''} ${children === undefined ? styles.square : ''} ${className}`}
      aria-disabled={off || undefined}
      aria-busy={busy || undefined}
      onClick={
        off
          ? (event) => {
              event.preventDefault()
            }
          : onClick
      }
    >
      {icon}
      {children}
    </button>
  )
  return refused === undefined ? button : <Tooltip text={refused}>{button}</Tooltip>
}
