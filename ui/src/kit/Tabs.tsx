import { Tabs as Radix } from 'radix-ui'
import type { ReactNode } from 'react'
import styles from './Tabs.module.css'

export interface Tab {
  id: string
  label: ReactNode
  /** A number beside the label; undefined while it is not known. */
  count?: string | undefined
}

/** Tabs whose selection lives in the URL: the caller passes it and is told of a new one. */
export function Tabs({
  tabs,
  value,
  onChange,
  children,
  label,
}: {
  tabs: Tab[]
  value: string
  onChange: (id: string) => void
  children: ReactNode
  label: string
}) {
  return (
    <Radix.Root value={value} onValueChange={onChange} className={styles.root}>
      <Radix.List className={styles.list} aria-label={label}>
        {tabs.map((tab) => (
          <Radix.Trigger key={tab.id} value={tab.id} className={styles.tab}>
            {tab.label}
            {tab.count === undefined ? null : <span className={styles.count}>{tab.count}</span>}
          </Radix.Trigger>
        ))}
      </Radix.List>
      <Radix.Content value={value} className={styles.content} tabIndex={-1}>
        {children}
      </Radix.Content>
    </Radix.Root>
  )
}
