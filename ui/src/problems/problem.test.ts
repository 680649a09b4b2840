import { create, type MessageInitShape } from '@bufbuild/protobuf'
import { describe, expect, it } from 'vitest'
import { ProblemSchema } from '../gen/signalbox/v1/problem_pb'
import { runsOf, title, versions, where } from './problem'

const problem = (given: MessageInitShape<typeof ProblemSchema>) => create(ProblemSchema, given)

describe('a problem', () => {
  it('has the word of its code before its title, if runs are stuck', () => {
    expect(title(problem({ kind: 'stuck', code: 'NO_POLLER', title: '12 runs wait' }))).toBe('No worker: 12 runs wait')
    expect(title(problem({ kind: 'failure', code: 'NO_POLLER', title: 'Card declined' }))).toBe('Card declined')
  })

  it.each([
    [{ workflow: 'shop/order', task: 'pay', project: 'shop', taskQueue: 'q' }, 'shop/order · pay · shop'],
    [{ taskQueue: 'q', project: 'shop' }, 'q · shop'],
    [{}, 'all projects'],
  ])('of %o is at %s', (given, text) => {
    expect(where(problem(given))).toBe(text)
  })

  it('lists its versions with their numbers', () => {
    expect(
      versions(
        problem({
          versions: [
            { version: '1.0.0', count: 12_000n },
            { version: '1.1.0', count: 1n },
          ],
        }),
      ),
    ).toBe('1.0.0 (12,000), 1.1.0 (1)')
  })

  it('leads to its runs', () => {
    const failure = { kind: 'failure', failureGroup: 'g1', project: 'a b' }
    expect(runsOf(problem({ ...failure, state: 'open' }))).toEqual({
      to: '/p/a%20b/runs',
      search: { 'failure-group': 'g1', 'not-replayed': 'true' },
    })
    expect(runsOf(problem({ ...failure, state: 'resolved' }))?.search).toEqual({ 'failure-group': 'g1' })
    expect(runsOf(problem({ ...failure, failureGroup: '' }))).toBeUndefined()
    expect(runsOf(problem({ kind: 'stuck', code: 'BACKLOG', project: 'shop' }))).toEqual({
      to: '/p/shop/runs',
      search: { stuck: 'BACKLOG' },
    })
    const retrying = { kind: 'retrying', project: 'shop', workflow: 'shop/order', pointer: '/do/1/pay' }
    expect(runsOf(problem(retrying))?.search).toEqual({ retrying: '/do/1/pay', workflow: 'shop/order' })
    expect(runsOf(problem({ kind: 'platform', project: 'shop' }))).toBeUndefined()
  })
})
