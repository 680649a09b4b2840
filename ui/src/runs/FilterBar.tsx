import { useQuery } from '@tanstack/react-query'
import { ListFilter, X } from 'lucide-react'
import { useEffect, useRef, useState } from 'react'
import { clients } from '../api'
import {
  Button,
  Checkbox,
  formatFullTime,
  Popover,
  Select,
  statusWord,
  TextField,
  usePreferences,
  type Zone,
} from '../kit'
import { labelProblem, readLabel } from '../labels'
import {
  filterChips,
  type Invalid,
  isFiltered,
  momentOf,
  noFilter,
  type RunFilter,
  statuses,
  stuckCodes,
  triggers,
  triggerWord,
  waitingKinds,
  withLabel,
} from './filter'
import styles from './runs.module.css'

interface FilterBarProps {
  project: string
  filter: RunFilter
  invalid: Invalid[]
  onChange: (change: Partial<RunFilter>) => void
  open: boolean
  onOpen: (open: boolean) => void
}

/** The parts of the filter as chips that can be removed, and the panel that adds them. */
export function FilterBar({ project, filter, invalid, onChange, open, onOpen }: FilterBarProps) {
  const { zone } = usePreferences()
  const failure = useFailure(project, filter.failureGroup)
  return (
    <>
      <Popover
        label="Filter"
        open={open}
        onOpen={onOpen}
        trigger={<Button icon={<ListFilter size={14} aria-hidden />}>Filter</Button>}
      >
        <FilterForm project={project} filter={filter} onChange={onChange} />
      </Popover>
      {invalid.map(({ name, value, why }) => (
        <FilterChipView
          key={`${name} ${value}`}
          invalid
          text={`${name}=${value}: ${why}`}
          onRemove={() => onChange({})}
        />
      ))}
      {filterChips(filter, zone, failure).map(({ name, text, without }) => (
        <FilterChipView key={name} text={text} onRemove={() => onChange(without)} />
      ))}
      {isFiltered(filter) || invalid.length > 0 ? (
        <Button kind="quiet" onClick={() => onChange({ ...noFilter, order: filter.order })}>
          Clear
        </Button>
      ) : null}
    </>
  )
}

/** What a failure group is, as the page of problems names it; undefined while it is not known. The IDs of its problems contain its key. */
function useFailure(project: string, group: string): string | undefined {
  const found = useQuery({
    queryKey: ['failure-group', project, group],
    queryFn: async ({ signal }) => {
      const { problems } = await clients.problems.listProblems({ project, kinds: ['failure'], text: group }, { signal })
      return problems.find((p) => p.failureGroup === group) ?? null
    },
    enabled: group !== '',
    staleTime: 30_000,
  }).data
  return found ? [found.workflow, found.task, found.title].filter(Boolean).join(' · ') : undefined
}

function FilterChipView({
  text,
  invalid = false,
  onRemove,
}: {
  text: string
  invalid?: boolean
  onRemove: () => void
}) {
  return (
    <span className={`${styles.chip} ${invalid ? styles.invalid : ''}`} title={text}>
      <span>{text}</span>
      <button type="button" className={styles.remove} aria-label={`Remove ${text}`} onClick={onRemove}>
        <X size={14} aria-hidden />
      </button>
    </span>
  )
}

/** Types of errors, by their last part, that the form suggests. */
const errorTypes = [
  'communication',
  'timeout',
  'authentication',
  'authorization',
  'configuration',
  'expression',
  'validation',
  'runtime',
  'execution_missing',
  'queue_expired',
]

const periods = ['1h', '24h', '7d']

/** The periods that are used most, beside each other. */
export function Periods({ filter, onChange }: { filter: RunFilter; onChange: (change: Partial<RunFilter>) => void }) {
  const any = filter.since === '' && filter.until === ''
  return (
    <div className={styles.periods} role="group" aria-label="Queued in the last">
      {periods.map((since) => (
        <button
          key={since}
          type="button"
          className={styles.view}
          aria-pressed={filter.since === since}
          onClick={() => onChange({ since, until: '' })}
        >
          {since}
        </button>
      ))}
      <button
        type="button"
        className={styles.view}
        aria-pressed={any}
        onClick={() => onChange({ since: '', until: '' })}
      >
        Any time
      </button>
    </div>
  )
}

const toggled = (list: string[], value: string, on: boolean) =>
  on ? [...list, value] : list.filter((v) => v !== value)

