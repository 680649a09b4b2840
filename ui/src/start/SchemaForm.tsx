import { ArrowDown, ArrowUp, Plus, Trash2 } from 'lucide-react'
import { createContext, use, useEffect, useId, useState, type ReactNode } from 'react'
import { escapePointer, isObject, type Json, JsonNumber, type JsonObject, printJson, readJson } from '../api'
import { Button, Checkbox, Select, TextArea, TextField } from '../kit'
import { blank, fieldOf, type FormField, initial, optionOf, suits, withMember } from './schema'
import styles from './start.module.css'

/** What all fields of a form share. */
interface Shared {
  root: Json
  /** What is wrong, by the JSON pointer of the value. */
  errors: ReadonlyMap<string, string>
  disabled: boolean
  /** Called when a field begins and ceases to hold text that is no value. */
  onBroken: (pointer: string, broken: boolean) => void
}

const FormContext = createContext<Shared>({ root: true, errors: new Map(), disabled: false, onBroken: () => undefined })

interface FieldViewProps {
  name: string
  /** The value is part of a list or a choice: that it must be there needs no mark. */
  unmarked?: boolean
  schema: Json
  value: Json | undefined
  pointer: string
  required: boolean
  onChange: (value: Json | undefined) => void
}

/** A form for a JSON value with a schema. */
export function SchemaForm({
  schema,
  value,
  onChange,
  ...shared
}: { schema: Json; value: Json | undefined; onChange: (value: Json | undefined) => void } & Omit<Shared, 'root'>) {
  return (
    <FormContext value={{ root: schema, ...shared }}>
      <FieldView name="" schema={schema} value={value} pointer="" required onChange={onChange} />
    </FormContext>
  )
}

function FieldView(props: FieldViewProps) {
  const { name, schema, value, pointer, required, onChange } = props
  const { root, errors, disabled } = use(FormContext)
  const field = fieldOf(schema, root)
  const fits = suits(field, value, root)
  const label = name === '' ? 'Input' : field.title === '' || field.title === name ? name : `${name}: ${field.title}`
  const hint = [field.description, field.hint].filter((part) => part !== '').join(' — ')
  const around: Around = {
    label,
    hint: hint === '' ? undefined : hint,
    error: errors.get(pointer),
    required: required && props.unmarked !== true,
    disabled,
  }
  if (!fits) return <JsonField {...props} around={{ ...around, hint: `The value does not fit the form. ${hint}` }} />
  if (value === null && field.nullable) {
    return (
      <NullSwitch
        label={label}
        checked
        disabled={disabled}
        onChange={() => onChange(initial(schema, root, required))}
      />
    )
  }
  const control = <Control {...props} field={field} around={around} />
  if (!field.nullable) return control
  return (
    <div className={styles.nullable}>
      {control}
      <NullSwitch label={label} checked={false} disabled={disabled} onChange={() => onChange(null)} />
    </div>
  )
}

const NullSwitch = ({
  label,
  checked,
  disabled,
  onChange,
}: {
  label: string
  checked: boolean
  disabled: boolean
  onChange: () => void
}) => (
  <Checkbox
    label={
      <>
        <span className={checked ? undefined : 'hidden'}>{label} is </span>null
      </>
    }
    checked={checked}
    disabled={disabled}
    onChange={onChange}
  />
)

interface Around {
  label: string
  hint: string | undefined
  error: string | undefined
  required: boolean
  disabled: boolean
}

interface ControlProps extends FieldViewProps {
  field: FormField
  around: Around
}

