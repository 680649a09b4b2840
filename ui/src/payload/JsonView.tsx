import { useVirtualizer } from '@tanstack/react-virtual'
import { ChevronDown, ChevronRight, ChevronUp, LockKeyhole } from 'lucide-react'
import { useMemo, useRef, useState, type KeyboardEvent, type ReactNode } from 'react'
import { isObject, isSealed, type Json, JsonError, JsonNumber, printJson, readJson } from '../api'
import { Button, byteLength, CopyButton, flipped, formatBytes, plural, treeAction } from '../kit'
import { copyOf, type Line, lines, search, stepped, textLines, textParts } from './rows'
import styles from './JsonView.module.css'

/** Larger values are read only when a person asks for the rest. */
const largest = 64_000

interface Props {
  /** JSON text as the API returned it; undefined if there is none. */
  json: string | undefined
  /** Names the value for screen readers. */
  label: string
  /** What is shown if there is no value. */
  none?: ReactNode
  /** The largest height in pixels. */
  height?: number
  /** Size of the whole value in bytes, if the text is a shortened one. */
  whole?: number
  /** What leads from a shortened value to the whole one. */
  more?: ReactNode
  /** Whether a large value is read at once, because a person asked for it. */
  open?: boolean
}

/** A payload: a tree or text, searched, copied by value or pointer. It is text in any case; sealed values are shown as such. */
export function JsonView({ json, label, none = 'No value.', height = 420, whole, more, open = false }: Props) {
  const [all, setAll] = useState(false)
  const [mode, setMode] = useState<'tree' | 'text'>('tree')
  const [find, setFind] = useState('')
  const [position, setPosition] = useState(0)
  const [toggled, setToggled] = useState<ReadonlySet<string>>(new Set())
  const size = useMemo(() => (json === undefined ? 0 : byteLength(json)), [json])
  const cut = size > largest && !all && !open
  const read = useMemo((): { value: Json } | { problem: string } | undefined => {
    if (json === undefined || cut) return undefined
    try {
      return { value: readJson(json) }
    } catch (error) {
      return { problem: error instanceof JsonError ? error.message : 'the value cannot be shown as a tree' }
    }
  }, [json, cut])
  const value = read !== undefined && 'value' in read ? read.value : undefined
  const found = useMemo(() => (value === undefined ? [] : search(value, find.trim())), [value, find])
  if (json === undefined) return <div className={styles.none}>{none}</div>
  const current = found[Math.min(position, found.length - 1)]
  const text = mode === 'text' || value === undefined
  const go = (by: number) => {
    setPosition((p) => stepped(p, by, found.length))
  }
  return (
    <div className={styles.view}>
      <div className={styles.tools}>
        <input
          className={styles.find}
          type="search"
          placeholder="Find in the value"
          aria-label={`Find in ${label}`}
          value={find}
          disabled={value === undefined}
          onChange={(event) => {
            setFind(event.target.value)
            setPosition(0)
          }}
          onKeyDown={(event) => {
            if (event.key !== 'Enter') return
            event.preventDefault()
            go(event.shiftKey ? -1 : 1)
          }}
        />
        {find.trim() === '' || value === undefined ? null : (
          <span className={styles.matches} role="status">
            {found.length === 0
              ? 'no match'
              : `${Math.min(position, found.length - 1) + 1} of ${found.length === 1000 ? '1000+' : found.length}`}
            <Button
              kind="quiet"
              aria-label="Previous match"
              icon={<ChevronUp size={14} aria-hidden />}
              onClick={() => go(-1)}
            />
            <Button
              kind="quiet"
              aria-label="Next match"
              icon={<ChevronDown size={14} aria-hidden />}
              onClick={() => go(1)}
            />
          </span>
        )}
        <span className={styles.size}>
          {whole === undefined ? formatBytes(size) : `${formatBytes(size)} of ${formatBytes(whole)}`}
        </span>
        <Button kind="quiet" aria-pressed={mode === 'text'} onClick={() => setMode(mode === 'tree' ? 'text' : 'tree')}>
          {mode === 'tree' ? 'Text' : 'Tree'}
        </Button>
        <CopyButton text={json} label={`Copy ${label}`} />
      </div>
      {read !== undefined && 'problem' in read ? (
        <div className={styles.problem}>Shown as text: {read.problem}.</div>
      ) : null}
      {text ? (
        <Text
          text={cut ? json.slice(0, largest) : value === undefined ? json : printJson(value, 2)}
          label={label}
          height={height}
        />
      ) : (
        <Tree
          key={json.length}
          value={value}
          label={label}
          height={height}
          current={find.trim() === '' ? undefined : current}
          found={find.trim() === '' ? undefined : found}
          toggled={toggled}
          onToggle={setToggled}
        />
      )}
      {whole === undefined ? null : (
        <div className={styles.cut} role="note">
          Shortened, {formatBytes(whole)} in all. {more}
        </div>
      )}
      {cut ? (
        <div className={styles.cut}>
          The first {formatBytes(largest)} of {formatBytes(size)}.{' '}
          <Button onClick={() => setAll(true)}>Show all</Button>
        </div>
      ) : null}
    </div>
  )
}

