import type { GetWorkflowResponse } from '../gen/signalbox/v1/workflow_pb'
import { CopyButton, Panel, StateView } from '../kit'
import { diffLines } from './workflow'
import styles from './workflows.module.css'

/** The document of a version, and the draft if there is one. */
export function Source({ data: { version, draftSource } }: { data: GetWorkflowResponse }) {
  if (version === undefined && draftSource === '') return <StateView kind="empty" title="There is no document." />
  return (
    <div className={styles.sources}>
      {version === undefined ? null : (
        <Panel
          title={`Version ${version.version}`}
          actions={<CopyButton text={version.source} label="Copy the document" />}
          flush
        >
          <Code text={version.source} />
        </Panel>
      )}
      {draftSource === '' ? null : (
        <Panel title="Draft" actions={<CopyButton text={draftSource} label="Copy the draft" />} flush>
          <Code text={draftSource} />
        </Panel>
      )}
    </div>
  )
}

/** A text with the numbers of its lines. */
export function Code({ text }: { text: string }) {
  return (
    <pre className={styles.code} tabIndex={0}>
      {text.split('\n').map((line, i) => (
        <div key={i} className={styles.line}>
          <span className={styles.number} aria-hidden>
            {i + 1}
          </span>
          {line}
          {'\n'}
        </div>
      ))}
    </pre>
  )
}

/** A unified diff: what was removed and added, by sign and colour. */
export function Diff({ text }: { text: string }) {
  return (
    <pre className={styles.code} tabIndex={0}>
      {diffLines(text).map(({ text: line, kind }, i) => (
        <div key={i} className={`${styles.line} ${styles[kind] ?? ''}`}>
          {line}
          {'\n'}
        </div>
      ))}
    </pre>
  )
}
