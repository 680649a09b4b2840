import { create } from '@bufbuild/protobuf'
import { describe, expect, it } from 'vitest'
import { type RunFilter as Conditions, RunFilterSchema } from '../gen/signalbox/v1/run_pb'
import { ViewQuerySchema } from '../gen/signalbox/v1/view_pb'
import { parseSearch, stringifySearch } from '../app/search'
import {
  bounds,
  bucketLength,
  countRequest,
  currentView,
  exportAddress,
  filterChips,
  isFiltered,
  listCommand,
  listRequest,
  noFilter,
  periodMilliseconds,
  readFilter,
  type RunFilter,
  selection,
  triggerWord,
  viewFilter,
  views,
  withLabel,
  writeFilter,
} from './filter'
import { filterOf, viewQuery } from './view'

const plain = (_: string, value: unknown) => (typeof value === 'bigint' ? String(value) : value)

const full = {
  ...noFilter,
  statuses: ['failed', 'timed_out'],
  workflow: 'shop/order',
  version: '1.4.0',
  trigger: 'event',
  text: 'order-4',
  stuck: ['NO_POLLER'],
  retrying: 'charge',
  waiting: 'retry',
  cause: 'DEADLOCK',
  words: 'order 4711',
  errorText: 'card declined',
  failedTask: 'charge',
  failureGroup: 'g1',
  parentRunId: 'p1',
  replayOf: 'r1',
  batchId: 'b1',
  startedByBatchId: 'b2',
  labels: ['order=4711', 'note=a:b, c=d'],
  notReplayed: true,
  since: '2026-01-31T12:00:00.000Z',
  until: '2026-02-01T12:00:00.000Z',
  endedSince: '2026-01-31T13:00:00.000Z',
  endedUntil: '2026-02-01T13:00:00.000Z',
  errorType: 'execution_missing',
  order: 'oldest' as const,
}

const neither = 'neither a length of time such as 24h nor a moment such as 2026-01-31T12:00:00Z'

describe('the filter in the URL', () => {
  it('survives the way there and back', () => {
    expect(readFilter(writeFilter(full))).toEqual({ filter: full, invalid: [] })
    expect(readFilter(writeFilter({ ...noFilter, since: '24h', endedSince: '7d' }))).toEqual({
      filter: { ...noFilter, since: '24h', endedSince: '7d' },
      invalid: [],
    })
    expect(writeFilter(noFilter)).toEqual(
      Object.fromEntries(Object.keys(writeFilter(noFilter)).map((name) => [name, undefined])),
    )
  })

  it('has labels whose values contain every sign', () => {
    const labels = ['note=a:b, c=d', 'order=4711', 'html=<img src=x onerror=alert(1)>&"%2C%3A+']
    const address = stringifySearch(writeFilter({ ...noFilter, labels }))
    expect(address).toMatch(/^\?label=note:a:b,\+c%3Dd&label=order:4711&label=html:/)
    expect(readFilter(parseSearch(address))).toEqual({ filter: { ...noFilter, labels }, invalid: [] })
  })

  it('has one label for a key', () => {
    expect(withLabel(['order=1', 'a=b'], { key: 'order', value: '2' })).toEqual(['order=2', 'a=b'])
    expect(withLabel(['order=1'], { key: 'a', value: 'b=c' })).toEqual(['order=1', 'a=b=c'])
  })

  it('takes repeated parameters and names a value once', () => {
    expect(readFilter({ status: ['failed', 'failed', 'queued'] }).filter.statuses).toEqual(['failed', 'queued'])
  })

  it.each([
    [{ status: 'failed,foo' }, { name: 'status', value: 'foo', why: 'not a status' }],
    [{ stuck: 'BAD' }, { name: 'stuck', value: 'BAD', why: 'not a code of stuck runs' }],
    [{ trigger: 'cron' }, { name: 'trigger', value: 'cron', why: 'not a trigger' }],
    [{ version: '1.0.0' }, { name: 'version', value: '1.0.0', why: 'a version needs a workflow' }],
    [{ since: '1 day' }, { name: 'since', value: '1 day', why: neither }],
    [{ since: 'yesterday' }, { name: 'since', value: 'yesterday', why: neither }],
    [
      { until: '2026-01-31T12:00:00' },
      { name: 'until', value: '2026-01-31T12:00:00', why: 'not a moment such as 2026-01-31T12:00:00Z' },
    ],
    [
      { until: '2026-13-31T12:00:00Z' },
      { name: 'until', value: '2026-13-31T12:00:00Z', why: 'not a moment such as 2026-01-31T12:00:00Z' },
    ],
    [
      { since: '2026-02-01T12:00:00Z', until: '2026-01-31T12:00:00Z' },
      { name: 'until', value: '2026-01-31T12:00:00Z', why: 'not after since' },
    ],
    [{ 'ended-since': '1 day' }, { name: 'ended-since', value: '1 day', why: neither }],
    [
      { 'ended-until': 'yesterday' },
      { name: 'ended-until', value: 'yesterday', why: 'not a moment such as 2026-01-31T12:00:00Z' },
    ],
    [
      { 'ended-since': '2026-02-01T12:00:00Z', 'ended-until': '2026-01-31T12:00:00Z' },
      { name: 'ended-until', value: '2026-01-31T12:00:00Z', why: 'not after ended-since' },
    ],
    [{ sort: 'up' }, { name: 'sort', value: 'up', why: 'not an order' }],
    [{ label: 'order' }, { name: 'label', value: 'order', why: 'not a label such as order:4711' }],
    [{ label: 'order=4711' }, { name: 'label', value: 'order=4711', why: 'not a label such as order:4711' }],
    [
      { label: 'or der:4711' },
      { name: 'label', value: 'or der:4711', why: 'the key has other characters than letters, digits and . _ - /' },
    ],
    [{ label: 'order:' }, { name: 'label', value: 'order:', why: 'the value is empty' }],
    [
      { label: ['order:1', 'order:2', 'order:1'] },
      { name: 'label', value: 'order:2', why: 'a run has one value for order' },
    ],
    [{ 'not-replayed': 'no' }, { name: 'not-replayed', value: 'no', why: 'the only value is true' }],
    [{ state: 'failed' }, { name: 'state', value: 'failed', why: 'not a filter' }],
  ])('names what cannot be used in %j', (search, invalid) => {
    expect(readFilter(search).invalid).toEqual([invalid])
  })
})

