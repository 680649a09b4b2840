import { useNavigate, useSearch } from '@tanstack/react-router'
import { useCallback } from 'react'
import { one, type Search, useViews } from '../app'
import { setPreferences, usePhone, usePreferences } from '../kit'
import { noFilter, type RunFilter, writeFilter } from './filter'
import { changeShown, chosenColumns, readColumns, readShown, shownColumns, standardCard, standardColumns } from './view'

/** useShown returns what the URL says that the list of a project shows, and the functions that change it there. */
export function useShown(project: string) {
  const search: Search = useSearch({ strict: false })
  const navigate = useNavigate()
  const preferences = usePreferences()
  const views = useViews(project).data
  const cards = usePhone()
  const { view, filter, columns: given, invalid, waiting } = readShown(search, views)
  const saved = readColumns(view?.query?.columns ?? [])
  const own = readColumns((cards ? preferences.cards : preferences.columns).split(','))
  const standard = cards ? standardCard : standardColumns
  const columns = shownColumns(given, saved, own, standard)

  const setSearch = useCallback(
    (change: (before: Search) => Search) => {
      void navigate({ to: '.', search: (before: Search) => change(before), replace: true })
    },
    [navigate],
  )
  const change = useCallback(
    (part: Partial<RunFilter>) => {
      setSearch((before) => changeShown(before, part, views))
    },
    [setSearch, views],
  )
  const showView = useCallback(
    (id: string) => {
      setSearch((before) =>
        id === '' ? writeFilter(readShown(before, views).filter) : { ...writeFilter(noFilter), view: id },
      )
    },
    [setSearch, views],
  )
  const showFilter = (filter: RunFilter) => setSearch(() => writeFilter(filter))
  const chooseColumns = (list: string[]) => {
    const chosen = chosenColumns(list, saved, standard)
    if (chosen.own !== undefined) setPreferences({ [cards ? 'cards' : 'columns']: chosen.own })
    setSearch((before) => ({ ...before, columns: chosen.url }))
  }
  const showPeek = useCallback(
    (id: string) => {
      setSearch((before) => ({ ...before, peek: id === '' ? undefined : id }))
    },
    [setSearch],
  )
  return {
    search,
    view,
    filter,
    invalid,
    waiting,
    cards,
    columns,
    sameColumns: saved.length === 0 || saved.join(',') === columns.join(','),
    peek: one(search, 'peek'),
    change,
    showView,
    showFilter,
    chooseColumns,
    showPeek,
  }
}