function Control(props: ControlProps) {
  const { field, value, around, onChange, required } = props
  switch (field.kind) {
    case 'object':
      return <ObjectField {...props} field={field} />
    case 'array':
      return <ArrayField {...props} field={field} />
    case 'choice':
      return <ChoiceField {...props} field={field} />
    case 'json':
      return (
        <JsonField
          {...props}
          around={{
            ...around,
            hint: field.why === '' ? around.hint : `JSON, because ${field.why}. ${around.hint ?? ''}`,
          }}
        />
      )
    case 'enum':
      return (
        <Select
          {...around}
          value={value === undefined ? '' : String(field.values.findIndex((v) => printJson(v) === printJson(value)))}
          options={[
            { value: '', label: required ? 'Choose' : 'Not set' },
            ...field.values.map((v, i) => ({ value: String(i), label: typeof v === 'string' ? v : printJson(v) })),
          ]}
          onChange={(event) =>
            onChange(event.target.value === '' ? undefined : field.values[Number(event.target.value)])
          }
        />
      )
    case 'boolean':
      return (
        <Select
          {...around}
          value={value === undefined ? '' : String(value)}
          options={[
            { value: '', label: required ? 'Choose' : 'Not set' },
            { value: 'true', label: 'true' },
            { value: 'false', label: 'false' },
          ]}
          onChange={(event) => onChange(event.target.value === '' ? undefined : event.target.value === 'true')}
        />
      )
    case 'number':
      return (
        <TextField
          {...around}
          inputMode={field.integer ? 'numeric' : 'decimal'}
          value={value instanceof JsonNumber ? value.text : ''}
          onChange={(event) =>
            onChange(event.target.value.trim() === '' ? undefined : new JsonNumber(event.target.value.trim()))
          }
        />
      )
    case 'text':
      return <StringField {...props} field={field} />
  }
}

const dateText = /^\d{4}-\d{2}-\d{2}$/

function StringField({ field, value, around, onChange }: ControlProps & { field: FormField & { kind: 'text' } }) {
  const shown = typeof value === 'string' ? value : ''
  const change = (text: string) => {
    onChange(text === '' ? undefined : text)
  }
  const hint =
    value === '' ? `${around.hint === undefined ? '' : `${around.hint} — `}the text is empty, not absent` : around.hint
  if (field.secret)
    return (
      <TextField
        {...around}
        hint={hint}
        type="password"
        autoComplete="new-password"
        value={shown}
        onChange={(event) => change(event.target.value)}
      />
    )
  if (field.long || shown.includes('\n'))
    return <TextArea {...around} hint={hint} rows={4} value={shown} onChange={(event) => change(event.target.value)} />
  // The browser's field for dates shows nothing for a text that is no date.
  const date = field.format === 'date' && (shown === '' || dateText.test(shown))
  const modes = { email: 'email', uri: 'url' } as const
  return (
    <TextField
      {...around}
      hint={hint}
      type={date ? 'date' : 'text'}
      inputMode={field.format in modes ? modes[field.format as keyof typeof modes] : undefined}
      value={shown}
      onChange={(event) => change(event.target.value)}
    />
  )
}

function Group({ around, children, tools }: { around: Around; children: ReactNode; tools?: ReactNode }) {
  const id = useId()
  return (
    <fieldset className={styles.group} aria-describedby={around.error === undefined ? undefined : `${id}-error`}>
      <legend className={styles.legend}>
        {around.label}
        {around.required ? (
          <span className={styles.required} aria-hidden>
            {' '}
            *
          </span>
        ) : null}
      </legend>
      {around.hint === undefined ? null : <div className={styles.hint}>{around.hint}</div>}
      {around.error === undefined ? null : (
        <div id={`${id}-error`} className={styles.error} role="alert">
          {around.error}
        </div>
      )}
      {children}
      {tools === undefined ? null : <div className={styles.tools}>{tools}</div>}
    </fieldset>
  )
}

const Add = ({ label, disabled, onAdd }: { label: string; disabled: boolean; onAdd: () => void }) => (
  <Button
    icon={<Plus size={14} aria-hidden />}
    refused={disabled ? 'The run is being started' : undefined}
    onClick={onAdd}
  >
    {label}
  </Button>
)

function ObjectField({
  field,
  value,
  around,
  pointer,
  required,
  schema,
  onChange,
}: ControlProps & { field: FormField & { kind: 'object' } }) {
  const { root } = use(FormContext)
  if (!isObject(value))
    return (
      <Group around={around}>
        <Add
          label={`Add ${around.label}`}
          disabled={around.disabled}
          onAdd={() => onChange(initial(schema, root, true))}
        />
      </Group>
    )
  const members = field.members
  const known = new Set(members.map((member) => member.name))
  const further = [...value.keys()].filter((name) => !known.has(name))
  const set = (name: string, next: Json | undefined) => {
    onChange(withMember(value, members, name, next))
  }
  const content = (
    <>
      {members.map((member) => (
        <FieldView
          key={member.name}
          name={member.name}
          schema={member.schema}
          value={value.get(member.name)}
          pointer={`${pointer}/${escapePointer(member.name)}`}
          required={member.required}
          onChange={(next) => set(member.name, next)}
        />
      ))}
      {further.length === 0 && field.more === undefined ? null : (
        <FurtherMembers
          object={value}
          names={further}
          schema={field.more ?? true}
          allowed={field.more !== undefined}
          pointer={pointer}
          around={around}
          onChange={onChange}
        />
      )}
    </>
  )
  if (pointer === '')
    return (
      <div className={styles.fields}>
        {around.error === undefined ? null : (
          <div className={styles.error} role="alert">
            {around.error}
          </div>
        )}
        {content}
      </div>
    )
  return (
    <Group
      around={around}
      tools={
        required ? undefined : (
          <Remove label={`Remove ${around.label}`} disabled={around.disabled} onRemove={() => onChange(undefined)} />
        )
      }
    >
      {content}
    </Group>
  )
}