describe('the same filter elsewhere', () => {
  it('bounds the request by the period', () => {
    expect(listRequest('shop', { ...noFilter, since: '1h' }, 7_200_500)).toMatchObject({
      project: 'shop',
      filter: { since: { seconds: 3600n, nanos: 500_000_000 } },
    })
    expect(listRequest('shop', full, 0)).toMatchObject({
      filter: {
        statuses: ['failed', 'timed_out'],
        stuck: ['NO_POLLER'],
        text: 'order-4',
        notReplayed: true,
        parentRunId: 'p1',
        labels: ['order=4711', 'note=a:b, c=d'],
      },
      order: 'oldest',
    })
    expect(countRequest('shop', full, 0).filter).toEqual(listRequest('shop', full, 0).filter)
    expect(selection(noFilter, 0)).not.toHaveProperty('since')
  })

  it.each(RunFilterSchema.fields.map((field) => field.localName))(
    'has the condition %s of the API in the URL, in views, in exports and as a chip',
    (name) => {
      const condition = (of: object) => create(RunFilterSchema, of)[name as keyof Conditions]
      const unset = condition({})
      const { filter } = readFilter(parseSearch(stringifySearch(writeFilter(full))))
      expect(condition(selection(filter, 0))).not.toEqual(unset)
      const view = viewQuery(filter, [])
      for (const of of [view.filter, selection(filterOf(create(ViewQuerySchema, view)), 0)])
        expect(condition(of)).toEqual(condition(selection(filter, 0)))
      const parameter = new URL(exportAddress('shop', filter, 'csv', 0), 'http://localhost').searchParams.getAll(
        name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`),
      )
      expect(parameter.length).toBeGreaterThan(0)
      // The condition has a chip, whose removal removes it.
      const chips = filterChips(filter, 'utc').filter(
        ({ without }) =>
          JSON.stringify(condition(selection({ ...filter, ...without }, 0)), plain) !==
          JSON.stringify(condition(selection(filter, 0)), plain),
      )
      expect(chips).not.toEqual([])
    },
  )

  it('is an export and a command', () => {
    expect(exportAddress('a b', { ...noFilter, statuses: ['failed', 'queued'], since: '1h' }, 'csv', 3_600_000)).toBe(
      '/v1/projects/a%20b/runs:export?format=csv&statuses=failed&statuses=queued&since=1970-01-01T00%3A00%3A00.000Z',
    )
    expect(exportAddress('shop', { ...noFilter, labels: ['a=b, c', 'd=e&f'] }, 'json', 0)).toBe(
      '/v1/projects/shop/runs:export?format=json&labels=a%3Db%2C+c&labels=d%3De%26f',
    )
    expect(listCommand('shop', full)).toBe(
      `signalbox run list --project shop --status failed,timed_out --stuck NO_POLLER --cause DEADLOCK --waiting retry --retrying charge --workflow shop/order --version 1.4.0 --trigger event --text order-4 --words 'order 4711' --error-text 'card declined' --task charge --failure-group g1 --parent p1 --replay-of r1 --batch b1 --started-by-batch b2 --label order=4711 --label 'note=a:b, c=d' --not-replayed --since 2026-01-31T12:00:00.000Z --until 2026-02-01T12:00:00.000Z --error execution_missing --ended-since 2026-01-31T13:00:00.000Z --ended-until 2026-02-01T13:00:00.000Z --order oldest`,
    )
  })
})

describe('the length of a bucket', () => {
  it('is round and makes 120 buckets at most', () => {
    expect(bucketLength(1)).toBe(1000)
    expect(bucketLength(3_600_000)).toBe(30_000)
    expect(bucketLength(86_400_000)).toBe(900_000)
    for (const period of [60_001, 5_000_000, 604_800_000, 1e11, 1e12])
      expect(period / bucketLength(period)).toBeLessThanOrEqual(120)
  })
})

describe('parts of the filter', () => {
  it('are chips, each of which can be removed', () => {
    let filter = full as typeof noFilter
    for (let chips = filterChips(filter, 'utc'); chips.length > 0; chips = filterChips(filter, 'utc')) {
      const next = { ...filter, ...chips[0]?.without }
      expect(filterChips(next, 'utc').length).toBeLessThan(chips.length)
      filter = next
    }
    expect(isFiltered(filter)).toBe(false)
  })

  it('are views, which keep the period', () => {
    for (const view of views) expect(currentView(viewFilter(view, { ...full, version: '' }))).toBe(view.id)
    expect(currentView(full)).toBe('')
    expect(currentView(noFilter)).toBe('all')
  })
})

describe('the parameters of the URL that cannot be used', () => {
  const read = (search: string) => {
    const { filter, invalid } = readFilter(parseSearch(search))
    return { filter, refused: invalid.map(({ name, value, why }) => `${name} ${value}: ${why}`) }
  }

  it.each([
    ['?status=failed,lost', ['status lost: not a status']],
    ['?status=,failed', []],
    ['?stuck=NO_POLLER&stuck=NONE', ['stuck NONE: not a code of stuck runs']],
    ['?stuck=any', []],
    ['?version=1.0.0', ['version 1.0.0: a version needs a workflow']],
    ['?version=1.0.0&workflow=shop/order', []],
    ['?trigger=moon', ['trigger moon: not a trigger']],
    ['?not-replayed=yes', ['not-replayed yes: the only value is true']],
    ['?since=24', [`since 24: ${neither}`]],
    ['?since=0h', [`since 0h: ${neither}`]],
    ['?since=1w', [`since 1w: ${neither}`]],
    ['?ended-since=x', [`ended-since x: ${neither}`]],
    ['?until=24h', ['until 24h: not a moment such as 2026-01-31T12:00:00Z']],
    ['?since=2026-13-31T12:00:00Z', [`since 2026-13-31T12:00:00Z: ${neither}`]],
    ['?since=2026-01-31', [`since 2026-01-31: ${neither}`]],
    ['?ended-until=12:00', ['ended-until 12:00: not a moment such as 2026-01-31T12:00:00Z']],
    ['?sort=random', ['sort random: not an order']],
    ['?label=order', ['label order: not a label such as order:4711']],
    ['?label=order:1&label=order:2', ['label order:2: a run has one value for order']],
    ['?label=order:1&label=order:1', []],
    ['?colour=red', ['colour red: not a filter']],
    ['?peek=r1&view=v1&columns=run', []],
  ])('of %s are %j', (search, expected) => {
    expect(read(search).refused).toEqual(expected)
  })

  it('are left out of the filter', () => {
    const { filter } = read('?status=lost,failed&version=1&trigger=moon&since=24&until=x&sort=y&label=z&not-replayed=1')
    expect(filter).toEqual({ ...noFilter, statuses: ['failed'] })
  })

  it('lose an end before its beginning', () => {
    const since = '2026-01-31T12:00:00Z'
    expect(read(`?since=${since}&until=2026-01-31T11:00:00Z`)).toEqual({
      filter: { ...noFilter, since },
      refused: ['until 2026-01-31T11:00:00Z: not after since'],
    })
    expect(read(`?ended-since=${since}&ended-until=${since}`)).toEqual({
      filter: { ...noFilter, endedSince: since },
      refused: [`ended-until ${since}: not after ended-since`],
    })
  })
})

describe('the chips of a filter', () => {
  const id = '0198c0de-0000-7000-8000-00000000abcd'

  it.each([
    [{ statuses: ['failed', 'timed_out'] }, ['Status: Failed, Timed out']],
    [{ stuck: ['NO_POLLER', 'BACKLOG'] }, ['Stuck: No worker, Backlog']],
    [{ stuck: ['any', 'BACKLOG'] }, ['Stuck']],
    [{ workflow: 'shop/order', version: '1.0.0' }, ['Workflow: shop/order', 'Version: 1.0.0']],
    [{ retrying: 'any' }, ['Retrying']],
    [{ retrying: 'charge' }, ['Retrying: charge']],
    [{ trigger: 'api' }, ['Trigger: API']],
    [{ trigger: 'schedule' }, ['Trigger: Schedule']],
    [{ text: 'abc' }, ['ID begins or ends with: abc']],
    [{ failureGroup: 'g1' }, ['Failure: failures of one cause']],
    [{ parentRunId: id }, ['Started by run 0198c0de…abcd']],
    [{ replayOf: id }, ['Replays of 0198c0de…abcd']],
    [{ batchId: id }, ['Of batch 0198c0de…abcd']],
    [{ startedByBatchId: id }, ['Started by batch 0198c0de…abcd']],
    [{ labels: ['a=1', 'b=2'] }, ['Label: a=1', 'Label: b=2']],
    [{ notReplayed: true }, ['Without a replay']],
    [{ since: '24h' }, ['Queued in the last 24h']],
    [{ since: '2026-01-31T12:00:00Z' }, ['Queued from 2026-01-31 12:00:00 UTC']],
    [{ until: '2026-01-31T12:00:00Z' }, ['Queued before 2026-01-31 12:00:00 UTC']],
    [{ errorType: 'execution_missing' }, ['Error: execution_missing']],
    [{ endedSince: '7d' }, ['Ended in the last 7d']],
    [{ endedSince: '2026-01-31T12:00:00Z' }, ['Ended from 2026-01-31 12:00:00 UTC']],
    [{ endedUntil: '2026-01-31T12:00:00Z' }, ['Ended before 2026-01-31 12:00:00 UTC']],
    [{ order: 'oldest' as const }, []],
  ])('%o are %j', (part, expected) => {
    expect(filterChips({ ...noFilter, ...part }, 'utc').map(({ text }) => text)).toEqual(expected)
  })

  it('each take away what they name, and all of them everything', () => {
    const chips = filterChips(full, 'utc')
    for (const { name, without } of chips) {
      const left = filterChips({ ...full, ...without }, 'utc').map((chip) => chip.name)
      expect(left, name).not.toContain(name)
      expect(left.length, name).toBe(chips.length - (name === 'workflow' ? 2 : 1))
    }
    const none = chips.reduce<RunFilter>(
      (filter, { name }) => ({ ...filter, ...filterChips(filter, 'utc').find((chip) => chip.name === name)?.without }),
      full,
    )
    expect(none).toEqual({ ...noFilter, order: full.order })
  })

  it('name the group of failures once it is known', () => {
    expect(filterChips({ ...noFilter, failureGroup: 'g1' }, 'utc', 'timeout in pay')[0]?.text).toBe(
      'Failure: timeout in pay',
    )
  })
})

describe('the period of a filter', () => {
  const now = Date.UTC(2026, 1, 1)

  it.each([
    [{}, undefined, undefined],
    [{ since: '24h' }, now - 86_400_000, undefined],
    [{ since: '90s' }, now - 90_000, undefined],
    [{ since: '2026-01-31T00:00:00Z' }, Date.UTC(2026, 0, 31), undefined],
    [{ until: '2026-01-31T01:00:00+01:00' }, undefined, Date.UTC(2026, 0, 31)],
    [{ since: '2026-01-01T00:00:00Z', until: '2026-01-31T00:00:00Z' }, Date.UTC(2026, 0, 1), Date.UTC(2026, 0, 31)],
  ])('%o is from %s until %s', (part, since, until) => {
    expect(bounds({ ...noFilter, ...part }, now)).toEqual({ since, until })
  })

  it.each([
    ['1s', 1000],
    ['15m', 900_000],
    ['24h', 86_400_000],
    ['7d', 604_800_000],
    ['', undefined],
    ['h', undefined],
    ['01h', undefined],
    ['1.5h', undefined],
    ['1000000000s', undefined],
  ])('the length %j has %s milliseconds', (text, expected) => {
    expect(periodMilliseconds(text)).toBe(expected)
  })
})

describe('what starts a run', () => {
  it.each([
    ['api', 'API'],
    ['event', 'Event'],
    ['parent', 'Parent'],
  ])('%s is %s in words', (trigger, word) => {
    expect(triggerWord(trigger)).toBe(word)
  })
})
