import { create, toJson } from '@bufbuild/protobuf'
import { useMutation, useQueryClient } from '@tanstack/react-query'
import { ChevronDown, Save } from 'lucide-react'
import { Fragment, useState } from 'react'
import { callError, clients, type Json } from '../api'
import { useRefusal, useViews, viewsKey } from '../app'
import { SaveViewRequestSchema, type View } from '../gen/signalbox/v1/view_pb'
import {
  ActionDialog,
  Button,
  CallProblem,
  Checkbox,
  Chip,
  CloseButton,
  command,
  copyCLI,
  CopyCommand,
  copyText,
  Dialog,
  formatCount,
  Menu,
  restCall,
  TextField,
  toast,
  useLinkRefusal,
  usePreferences,
} from '../kit'
import { useCounts } from './Counts'
import { filterChips, noFilter, type RunFilter, sameFilter, views as builtIn } from './filter'
import styles from './runs.module.css'
import { columnTitles, filterOf, saveCommand, viewQuery } from './view'

/** How many saved views are beside the built-in ones; the others are in a menu. */
const inBar = 3

type Asked = { kind: 'save' | 'copy' | 'rename' | 'delete'; view?: View | undefined }

export interface ViewBarProps {
  project: string
  filter: RunFilter
  /** Whether the list was read. */
  listed: boolean
  /** The columns of the list, as they are shown. */
  columns: string[]
  /** The saved view of the URL. */
  view: View | undefined
  /** Whether the columns are those of the view. */
  sameColumns: boolean
  /** The built-in view that has the filter; empty if there is none. */
  current: string
  onBuiltIn: (view: (typeof builtIn)[number]) => void
  onView: (id: string) => void
}