function FilterForm({
  project,
  filter,
  onChange,
}: {
  project: string
  filter: RunFilter
  onChange: (change: Partial<RunFilter>) => void
}) {
  const { zone } = usePreferences()
  const workflows = useQuery({
    queryKey: ['workflow-names', project],
    queryFn: async ({ signal }) =>
      (await clients.workflows.listWorkflows({ project, pageSize: 500 }, { signal })).workflows.map((w) => w.name),
    staleTime: 30_000,
  })
  const versions = useQuery({
    queryKey: ['version-names', project, filter.workflow],
    queryFn: async ({ signal }) =>
      (
        await clients.workflows.listVersions({ project, workflow: filter.workflow, pageSize: 200 }, { signal })
      ).versions.map((v) => v.version),
    enabled: filter.workflow !== '',
    staleTime: 30_000,
  })
  return (
    <div className={styles.form}>
      <fieldset className={styles.checks}>
        <legend>Status</legend>
        {statuses.map((status) => (
          <Checkbox
            key={status}
            label={statusWord('run', status).word}
            checked={filter.statuses.includes(status)}
            onChange={(event) => onChange({ statuses: toggled(filter.statuses, status, event.target.checked) })}
          />
        ))}
      </fieldset>
      <Committed
        label="Workflow"
        value={filter.workflow}
        options={workflows.data ?? []}
        placeholder="namespace/name"
        onCommit={(workflow) => onChange({ workflow, version: '' })}
      />
      <Committed
        label="Version"
        value={filter.version}
        options={versions.data ?? []}
        disabled={filter.workflow === ''}
        hint={filter.workflow === '' ? 'Choose a workflow first.' : undefined}
        onCommit={(version) => onChange({ version })}
      />
      <LabelField labels={filter.labels} onChange={(labels) => onChange({ labels })} />
      <Select
        label="Trigger"
        value={filter.trigger}
        options={[{ value: '', label: 'Any' }, ...triggers.map((value) => ({ value, label: triggerWord(value) }))]}
        onChange={(event) => onChange({ trigger: event.target.value })}
      />
      <Select
        label="Stuck"
        value={filter.stuck.length > 1 ? 'several' : (filter.stuck[0] ?? '')}
        options={[
          { value: '', label: 'Stuck or not' },
          { value: 'any', label: 'Any cause' },
          ...stuckCodes.map((value) => ({ value, label: statusWord('stuck', value).word })),
          ...(filter.stuck.length > 1 ? [{ value: 'several', label: 'Several', disabled: true }] : []),
        ]}
        onChange={(event) => onChange({ stuck: event.target.value === '' ? [] : [event.target.value] })}
      />
      <Committed
        label="Retrying"
        value={filter.retrying}
        options={['any']}
        placeholder="any"
        hint="The task that runs attempt again after it failed, or any."
        onCommit={(retrying) => onChange({ retrying })}
      />
      <Select
        label="Waits for"
        value={filter.waiting}
        options={[{ value: '', label: 'Anything or nothing' }, ...waitingKinds.map((value) => ({ value, label: value }))]}
        onChange={(event) => onChange({ waiting: event.target.value })}
      />
      <Committed
        label="Words"
        value={filter.words}
        options={[]}
        placeholder="order 4711"
        hint="Beginnings of words of labels, the request ID or the error."
        onCommit={(words) => onChange({ words })}
      />
      <Committed
        label="Words of the error"
        value={filter.errorText}
        options={[]}
        placeholder="refused"
        onCommit={(errorText) => onChange({ errorText })}
      />
      <Committed
        label="Failed at the task"
        value={filter.failedTask}
        options={[]}
        onCommit={(failedTask) => onChange({ failedTask })}
      />
      <Committed
        label="Error"
        value={filter.errorType}
        options={errorTypes}
        placeholder="communication"
        hint="The type of the error with which runs failed, or its last part."
        onCommit={(errorType) => onChange({ errorType })}
      />
      <Checkbox
        label="Only runs without a replay"
        checked={filter.notReplayed}
        onChange={(event) => onChange({ notReplayed: event.target.checked })}
      />
      <div className={styles.form}>
        <Periods filter={filter} onChange={onChange} />
        <Moment
          label="Queued from"
          value={momentOf(filter.since)}
          zone={zone}
          onCommit={(since) => onChange({ since })}
        />
        <Moment label="Queued before" value={filter.until} zone={zone} onCommit={(until) => onChange({ until })} />
        <Moment
          label="Ended from"
          value={momentOf(filter.endedSince)}
          zone={zone}
          onCommit={(endedSince) => onChange({ endedSince })}
        />
        <Moment
          label="Ended before"
          value={filter.endedUntil}
          zone={zone}
          onCommit={(endedUntil) => onChange({ endedUntil })}
        />
      </div>
    </div>
  )
}

