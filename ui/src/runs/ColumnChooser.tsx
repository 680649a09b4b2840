import { ArrowDown, ArrowUp, Columns3 } from 'lucide-react'
import { useState } from 'react'
import { Button, Checkbox, Popover } from '../kit'
import styles from './runs.module.css'
import { columnTitles, moveColumn, standardCard, standardColumns, toggleColumn } from './view'

/** Chooses the columns of the list and their order, or the parts of its cards. The run stays: its link opens the row. */
export function ColumnChooser({
  columns,
  cards,
  onChange,
}: {
  columns: string[]
  cards: boolean
  onChange: (columns: string[]) => void
}) {
  const [open, setOpen] = useState(false)
  const hidden = Object.keys(columnTitles).filter((name) => !columns.includes(name))
  return (
    <Popover
      label="Columns"
      align="end"
      open={open}
      onOpen={setOpen}
      trigger={
        <Button kind="quiet" icon={<Columns3 size={14} aria-hidden />}>
          Columns
        </Button>
      }
    >
      <fieldset className={styles.columns}>
        <legend>{cards ? 'What a card shows' : 'Columns, in their order'}</legend>
        {[...columns, ...hidden].map((name) => {
          const title = columnTitles[name] ?? name
          const at = columns.indexOf(name)
          return (
            <div key={name} className={styles.column}>
              <Checkbox
                label={title}
                checked={at >= 0}
                disabled={name === 'run'}
                onChange={() => onChange(toggleColumn(columns, name))}
              />
              {at < 0 || cards ? null : (
                <>
                  <Button
                    kind="quiet"
                    aria-label={`Move ${title} before`}
                    disabled={at === 0}
                    icon={<ArrowUp size={14} aria-hidden />}
                    onClick={() => onChange(moveColumn(columns, name, -1))}
                  />
                  <Button
                    kind="quiet"
                    aria-label={`Move ${title} after`}
                    disabled={at === columns.length - 1}
                    icon={<ArrowDown size={14} aria-hidden />}
                    onClick={() => onChange(moveColumn(columns, name, 1))}
                  />
                </>
              )}
            </div>
          )
        })}
        <Button kind="quiet" onClick={() => onChange(cards ? standardCard : standardColumns)}>
          {cards ? 'Standard card' : 'Standard columns'}
        </Button>
      </fieldset>
    </Popover>
  )
}