const Remove = ({ label, disabled, onRemove }: { label: string; disabled: boolean; onRemove: () => void }) => (
  <Button
    kind="quiet"
    aria-label={label}
    title={label}
    icon={<Trash2 size={14} aria-hidden />}
    refused={disabled ? 'The run is being started' : undefined}
    onClick={onRemove}
  />
)

/** Members that the schema does not name: a name and a value each. */
function FurtherMembers({
  object,
  names,
  schema,
  allowed,
  pointer,
  around,
  onChange,
}: {
  object: JsonObject
  names: string[]
  schema: Json
  allowed: boolean
  pointer: string
  around: Around
  onChange: (value: Json) => void
}) {
  const { root } = use(FormContext)
  const [added, setAdded] = useState('')
  const taken = object.has(added)
  const rename = (from: string, to: string) => {
    onChange(new Map([...object].map(([name, value]) => [name === from ? to : name, value])))
  }
  const add = () => {
    if (added === '' || taken) return
    onChange(new Map(object).set(added, blank(schema, root)))
    setAdded('')
  }
  return (
    <div className={styles.fields}>
      {names.map((name, index) => (
        <div key={index} className={styles.pair}>
          <MemberName name={name} object={object} disabled={around.disabled} onRename={(to) => rename(name, to)} />
          <FieldView
            unmarked
            name={`Value of ${name}`}
            schema={schema}
            value={object.get(name)}
            pointer={`${pointer}/${escapePointer(name)}`}
            required
            onChange={(next) => onChange(new Map(object).set(name, next ?? blank(schema, root)))}
          />
          <Remove
            label={`Remove ${name}`}
            disabled={around.disabled}
            onRemove={() => onChange(new Map([...object].filter(([key]) => key !== name)))}
          />
        </div>
      ))}
      {allowed ? (
        <div className={styles.pair}>
          <TextField
            label="Name of a further member"
            value={added}
            disabled={around.disabled}
            error={taken ? 'There is a member with this name' : undefined}
            onChange={(event) => setAdded(event.target.value)}
            onKeyDown={(event) => {
              if (event.key === 'Enter' && !event.ctrlKey && !event.metaKey) {
                event.preventDefault()
                add()
              }
            }}
          />
          <Button
            icon={<Plus size={14} aria-hidden />}
            refused={added === '' ? 'Type its name first' : taken ? 'There is a member with this name' : undefined}
            onClick={add}
          >
            Add
          </Button>
        </div>
      ) : null}
    </div>
  )
}

/** The name of a member, changed when the field is left, so that a half-typed name meets no other. */
function MemberName({
  name,
  object,
  disabled,
  onRename,
}: {
  name: string
  object: JsonObject
  disabled: boolean
  onRename: (to: string) => void
}) {
  const [text, setText] = useState(name)
  const taken = text !== name && object.has(text)
  return (
    <TextField
      label="Name"
      value={text}
      disabled={disabled}
      error={taken ? 'There is a member with this name' : undefined}
      onChange={(event) => setText(event.target.value)}
      onBlur={() => {
        if (text !== name && !taken) onRename(text)
      }}
    />
  )
}