function Text({ text, label, height }: { text: string; label: string; height: number }) {
  const scroller = useRef<HTMLDivElement>(null)
  const all = useMemo(() => textLines(text), [text])
  const virtual = useVirtualizer({
    count: all.length,
    getScrollElement: () => scroller.current,
    estimateSize: () => 18,
    overscan: 20,
  })
  return (
    <div
      ref={scroller}
      className={styles.frame}
      style={{ maxHeight: height }}
      tabIndex={0}
      role="group"
      aria-label={`${label} as text`}
    >
      <div className={styles.inner} style={{ height: virtual.getTotalSize() }}>
        {virtual.getVirtualItems().map((item) => (
          <div key={item.key} className={styles.textLine} style={{ transform: `translateY(${item.start}px)` }}>
            {all[item.index]}
          </div>
        ))}
      </div>
    </div>
  )
}

interface TreeProps {
  value: Json
  label: string
  height: number
  current: string | undefined
  found: string[] | undefined
  toggled: ReadonlySet<string>
  onToggle: (pointers: ReadonlySet<string>) => void
}

function Tree({ value, label, height, current, found, toggled, onToggle }: TreeProps) {
  const scroller = useRef<HTMLDivElement>(null)
  const [active, setActive] = useState('')
  const rows = useMemo(() => lines(value, toggled, current), [value, toggled, current])
  const matches = useMemo(() => new Set(found), [found])
  const virtual = useVirtualizer({
    count: rows.length,
    getScrollElement: () => scroller.current,
    estimateSize: () => 24,
    overscan: 16,
  })
  const scrolled = useRef<string>('')
  if (current !== undefined && scrolled.current !== current) {
    scrolled.current = current
    const index = rows.findIndex((row) => row.pointer === current)
    if (index >= 0)
      window.requestAnimationFrame(() => {
        virtual.scrollToIndex(index, { align: 'center' })
      })
  }
  const toggle = (line: Line) => {
    onToggle(flipped(toggled, line.pointer))
  }
  const at = Math.max(
    0,
    rows.findIndex((row) => row.pointer === active),
  )
  const keys = (event: KeyboardEvent) => {
    const row = rows[at]
    if (row === undefined || event.ctrlKey || event.metaKey || event.altKey) return
    const action = treeAction(event.key, rows, at)
    if (action === undefined || (event.target as HTMLElement).closest('button') !== null) return
    event.preventDefault()
    event.stopPropagation()
    if (action.kind === 'move') {
      setActive(rows[action.to]?.pointer ?? '')
      virtual.scrollToIndex(action.to)
    } else if (row.branch) toggle(row)
  }
  return (
    <div
      ref={scroller}
      className={styles.frame}
      style={{ maxHeight: height }}
      role="tree"
      aria-label={label}
      tabIndex={0}
      onKeyDown={keys}
      aria-activedescendant={`${label}-${rows[at]?.pointer ?? ''}`}
    >
      <div className={styles.inner} role="presentation" style={{ height: virtual.getTotalSize() }}>
        {virtual.getVirtualItems().map((item) => {
          const line = rows[item.index]
          if (line === undefined) return null
          const classes = [
            styles.line,
            matches.has(line.pointer) ? styles.match : '',
            line.pointer === current ? styles.current : '',
            item.index === at ? styles.active : '',
          ]
          return (
            <div
              key={line.pointer}
              id={`${label}-${line.pointer}`}
              role="treeitem"
              aria-level={line.depth + 1}
              aria-expanded={line.size === undefined ? undefined : line.open}
              aria-selected={item.index === at}
              className={classes.join(' ')}
              style={{ transform: `translateY(${item.start}px)`, paddingLeft: 4 + Math.min(line.depth, 24) * 14 }}
              onClick={() => setActive(line.pointer)}
            >
              {!line.branch ? (
                <span className={styles.gap} />
              ) : (
                <button
                  type="button"
                  tabIndex={-1}
                  className={styles.fold}
                  aria-label={line.open ? `Close ${line.name}` : `Open ${line.name}`}
                  onClick={() => toggle(line)}
                >
                  {line.open ? <ChevronDown size={14} aria-hidden /> : <ChevronRight size={14} aria-hidden />}
                </button>
              )}
              {line.depth === 0 ? null : <span className={styles.name}>{line.name}</span>}
              <Value line={line} />
              <span className={styles.copy}>
                <CopyButton text={copyOf(line.value)} label="Copy the value" />
                {line.depth === 0 ? null : (
                  <CopyButton text={line.pointer} label={`Copy the pointer ${line.pointer}`} />
                )}
              </span>
            </div>
          )
        })}
      </div>
    </div>
  )
}

function Value({ line }: { line: Line }) {
  const { value } = line
  if (Array.isArray(value))
    return <span className={styles.kind}>{value.length === 0 ? '[ ]' : `list of ${plural(value.length, 'item')}`}</span>
  if (isObject(value))
    return (
      <span className={styles.kind}>{value.size === 0 ? '{ }' : line.open ? '' : plural(value.size, 'member')}</span>
    )
  if (value instanceof JsonNumber) return <span className={styles.number}>{value.text}</span>
  if (typeof value === 'string')
    return isSealed(value) ? (
      <Sealed />
    ) : (
      <span className={styles.string} title={value.length > 200 ? undefined : value}>
        {textParts(value).map((part, i) => (i === 0 ? part : [<Sealed key={i} />, part]))}
      </span>
    )
  return <span className={styles.literal}>{String(value)}</span>
}

/** What stands in place of a sensitive value. */
function Sealed() {
  return (
    <span className={styles.sealed} title="A sensitive value: it is stored sealed, and shown to administrators alone">
      <LockKeyhole size={12} aria-hidden /> sealed
    </span>
  )
}
