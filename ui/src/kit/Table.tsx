import type { CSSProperties, ReactNode } from 'react'
import styles from './Table.module.css'

/**
 * A short table whose rows are all in the page; a long list is a DataTable. It scrolls by itself where it is too wide. On a phone, a row is a
 * card with the heads as labels; a cell that spans all columns has no label.
 */
export function Table({ heads, label, children }: { heads: string[]; label?: string; children: ReactNode }) {
  const labels = Object.fromEntries(heads.map((head, i) => [`--head-${i + 1}`, `"${head}"`])) as CSSProperties
  return (
    <div className={styles.scroll} tabIndex={0} role="region" aria-label={label ?? heads.join(', ')}>
      <table className={styles.table} style={labels}>
        <thead>
          <tr>
            {heads.map((head) => (
              <th key={head} scope="col">
                {head}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>{children}</tbody>
      </table>
    </div>
  )
}
