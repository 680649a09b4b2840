import { DropdownMenu as Radix } from 'radix-ui'
import {
  cloneElement,
  useEffect,
  useRef,
  useState,
  type ButtonHTMLAttributes,
  type ReactElement,
  type ReactNode,
} from 'react'
import styles from './overlay.module.css'

export interface MenuItem {
  label: ReactNode
  icon?: ReactNode
  /** Absent for a heading or separator. */
  onSelect?: () => void
  /** Why it cannot be chosen. */
  refused?: string | undefined
  danger?: boolean
  kind?: 'item' | 'heading' | 'separator'
  checked?: boolean
  key?: string
}

interface MenuProps {
  trigger: ReactElement<ButtonHTMLAttributes<HTMLButtonElement>>
  items: MenuItem[]
  align?: 'start' | 'end'
}

/** A menu that costs no more than its button until it is opened for the first time: a table has one in each row. */
export function Menu(props: MenuProps) {
  const [used, setUsed] = useState(false)
  if (used) return <UsedMenu {...props} />
  return cloneElement(props.trigger, {
    'aria-haspopup': 'menu',
    'aria-expanded': false,
    onClick: () => setUsed(true),
    onKeyDown: (event) => {
      if (event.key !== 'ArrowDown') return
      event.preventDefault()
      setUsed(true)
    },
  })
}

/**
 * A menu that opens from a button. Items that cannot be chosen show the reason below their name. It is not modal: a modal one hides the
 * whole page from screen readers while its controls can still be focused.
 */
function UsedMenu({ trigger, items, align = 'end' }: MenuProps) {
  const [open, setOpen] = useState(false)
  // It opens in the landmark of its button, so that screen readers find it there.
  const [landmark, setLandmark] = useState<HTMLElement | null>(null)
  const button = useRef<HTMLButtonElement>(null)
  // It is mounted because its button was pressed.
  useEffect(() => {
    setLandmark(button.current?.closest<HTMLElement>('[data-peek], main, header') ?? null)
    setOpen(true)
  }, [])
  return (
    <Radix.Root modal={false} open={open} onOpenChange={setOpen}>
      <Radix.Trigger ref={button} asChild>
        {trigger}
      </Radix.Trigger>
      <Radix.Portal container={landmark}>
        <Radix.Content className={styles.menu} align={align} sideOffset={4} collisionPadding={8}>
          {items.map((item, index) => {
            const key = item.key ?? String(index)
            if (item.kind === 'separator') return <Radix.Separator key={key} className={styles.separator} />
            if (item.kind === 'heading')
              return (
                <Radix.Label key={key} className={styles.heading}>
                  {item.label}
                </Radix.Label>
              )
            const refused = item.refused !== undefined
            const content = (
              <>
                <span className={styles.icon}>{item.checked === undefined ? item.icon : item.checked ? '✓' : ''}</span>
                <span>
                  {item.label}
                  {refused ? <span className={styles.reason}>{item.refused}</span> : null}
                </span>
              </>
            )
            const shared = {
              className: `${styles.item} ${item.danger ? styles.danger : ''}`,
              'aria-disabled': refused || undefined,
              onSelect: (event: Event) => {
                if (refused) event.preventDefault()
                else item.onSelect?.()
              },
            }
            return item.checked === undefined ? (
              <Radix.Item key={key} {...shared}>
                {content}
              </Radix.Item>
            ) : (
              <Radix.CheckboxItem key={key} {...shared} checked={item.checked}>
                {content}
              </Radix.CheckboxItem>
            )
          })}
        </Radix.Content>
      </Radix.Portal>
    </Radix.Root>
  )
}
