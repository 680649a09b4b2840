import { Dialog } from '../kit'
import { places } from './pages'
import styles from './Shortcuts.module.css'

const groups: [string, [string, string][]][] = [
  [
    'Everywhere',
    [
      ['Ctrl K', 'Find anything'],
      ['?', 'These keys'],
      ['/', 'Search the list'],
      ...places.filter(({ key }) => key !== '').map(({ key, name }): [string, string] => [`g ${key}`, name]),
      ['Ctrl Enter', 'Submit a dialog'],
    ],
  ],
  [
    'List',
    [
      ['j k', 'Next, previous row'],
      ['Enter', 'Open'],
      ['Space', 'Preview'],
      ['x', 'Select'],
      ['J K', 'Extend the selection'],
      ['f', 'Add a filter'],
      ['l', 'Pause or resume live changes'],
    ],
  ],
  [
    'Run',
    [
      ['1 – 7', 'Tabs'],
      ['n N', 'Next, previous failure'],
      ['r', 'Replay'],
      ['c', 'Cancel'],
      ['o', 'Compare'],
      ['[ ]', 'Previous, next run of the list'],
      ['.', 'More actions'],
    ],
  ],
]

/** The keys of all pages. */
export default function Shortcuts({ onClose }: { onClose: () => void }) {
  return (
    <Dialog
      title="Keys"
      open
      onClose={onClose}
      size="wide"
      description="Keys do nothing while you type. They can be switched off in the menu at the upper right."
    >
      <div className={styles.groups}>
        {groups.map(([name, keys]) => (
          <section key={name}>
            <h3>{name}</h3>
            <dl className={styles.keys}>
              {keys.map(([key, meaning]) => (
                <div key={key}>
                  <dt>
                    <kbd>{key}</kbd>
                  </dt>
                  <dd>{meaning}</dd>
                </div>
              ))}
            </dl>
          </section>
        ))}
      </div>
    </Dialog>
  )
}
