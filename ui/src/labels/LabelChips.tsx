import { Link } from '@tanstack/react-router'
import { CopyButton } from '../kit'
import { type Label, labelList, labelParameter, labelText } from './label'
import styles from './labels.module.css'

export interface LabelChipsProps {
  labels: Record<string, string>
  project: string
  /** Adds a label to the filter of the list; without it, a chip leads to the list of the runs with this label alone. */
  onFilter?: (label: Label) => void
  /** How many chips are shown; the others are a number. */
  most?: number
  /** With buttons that copy the values. */
  copy?: boolean
}

const Text = ({ label }: { label: Label }) => (
  <>
    <span className={styles.key}>{label.key}=</span>
    {label.value}
  </>
)

/** The labels of a run, each with the way to the runs that have it, too. A long value is cut; the tooltip has it whole. */
export function LabelChips({ labels, project, onFilter, most = Infinity, copy = false }: LabelChipsProps) {
  const list = labelList(labels)
  const hidden = list.slice(most)
  return (
    <ul className={styles.chips} aria-label="Labels">
      {list.slice(0, most).map((label) => (
        <li key={label.key} className={styles.chip}>
          {onFilter === undefined ? (
            <Link
              to="/p/$project/runs"
              params={{ project }}
              search={{ label: labelParameter(label) }}
              className={styles.text}
              title={labelText(label)}
            >
              <Text label={label} />
            </Link>
          ) : (
            <button type="button" className={styles.text} title={labelText(label)} onClick={() => onFilter(label)}>
              <Text label={label} />
            </button>
          )}
          {copy ? <CopyButton text={label.value} label={`Copy the value of ${label.key}`} /> : null}
        </li>
      ))}
      {hidden.length === 0 ? null : (
        <li className={styles.more} title={hidden.map(labelText).join('\n')}>
          +{hidden.length}
        </li>
      )}
    </ul>
  )
}
