import { create } from '@bufbuild/protobuf'
import { describe, expect, it } from 'vitest'
import { type View, ViewQuerySchema, ViewSchema } from '../gen/signalbox/v1/view_pb'
import {
  changeShown,
  chosenColumns,
  columnTitles,
  filterOf,
  moveColumn,
  periodText,
  readColumns,
  readShown,
  saveCommand,
  shownColumns,
  standardColumns,
  toggleColumn,
  viewQuery,
} from './view'
import { noFilter, sameFilter, writeFilter } from './filter'

const full = {
  ...noFilter,
  statuses: ['failed', 'timed_out'],
  workflow: 'shop/order',
  version: '1.4.0',
  trigger: 'event',
  text: 'order-4',
  stuck: ['NO_POLLER'],
  failureGroup: 'g1',
  parentRunId: 'p1',
  replayOf: 'r1',
  batchId: 'b1',
  startedByBatchId: 'b2',
  labels: ['order=4711', 'note=a:b, c=d'],
  notReplayed: true,
  retrying: 'charge',
  waiting: 'retry',
  cause: 'DEADLOCK',
  words: 'order 4711',
  errorText: 'card declined',
  failedTask: 'charge',
  since: '2026-01-31T12:00:00.000Z',
  until: '2026-02-01T12:00:00.000Z',
  order: 'oldest' as const,
}
const query = (filter: typeof noFilter, columns: string[] = []) => create(ViewQuerySchema, viewQuery(filter, columns))
const failed: View = create(ViewSchema, {
  id: 'v1',
  name: 'Failed today',
  query: query({ ...noFilter, statuses: ['failed'], since: '24h' }, ['run', 'actor']),
  revision: 4n,
})

describe('the filter of a view', () => {
  it('is stored and read again', () => {
    expect(filterOf(query(full))).toEqual(full)
    expect(filterOf(query({ ...noFilter, since: '7d' }))).toEqual({ ...noFilter, since: '7d' })
    expect(filterOf(undefined)).toEqual(noFilter)
  })

  it.each([
    [1, '1s'],
    [90, '90s'],
    [120, '2m'],
    [3600, '1h'],
    [86_400, '24h'],
    [604_800, '7d'],
  ])('writes a period of %d s as %s', (seconds, text) => {
    expect(periodText(seconds)).toBe(text)
  })

  it('is the same however it is written', () => {
    expect(
      sameFilter(
        { ...noFilter, statuses: ['failed', 'queued'], since: '48h', until: '2026-02-01T12:00:00Z' },
        { ...noFilter, statuses: ['queued', 'failed'], since: '2d', until: '2026-02-01T12:00:00.000Z' },
      ),
    ).toBe(true)
    expect(sameFilter({ ...noFilter, labels: ['a=1', 'b=2'] }, { ...noFilter, labels: ['b=2', 'a=1'] })).toBe(true)
    expect(sameFilter(full, { ...full, labels: [] })).toBe(false)
    expect(sameFilter(full, { ...full, order: 'newest' })).toBe(false)
    expect(sameFilter(noFilter, { ...noFilter, text: 'a' })).toBe(false)
    expect(sameFilter({ ...noFilter, text: '60m' }, { ...noFilter, text: '1h' })).toBe(false)
  })
})