/** The built-in views with their numbers, the saved ones, and what can be done with the one that is shown. */
export function ViewBar({
  project,
  filter,
  listed,
  columns,
  view,
  sameColumns,
  current,
  onBuiltIn,
  onView,
}: ViewBarProps) {
  const views = useViews(project)
  const counts = useCounts(project, { ...noFilter, since: filter.since, until: filter.until }, listed)
  const [asked, setAsked] = useState<Asked | undefined>(undefined)
  const offline = useLinkRefusal()
  const role = useRefusal()
  const { data } = counts
  const number = (id: string): string | undefined => {
    if (id === 'all') return undefined
    if (data === undefined) return '–'
    if (id === 'stuck') return formatCount(Object.values(data.stuck).reduce((sum, count) => sum + count, 0n))
    return formatCount(data.statuses[id] ?? 0n, data.more.includes(id))
  }
  const list = views.data ?? []
  const beside = list.filter((v, i) => i < inBar || v.id === view?.id)
  const others = list.filter((v) => !beside.includes(v))
  const changed = view !== undefined && !(sameColumns && sameFilter(filter, filterOf(view.query)))
  const forbidden =
    view === undefined || view.mine
      ? undefined
      : role('admin', project) === undefined
        ? undefined
        : `Only ${view.owner} and admins of ${project} change it`
  const refused = offline ?? forbidden
  return (
    <>
      <div className={styles.views} role="group" aria-label="Views">
        {builtIn.map((v) => (
          <button
            key={v.id}
            type="button"
            className={styles.view}
            aria-pressed={view === undefined && current === v.id}
            onClick={() => onBuiltIn(v)}
          >
            {v.name}
            {number(v.id) === undefined ? null : (
              <span className={styles.number} title={data === undefined ? 'The number is not known' : undefined}>
                {number(v.id)}
              </span>
            )}
          </button>
        ))}
        {beside.map((v) => (
          <Fragment key={v.id}>
            <button
              type="button"
              className={styles.view}
              aria-pressed={v.id === view?.id}
              title={v.shared ? `Shared by ${v.owner}` : 'Only you see it'}
              onClick={() => onView(v.id)}
            >
              <span className={styles.viewName}>{v.name}</span>
              {v.shared ? <span className={styles.number}>(shared)</span> : null}
            </button>
            {changed && v.id === view.id ? (
              <span className={styles.changed}>
                <Chip tone="amber" title="The filter, the order or the columns differ from the saved view">
                  Changed
                </Chip>
              </span>
            ) : null}
          </Fragment>
        ))}
        {others.length === 0 ? null : (
          <Menu
            align="start"
            trigger={
              <Button
                kind="quiet"
                icon={<ChevronDown size={14} aria-hidden />}
              >{`${formatCount(others.length)} more`}</Button>
            }
            items={others.map((v) => ({
              key: v.id,
              label: v.shared ? `${v.name} (shared)` : v.name,
              onSelect: () => onView(v.id),
            }))}
          />
        )}
        {views.isError ? (
          <span className={styles.number} role="status">
            Saved views are not known: {callError(views.error).message}
          </span>
        ) : null}
      </div>
      {view === undefined ? (
        <Button
          kind="quiet"
          icon={<Save size={14} aria-hidden />}
          refused={offline}
          onClick={() => setAsked({ kind: 'save' })}
        >
          Save view
        </Button>
      ) : (
        <Menu
          trigger={
            <Button kind="quiet" icon={<Save size={14} aria-hidden />}>
              View…
            </Button>
          }
          items={[
            {
              kind: 'heading',
              label: view.shared ? `${view.name}, shared by ${view.owner}` : `${view.name}, only yours`,
            },
            {
              label: 'Save the changes…',
              refused: refused ?? (changed ? undefined : 'It is as saved'),
              onSelect: () => setAsked({ kind: 'save', view }),
            },
            {
              label: 'Save as a new view…',
              refused: offline,
              onSelect: () => setAsked({ kind: 'copy' }),
            },
            {
              label: 'Drop the changes',
              refused: changed ? undefined : 'It is as saved',
              onSelect: () => onView(view.id),
            },
            { kind: 'separator', label: '' },
            {
              label: 'Rename or share…',
              refused,
              onSelect: () => setAsked({ kind: 'rename', view }),
            },
            {
              label: 'Delete…',
              danger: true,
              refused,
              onSelect: () => setAsked({ kind: 'delete', view }),
            },
            { kind: 'separator', label: '' },
            {
              label: 'Copy the link',
              onSelect: () =>
                void copyText(`${window.location.origin}/p/${encodeURIComponent(project)}/runs?view=${view.id}`).then(
                  (done) => {
                    toast(done ? 'Link copied.' : 'The browser did not allow to copy', done ? 'normal' : 'error')
                  },
                ),
            },
            {
              label: 'Copy the CLI command',
              onSelect: () => copyCLI(command(['run', 'list'], { project, view: view.id })),
            },
          ]}
        />
      )}
      {asked === undefined ? null : asked.kind === 'delete' ? (
        <DeleteDialog
          project={project}
          view={asked.view as View}
          onDone={() => onView('')}
          onClose={() => setAsked(undefined)}
        />
      ) : (
        <SaveDialog
          key={asked.kind}
          project={project}
          kind={asked.kind}
          view={asked.view}
          filter={asked.kind === 'rename' ? filterOf(asked.view?.query) : filter}
          columns={asked.kind === 'rename' ? (asked.view?.query?.columns ?? []) : columns}
          onDone={(id) => {
            if (asked.kind !== 'rename') onView(id)
          }}
          onClose={() => setAsked(undefined)}
        />
      )}
    </>
  )
}

interface SaveDialogProps {
  project: string
  kind: Asked['kind']
  /** The view to replace, as it was when the dialog opened; absent for a new one. */
  view: View | undefined
  filter: RunFilter
  columns: string[]
  onDone: (id: string) => void
  onClose: () => void
}

