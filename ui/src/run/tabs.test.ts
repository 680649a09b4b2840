import { create, type MessageInitShape } from '@bufbuild/protobuf'
import { describe, expect, it } from 'vitest'
import { RunSchema } from '../gen/signalbox/v1/run_pb'
import { neighbours, related, runTabs, temporalAddress, withSteps } from './tabs'

const run = (given: MessageInitShape<typeof RunSchema> = {}) => create(RunSchema, given)
const ids = (...given: Parameters<typeof runTabs>) => runTabs(...given).map(({ id }) => id)

describe('the tabs of a run', () => {
  it('keep their numbers: waits come and go at the end', () => {
    const standard = ['graph', 'timeline', 'steps', 'events', 'related', 'audit', 'json']
    expect(ids(run(), '')).toEqual(standard)
    expect(ids(run({ waits: [{ kind: 'timer' }] }), '')).toEqual([...standard, 'waits'])
  })

  it('keep the waits while they are shown, after the last has ended', () => {
    expect(ids(run(), 'waits').at(-1)).toBe('waits')
    expect(ids(run(), 'audit')).not.toContain('waits')
  })

  it('have the numbers of what they show', () => {
    const tabs = runTabs(
      run({
        stepsTotal: 12n,
        children: ['a', 'b'],
        replayOf: 'c',
        waits: [{ kind: 'timer' }, { kind: 'event' }],
        moreWaits: true,
      }),
      '',
    )
    const counts = Object.fromEntries(tabs.map(({ id, count }) => [id, count]))
    expect(counts).toMatchObject({ steps: '12', related: '3', waits: '2+', json: undefined })
  })

  it('with steps are the three that show them', () => {
    expect(ids(run({ waits: [{}] }), '').filter((id) => withSteps.has(id))).toEqual(['graph', 'timeline', 'steps'])
  })
})

describe('the runs beside a run in a list', () => {
  it('are those before and after it, as far as there are any', () => {
    expect(neighbours(['a', 'b', 'c'], 'b')).toEqual({ previous: 'a', next: 'c' })
    expect(neighbours(['a', 'b', 'c'], 'a')).toEqual({ previous: undefined, next: 'b' })
    expect(neighbours(['a', 'b', 'c'], 'c')).toEqual({ previous: 'b', next: undefined })
    expect(neighbours(['a'], 'a')).toEqual({ previous: undefined, next: undefined })
  })

  it('are not there where the list does not have it', () => {
    expect(neighbours(['a'], 'b')).toBeUndefined()
    expect(neighbours([], 'b')).toBeUndefined()
  })
})

describe('the address of a run in Temporal', () => {
  it.each(['https://temporal.example/x', 'http://localhost:8233', 'HTTPS://a'])('is a link to %s', (url) => {
    expect(temporalAddress(run({ temporal: { url } }))).toBe(url)
  })

  it.each(['javascript:alert(1)', 'data:text/html,x', '//evil.example', 'ftp://a', '', ' https://a'])(
    'is none to %j',
    (url) => {
      expect(temporalAddress(run({ temporal: { url } }))).toBeUndefined()
    },
  )

  it('is not there for a run that was never in Temporal', () => {
    expect(temporalAddress(run())).toBeUndefined()
  })
})

describe('the runs that a run is linked to', () => {
  it('are its parent, original, replays and children, in this order', () => {
    expect(
      related(
        run({
          parentRunId: 'p',
          parentPath: '/do/0/sub',
          replayOf: 'o',
          replays: ['r1', 'r2'],
          children: ['c'],
        }),
      ),
    ).toEqual([
      { id: 'p', what: 'Parent, by its task at /do/0/sub' },
      { id: 'o', what: 'Original of this replay' },
      { id: 'r1', what: 'Replay of this run' },
      { id: 'r2', what: 'Replay of this run' },
      { id: 'c', what: 'Child, started by this run' },
    ])
    expect(related(run())).toEqual([])
  })
})
