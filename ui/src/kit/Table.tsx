import type { ReactNode } from 'react'
import styles from './Table.module.css'

/** A short table whose rows are all in the page; a long list is a DataTable. It scrolls by itself where it is too wide. */
export function Table({ heads, label, children }: { heads: string[]; label?: string; children: ReactNode }) {
  return (
    <div className={styles.scroll} tabIndex={0} role="region" aria-label={label ?? heads.join(', ')}>
      <table className={styles.table}>
        <thead>
          <tr>{heads.map((head) => <th key={head} scope="col">{head}</th>)}</tr>
        </thead>
        <tbody>{children}</tbody>
      </table>
    </div>
  )
}