/** A text field that applies its value when a person is done: Enter, leaving the field, or choosing one of the options. */
function Committed({
  label,
  value,
  options,
  placeholder,
  disabled,
  hint,
  onCommit,
}: {
  label: string
  value: string
  options: string[]
  placeholder?: string
  disabled?: boolean
  hint?: string | undefined
  onCommit: (value: string) => void
}) {
  const [text, setText] = useState(value)
  useEffect(() => {
    setText(value)
  }, [value])
  const list = `options-${label}`
  const commit = (next: string) => {
    if (next.trim() !== value) onCommit(next.trim())
  }
  return (
    <>
      <TextField
        label={label}
        hint={hint}
        value={text}
        list={list}
        placeholder={placeholder}
        disabled={disabled}
        onChange={(event) => {
          setText(event.target.value)
          if (options.includes(event.target.value)) commit(event.target.value)
        }}
        onBlur={() => commit(text)}
        onKeyDown={(event) => {
          if (event.key === 'Enter') commit(text)
        }}
      />
      <datalist id={list}>
        {options.map((option) => (
          <option key={option} value={option} />
        ))}
      </datalist>
    </>
  )
}

/** Adds a label to the filter. What cannot be one stays in the field with the reason. */
function LabelField({ labels, onChange }: { labels: string[]; onChange: (labels: string[]) => void }) {
  const [text, setText] = useState('')
  const [problem, setProblem] = useState('')
  const add = () => {
    if (text.trim() === '') return
    const label = readLabel(text.trim())
    const found = label === undefined ? 'Write key=value, such as order=4711' : labelProblem(label)
    setProblem(found === '' || label === undefined ? found : `${found.charAt(0).toUpperCase()}${found.slice(1)}`)
    if (label === undefined || found !== '') return
    setText('')
    onChange(withLabel(labels, label))
  }
  return (
    <TextField
      label="Label"
      placeholder="key=value"
      hint="Enter adds it. Runs with all of the labels are listed."
      error={problem === '' ? undefined : problem}
      value={text}
      onChange={(event) => {
        setText(event.target.value)
        setProblem('')
      }}
      onBlur={add}
      onKeyDown={(event) => {
        if (event.key === 'Enter') add()
      }}
    />
  )
}

const two = (n: number) => String(n).padStart(2, '0')

/** The value of a field for date and time, in the zone of the page. */
function fieldText(moment: string, zone: Zone): string {
  if (moment === '') return ''
  const d = new Date(moment)
  if (zone === 'utc') return d.toISOString().slice(0, 16)
  return `${d.getFullYear()}-${two(d.getMonth() + 1)}-${two(d.getDate())}T${two(d.getHours())}:${two(d.getMinutes())}`
}

function Moment({
  label,
  value,
  zone,
  onCommit,
}: {
  label: string
  value: string
  zone: Zone
  onCommit: (moment: string) => void
}) {
  const input = useRef<HTMLInputElement>(null)
  const [text, setText] = useState(() => fieldText(value, zone))
  useEffect(() => {
    setText(fieldText(value, zone))
  }, [value, zone])
  const commit = () => {
    const incomplete = input.current?.validity.badInput ?? false
    if (incomplete || text === fieldText(value, zone)) return
    const at = Date.parse(zone === 'utc' && text !== '' ? `${text}Z` : text)
    onCommit(Number.isFinite(at) ? new Date(at).toISOString() : '')
  }
  return (
    <div
      ref={(node) => {
        input.current = node?.querySelector('input') ?? null
      }}
    >
      <TextField
        type="datetime-local"
        label={`${label} (${zone === 'utc' ? 'UTC' : 'local time'})`}
        value={text}
        hint={value === '' ? undefined : formatFullTime(Date.parse(value), 'utc')}
        onChange={(event) => setText(event.target.value)}
        onBlur={commit}
        onKeyDown={(event) => {
          if (event.key === 'Enter') commit()
        }}
      />
    </div>
  )
}
