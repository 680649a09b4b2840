import { useNavigate } from '@tanstack/react-router'
import { useCallback, useEffect, useMemo, useRef, useState } from 'react'
import { usePageKeys, useRefusal } from '../app'
import { rememberList } from '../app/list'
import type { Run } from '../gen/signalbox/v1/run_pb'
import { useLinkRefusal, usePreferences } from '../kit'
import type { Label } from '../labels'
import type { BatchAction } from './BatchDialog'
import { type RowControl, runColumns } from './columns'
import { total, useCounts } from './Counts'
import { type Order, withLabel } from './filter'
import { useSelection } from './selection'
import { useFeed } from './useFeed'
import { useShown } from './useShown'

/** What a person does in the page for which the rows stay where they are: the pointer or the keyboard is in them, or they are scrolled. */
const idle = { pointer: false, focus: false, scrolled: false }

/** useRuns is the state of the page of runs: what the list shows and has, what is selected, which dialog is open, and the keys. */
export function useRuns(project: string) {
  const navigate = useNavigate()
  const { zone } = usePreferences()
  const list = useShown(project)
  const { search, filter, cards, peek, change, showPeek } = list
  const shownColumns = list.columns.join(',')
  const { feed, state, key } = useFeed(project, filter)
  const { shown } = state
  const answered = state.ready || state.error !== undefined
  const matching = total(useCounts(project, filter, answered).data, filter)
  const role = useRefusal()
  const offline = useLinkRefusal()
  const refused = offline ?? role('operator', project)

  const selection = useSelection(`${project} ${key}`, shown)
  const { selected } = selection
  const [active, setActive] = useState<string | undefined>(feed.active)
  const [paused, setPaused] = useState(false)
  const [filterOpen, setFilterOpen] = useState(false)
  const [starting, setStarting] = useState(false)
  const [control, setControl] = useState<{ control: RowControl; run: Run } | undefined>(undefined)
  const [batch, setBatch] = useState<BatchAction | undefined>(undefined)
  const [{ pointer, focus, scrolled }, setBusy] = useState(idle)
  // The same object draws nothing anew: a scrolled list sends many events.
  const touch = (part: Partial<typeof idle>) =>
    setBusy((before) => {
      const next = { ...before, ...part }
      return next.pointer === before.pointer && next.focus === before.focus && next.scrolled === before.scrolled
        ? before
        : next
    })
  const rows = useRef<HTMLDivElement>(null)
  const searchField = useRef<HTMLDivElement>(null)

  useEffect(() => {
    feed.hold(
      pointer || focus || scrolled || selected.size > 0 || peek !== '' || batch !== undefined || control !== undefined,
    )
  }, [feed, pointer, focus, scrolled, selected, peek, batch, control])
  useEffect(() => {
    feed.pause(paused)
  }, [feed, paused])
  useEffect(() => {
    rememberList(project, { search: { ...search, peek: undefined }, ids: shown.map((run) => run.id) })
  }, [project, search, shown])

  const openRun = useCallback(
    (run: Run) => {
      void navigate({ to: '/p/$project/runs/$id', params: { project, id: run.id } })
    },
    [navigate, project],
  )
  const activate = useCallback(
    (key: string) => {
      setActive(key)
      feed.active = key
      // The preview follows the row that has the keyboard.
      if (peek !== '' && peek !== key) showPeek(key)
    },
    [feed, peek, showPeek],
  )

  const openControl = useCallback((name: RowControl, run: Run) => {
    setControl({ control: name, run })
  }, [])
  // What the list shows now: a chip in a row must not draw all rows again when the filter changes.
  const filterLabels = useRef(filter.labels)
  useEffect(() => {
    filterLabels.current = filter.labels
  })
  const addLabel = useCallback(
    (label: Label) => {
      change({ labels: withLabel(filterLabels.current, label) })
    },
    [change],
  )
  const sort = useCallback(
    (order: Order) => {
      change({ order })
    },
    [change],
  )
  // The columns change rarely, so that a change of one run draws one row.
  const columns = useMemo(
    () =>
      runColumns({
        project,
        shown: shownColumns.split(','),
        cards,
        zone,
        order: filter.order,
        onOrder: sort,
        onOpen: openRun,
        onControl: openControl,
        onLabel: addLabel,
        refused,
        selected,
        allSelected: selection.all,
        onSelect: selection.select,
        onSelectAll: selection.toggleAll,
      }),
    [
      project,
      shownColumns,
      cards,
      zone,
      filter.order,
      sort,
      openRun,
      openControl,
      addLabel,
      refused,
      selected,
      selection.all,
      selection.select,
      selection.toggleAll,
    ],
  )
  const endControl = () => {
    setControl(undefined)
    void feed.refresh()
  }
  // The rows before and after the one of the preview; undefined where there is none.
  const peeked = shown.findIndex((run) => run.id === peek)
  const [previous, next] = [shown[peeked - 1], shown[peeked + 1]].map((run) =>
    run === undefined ? undefined : () => activate(run.id),
  )
  const focusList = () => rows.current?.querySelector<HTMLElement>('[role=grid]')?.focus()
  usePageKeys({
    f: () => setFilterOpen(true),
    l: () => setPaused((before) => !before),
    '/': () => searchField.current?.querySelector('input')?.focus(),
    j: () => (peek === '' ? focusList() : next?.()),
    k: () => (peek === '' ? focusList() : previous?.()),
  })

  return {
    ...list,
    feed,
    state,
    answered,
    /** The number of runs that the filter matches; undefined before it is known. */
    matching,
    offline,
    refused,
    selection,
    table: columns,
    rows,
    searchField,
    active,
    activate,
    openRun,
    addLabel,
    /** Says that a person uses the rows, which then stay where they are. */
    touch,
    paused,
    setPaused,
    filterOpen,
    setFilterOpen,
    starting,
    setStarting,
    control,
    endControl,
    batch,
    setBatch,
    peeked: shown[peeked],
    previous,
    next,
  }
}