function ArrayField({
  field,
  value,
  around,
  pointer,
  required,
  onChange,
}: ControlProps & { field: FormField & { kind: 'array' } }) {
  const { root } = use(FormContext)
  const items = Array.isArray(value) ? value : []
  const schemaOf = (index: number) => field.prefix[index] ?? field.items
  const set = (next: Json[]) => {
    onChange(next)
  }
  const swap = (index: number, other: number) => {
    set(items.map((item, i) => (i === index ? items[other] : i === other ? items[index] : item) ?? null))
  }
  return (
    <Group
      around={around}
      tools={
        <>
          {items.length < field.most ? (
            <Add
              label="Add an item"
              disabled={around.disabled}
              onAdd={() => set([...items, blank(schemaOf(items.length), root)])}
            />
          ) : null}
          {!required && value !== undefined ? (
            <Remove label={`Remove ${around.label}`} disabled={around.disabled} onRemove={() => onChange(undefined)} />
          ) : null}
        </>
      }
    >
      {value === undefined ? null : items.length === 0 ? <div className={styles.hint}>An empty list</div> : null}
      {items.map((item, index) => (
        <div key={index} className={styles.item}>
          <FieldView
            unmarked
            name={`Item ${index}`}
            schema={schemaOf(index)}
            value={item}
            pointer={`${pointer}/${index}`}
            required
            onChange={(next) =>
              set(items.map((old, i) => (i === index ? (next ?? blank(schemaOf(index), root)) : old)))
            }
          />
          <div className={styles.itemTools}>
            <Button
              kind="quiet"
              aria-label={`Move item ${index} up`}
              icon={<ArrowUp size={14} aria-hidden />}
              refused={index === 0 ? 'It is the first item' : undefined}
              onClick={() => swap(index, index - 1)}
            />
            <Button
              kind="quiet"
              aria-label={`Move item ${index} down`}
              icon={<ArrowDown size={14} aria-hidden />}
              refused={index === items.length - 1 ? 'It is the last item' : undefined}
              onClick={() => swap(index, index + 1)}
            />
            <Remove
              label={`Remove item ${index}`}
              disabled={around.disabled}
              onRemove={() => set(items.filter((_, i) => i !== index))}
            />
          </div>
        </div>
      ))}
    </Group>
  )
}

function ChoiceField({
  field,
  value,
  around,
  name,
  pointer,
  required,
  onChange,
}: ControlProps & { field: FormField & { kind: 'choice' } }) {
  const { root } = use(FormContext)
  const [chosen, setChosen] = useState(-1)
  const found = value === undefined ? -1 : optionOf(field.options, value, root)
  // Options may fit the same value: the one that a person chose stays as long as it fits.
  const kept = field.options[chosen]
  const index =
    value !== undefined && kept !== undefined && suits(fieldOf(kept.schema, root), value, root) ? chosen : found
  const option = field.options[index]
  return (
    <Group around={option === undefined ? around : { ...around, error: undefined }}>
      <Select
        label={`Kind of ${around.label}`}
        labelHidden
        disabled={around.disabled}
        value={index < 0 ? '' : String(index)}
        options={[
          { value: '', label: required ? 'Choose' : 'Not set' },
          ...field.options.map(({ title }, i) => ({ value: String(i), label: title })),
        ]}
        onChange={(event) => {
          const next = event.target.value === '' ? undefined : field.options[Number(event.target.value)]
          setChosen(next === undefined ? -1 : Number(event.target.value))
          onChange(next === undefined ? undefined : blank(next.schema, root))
        }}
      />
      {option === undefined ? null : (
        <FieldView
          key={index}
          unmarked
          name={name === '' ? 'value' : name}
          schema={option.schema}
          value={value}
          pointer={pointer}
          required
          onChange={(next) => onChange(next ?? (required ? undefined : blank(option.schema, root)))}
        />
      )}
    </Group>
  )
}

/** A value as JSON text, for what a form cannot show. What is not JSON stays in the field and does not change the value. */
function JsonField({ value, around, pointer, onChange }: FieldViewProps & { around: Around }) {
  const { onBroken } = use(FormContext)
  const [text, setText] = useState(value === undefined ? '' : printJson(value, 2))
  const [problem, setProblem] = useState<string | undefined>(undefined)
  const broken = problem !== undefined
  useEffect(() => {
    if (!broken) return undefined
    onBroken(pointer, true)
    return () => {
      onBroken(pointer, false)
    }
  }, [broken, pointer, onBroken])
  const change = (next: string) => {
    setText(next)
    try {
      onChange(next.trim() === '' ? undefined : readJson(next))
      setProblem(undefined)
    } catch (error) {
      setProblem(`Not used yet: ${error instanceof Error ? error.message : 'not JSON'}`)
    }
  }
  return (
    <TextArea
      {...around}
      label={`${around.label} (JSON)`}
      error={problem ?? around.error}
      rows={Math.min(12, text.split('\n').length + 1)}
      value={text}
      onChange={(event) => change(event.target.value)}
    />
  )
}
