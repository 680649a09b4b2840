import { create, type MessageInitShape } from '@bufbuild/protobuf'
import { describe, expect, it } from 'vitest'
import { ProblemSchema } from '../gen/signalbox/v1/problem_pb'
import { type EditedText, followed, goneRefusal, isSettled, leftRuns, otherText, roleProject } from './action'

const problem = (given: MessageInitShape<typeof ProblemSchema>) => create(ProblemSchema, given)

describe('what can be done about a problem', () => {
  it.each([
    ['open', false],
    ['acknowledged', true],
    ['snoozed', true],
    ['resolved', false],
  ])('that is %s includes to reopen it: %s', (state, expected) => {
    expect(isSettled(problem({ state }))).toBe(expected)
  })

  it('is nothing once it is resolved', () => {
    expect(goneRefusal(problem({ state: 'resolved' }))).toBe('The problem no longer exists.')
    expect(goneRefusal(problem({ state: 'snoozed' }))).toBeUndefined()
  })

  it('needs a role in its project, or in all for one of the platform', () => {
    expect(roleProject(problem({ project: 'shop' }))).toBe('shop')
    expect(roleProject(problem({}))).toBe('*')
  })

  it('is to replay the runs that have no replay yet', () => {
    expect(leftRuns(problem({ state: 'open', notReplayed: 3n }))).toBe(3n)
    expect(leftRuns(problem({ state: 'open' }))).toBe(0n)
    expect(leftRuns(problem({ state: 'resolved', notReplayed: 3n }))).toBe(0n)
  })
})

describe('a text that two operators edit', () => {
  const untouched: EditedText = { first: 'ann', text: 'ann' }
  const typed: EditedText = { first: 'ann', text: 'ann and bob' }

  it('follows the server while it was not changed here', () => {
    expect(followed(untouched, 'carl')).toEqual({ first: 'carl', text: 'carl' })
    expect(followed(untouched, 'ann')).toBe(untouched)
  })

  it('is not lost when the server has another one', () => {
    expect(followed(typed, 'carl')).toBe(typed)
    expect(otherText(typed, 'carl')).toBe('carl')
  })

  it('replaces nothing while the server has the first one, or the same', () => {
    expect(otherText(typed, 'ann')).toBeUndefined()
    expect(otherText(typed, 'ann and bob')).toBeUndefined()
    expect(otherText(untouched, 'carl')).toBeUndefined()
  })
})