describe('a view in the URL', () => {
  it('stands for its filter where it is alone', () => {
    expect(readShown({ view: 'v1', peek: 'r1' }, [failed])).toEqual({
      view: failed,
      filter: { ...noFilter, statuses: ['failed'], since: '24h' },
      columns: [],
      invalid: [],
      waiting: false,
    })
    expect(readShown({ view: 'v1' }, undefined).waiting).toBe(true)
    expect(readShown({}, undefined).waiting).toBe(false)
  })

  it('leaves the filter to other parameters', () => {
    const shown = readShown({ view: 'v1', status: 'queued', columns: 'run,steps' }, [failed])
    expect(shown.filter).toEqual({ ...noFilter, statuses: ['queued'] })
    expect(shown.columns).toEqual(['run', 'steps'])
  })

  it('that is not known is said to be so', () => {
    expect(readShown({ view: 'v2' }, [failed]).invalid).toEqual([
      { name: 'view', value: 'v2', why: 'deleted, or not shared with you' },
    ])
    expect(changeShown({ view: 'v2', status: 'queued' }, {}, [failed])).toEqual({
      ...writeFilter(noFilter),
      status: 'queued',
    })
  })

  it('stays with a changed filter, and goes away with the last part of it', () => {
    expect(changeShown({ view: 'v1', columns: 'run' }, { workflow: 'a/b' }, [failed])).toEqual({
      ...writeFilter(noFilter),
      status: 'failed',
      since: '24h',
      workflow: 'a/b',
      view: 'v1',
      columns: 'run',
    })
    expect(
      changeShown({ view: 'v1', status: 'failed', since: '24h', workflow: 'a/b' }, { workflow: '' }, [failed]),
    ).toEqual({ ...writeFilter(noFilter), view: 'v1', columns: undefined })
    expect(changeShown({ view: 'v1', status: 'failed' }, { statuses: [] }, [failed])).toEqual(writeFilter(noFilter))
    expect(changeShown({ foo: 'bar', peek: 'id', status: 'failed,x' }, { workflow: 'a/b' }, [])).toEqual({
      ...writeFilter(noFilter),
      status: 'failed',
      workflow: 'a/b',
    })
  })

  it('is a command', () => {
    expect(saveCommand('shop', 'EU orders', { ...noFilter, statuses: ['failed'] }, ['run'], true)).toBe(
      "signalbox view save 'EU orders' --project shop --status failed --columns run --shared",
    )
    expect(saveCommand('shop', 'EU', noFilter, [], false, failed)).toBe(
      "signalbox view save 'Failed today' --project shop --revision 4 --name EU",
    )
  })
})

describe('columns', () => {
  it('are known ones, each once, with the run', () => {
    expect(readColumns(['steps', 'odd', 'steps'])).toEqual(['run', 'steps'])
    expect(readColumns(['odd'])).toEqual([])
    expect(standardColumns.every((name) => name in columnTitles)).toBe(true)
  })

  it('are toggled in place and moved', () => {
    expect(toggleColumn(['status', 'run', 'queued'], 'trigger')).toEqual(['status', 'run', 'trigger', 'queued'])
    expect(toggleColumn(['run'], 'status')).toEqual(['status', 'run'])
    expect(toggleColumn(['status', 'run'], 'status')).toEqual(['run'])
    expect(moveColumn(['status', 'run'], 'run', -1)).toEqual(['run', 'status'])
    expect(moveColumn(['status', 'run'], 'run', 1)).toEqual(['status', 'run'])
  })
})

describe('the columns of the list', () => {
  it('are those of the URL, of the view, of the browser, or the standard ones', () => {
    expect(shownColumns(['run'], ['status'], [], standardColumns)).toEqual(['run'])
    expect(shownColumns([], ['status'], ['run'], standardColumns)).toEqual(['status'])
    expect(shownColumns([], [], ['run'], standardColumns)).toEqual(['run'])
    expect(shownColumns([], [], [], standardColumns)).toEqual(standardColumns)
  })

  it('that are chosen are kept in the URL while a view has its own', () => {
    expect(chosenColumns(['run', 'status'], ['run'], standardColumns)).toEqual({ url: 'run,status' })
    expect(chosenColumns(['run'], ['run'], standardColumns)).toEqual({ url: undefined })
    expect(chosenColumns(standardColumns, ['run'], standardColumns)).toEqual({ url: standardColumns.join(',') })
  })

  it('that are chosen without a view are a preference, and the standard ones are none', () => {
    expect(chosenColumns(['run'], [], standardColumns)).toEqual({ url: undefined, own: 'run' })
    expect(chosenColumns(standardColumns, [], standardColumns)).toEqual({ url: undefined, own: '' })
    expect(chosenColumns(standardColumns.toReversed(), [], standardColumns).own).toBe(
      standardColumns.toReversed().join(','),
    )
  })
})