/** Names and shares a view. What was typed stays when the server refuses it, such as for a name that is taken. */
function SaveDialog({ project, kind, view: given, filter, columns, onDone, onClose }: SaveDialogProps) {
  const [view] = useState(given)
  const [name, setName] = useState(view?.name ?? '')
  const [shared, setShared] = useState(view?.shared ?? false)
  const [checked, setChecked] = useState(false)
  const queries = useQueryClient()
  const offline = useLinkRefusal()
  const cannotShare = useRefusal()('operator', project)
  const { zone } = usePreferences()
  const request = create(SaveViewRequestSchema, {
    project,
    id: view?.id ?? '',
    revision: view?.revision ?? 0n,
    name: name.trim(),
    shared,
    query: viewQuery(filter, columns),
  })
  const save = useMutation({
    mutationFn: () => clients.views.saveView(request),
    onSuccess: async ({ view: saved }) => {
      await queries.invalidateQueries({ queryKey: viewsKey(project) })
      toast(`View “${saved?.name ?? name}” saved.`)
      onDone(saved?.id ?? '')
      onClose()
    },
    // The next dialog starts from what is stored now.
    onError: () => queries.invalidateQueries({ queryKey: viewsKey(project) }),
  })
  const missing = name.trim() === ''
  const nameError = save.isError ? callError(save.error).fields.find((f) => f.path === 'name')?.message : undefined
  const parts = filterChips(filter, zone).map((chip) => chip.text)
  return (
    <Dialog
      title={
        kind === 'rename'
          ? 'Rename or share the view'
          : view === undefined
            ? 'Save a new view'
            : 'Save the changes of the view'
      }
      open
      onClose={onClose}
      onSubmit={() => {
        setChecked(true)
        if (!missing && offline === undefined && !save.isPending) save.mutate()
      }}
      aside={
        <CopyCommand
          rest={restCall(
            'POST',
            '/v1/projects/{project}/views',
            toJson(SaveViewRequestSchema, request) as Record<string, Json>,
          )}
          cli={saveCommand(project, name.trim() === '' ? 'NAME' : name.trim(), filter, columns, shared, view)}
        />
      }
      actions={
        <>
          <CloseButton />
          <Button type="submit" kind="primary" busy={save.isPending} refused={offline}>
            Save
          </Button>
        </>
      }
    >
      <div className={styles.form}>
        <TextField
          label="Name"
          required
          value={name}
          onChange={(event) => setName(event.target.value)}
          error={nameError ?? (checked && missing ? 'Give the view a name.' : undefined)}
          autoFocus
        />
        <Checkbox
          label={`Show it to everyone with a role in ${project}`}
          hint={
            cannotShare ??
            `${view === undefined || view.mine ? 'You' : view.owner} and admins of the project can change it. The audit log keeps the changes.`
          }
          checked={shared}
          disabled={cannotShare !== undefined && !shared}
          onChange={(event) => setShared(event.target.checked)}
        />
        <div className={styles.preview}>
          <div>{parts.length === 0 ? 'All runs' : parts.join(' · ')}</div>
          <div className={styles.weak}>
            {filter.order === 'newest' ? 'Newest' : filter.order === 'oldest' ? 'Oldest' : 'Longest'} first ·{' '}
            {columns.length === 0
              ? 'columns as each reader chose them'
              : columns.map((c) => columnTitles[c] ?? c).join(', ')}
          </div>
        </div>
        {save.isError ? <CallProblem error={save.error} except={['name']} /> : null}
      </div>
    </Dialog>
  )
}

function DeleteDialog({
  project,
  view: given,
  onDone,
  onClose,
}: {
  project: string
  view: View
  onDone: () => void
  onClose: () => void
}) {
  const [view] = useState(given)
  const queries = useQueryClient()
  return (
    <ActionDialog
      title={`Delete the view “${view.name}”`}
      description={view.shared ? 'It is shared: it goes away for everyone. No run is changed.' : 'No run is changed.'}
      action="Delete"
      danger
      reason="none"
      run={async () => {
        try {
          await clients.views.deleteView({ project, id: view.id, revision: view.revision })
        } finally {
          await queries.invalidateQueries({ queryKey: viewsKey(project) })
        }
      }}
      cli={() => command(['view', 'delete', view.id], { project, revision: String(view.revision) })}
      rest={() =>
        restCall('DELETE', '/v1/projects/{project}/views/{id}', { project, id: view.id, revision: view.revision })
      }
      onDone={() => {
        toast(`View “${view.name}” deleted.`)
        onDone()
        onClose()
      }}
      onClose={onClose}
    />
  )
}
