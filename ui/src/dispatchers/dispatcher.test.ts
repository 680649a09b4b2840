import { create, type MessageInitShape } from '@bufbuild/protobuf'
import { describe, expect, it } from 'vitest'
import { DispatcherProgressSchema, PlanItemSchema } from '../gen/signalbox/v1/dispatcher_pb'
import { lagText, planRefusal, planResult } from './dispatcher'

const items = (...errors: string[]) => errors.map((error) => create(PlanItemSchema, { error }))

describe('the lag of a dispatcher', () => {
  const lag = (given: MessageInitShape<typeof DispatcherProgressSchema>) =>
    lagText(create(DispatcherProgressSchema, given), 'none')

  it('is a duration, none, or unknown; unknown is not none', () => {
    expect(lag({ lag: { seconds: 61n } })).toBe('1m 01s')
    expect(lag({ lag: {} })).toBe('none')
    expect(lag({})).toBe('unknown')
    expect(lagText(undefined, 'none')).toBe('unknown')
  })
})

describe('a plan', () => {
  it('is applied once it is known and has something to do', () => {
    expect(planRefusal(undefined)).toBe('The plan is not known yet.')
    expect(planRefusal([])).toBe('There is nothing to do.')
    expect(planRefusal(items(''))).toBeUndefined()
  })

  it('says what became of its actions, with the first error', () => {
    expect(planResult(items('', ''))).toEqual({ text: 'Applied 2 actions.', tone: 'normal' })
    expect(planResult(items('', 'no owner', 'gone'))).toEqual({ text: '2 actions failed: no owner', tone: 'error' })
    expect(planResult(items('no owner'))).toEqual({ text: '1 action failed: no owner', tone: 'error' })
  })
})
