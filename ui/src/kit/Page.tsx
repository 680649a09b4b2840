import { useEffect, type ReactNode } from 'react'
import styles from './Page.module.css'

/** The content of a page. `fill` gives it the height of the window, for a table that scrolls by itself. `title` names the browser's tab. */
export function Page({ title, fill = false, children }: { title: string; fill?: boolean; children: ReactNode }) {
  useEffect(() => {
    document.title = `${title} · Signalbox`
  }, [title])
  return <div className={`${styles.page} ${fill ? styles.fill : ''}`}>{children}</div>
}

/** The head of a page: its name, facts beside it, actions at the right edge. */
export function PageHead({
  title,
  children,
  actions,
}: {
  title: ReactNode
  children?: ReactNode
  actions?: ReactNode
}) {
  return (
    <div className={styles.head}>
      <h1 className={styles.title}>{title}</h1>
      {children === undefined ? null : <div className={styles.facts}>{children}</div>}
      {actions === undefined ? null : <div className={styles.actions}>{actions}</div>}
    </div>
  )
}

/** A framed part of a page. */
export function Panel({
  title,
  actions,
  children,
  flush = false,
}: {
  title?: ReactNode
  actions?: ReactNode
  children: ReactNode
  flush?: boolean
}) {
  return (
    <section className={styles.panel}>
      {title === undefined && actions === undefined ? null : (
        <header className={styles.panelHead}>
          <h2 className={styles.panelTitle}>{title}</h2>
          {actions}
        </header>
      )}
      <div className={flush ? undefined : styles.panelBody}>{children}</div>
    </section>
  )
}

/** Names and values side by side. A value that is not known is written as such by the caller. */
export function Facts({ facts }: { facts: ([string, ReactNode] | undefined)[] }) {
  return (
    <dl className={styles.list}>
      {facts
        .filter((fact) => fact !== undefined)
        .map(([name, value]) => (
          <div key={name} className={styles.fact}>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </div>
        ))}
    </dl>
  )
}
