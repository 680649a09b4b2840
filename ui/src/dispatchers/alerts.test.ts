import { create, type MessageInitShape } from '@bufbuild/protobuf'
import { describe, expect, it } from 'vitest'
import { DispatcherSchema } from '../gen/signalbox/v1/dispatcher_pb'
import { alerts } from './dispatcher'

const shown = (dispatcher: MessageInitShape<typeof DispatcherSchema>) =>
  alerts(create(DispatcherSchema, dispatcher)).map(({ id, tone, detail }) => `${id} ${tone}: ${String(detail)}`)

describe('the alerts of a dispatcher', () => {
  it.each(['routing', 'parked'])('are none while it is %s', (state) => {
    expect(shown({ state })).toEqual([])
  })

  it.each([
    ['missing', 'red'],
    ['no_workers', 'red'],
    ['stale', 'red'],
    ['unknown', 'amber'],
    ['foreign', 'amber'],
  ])('say that it is %s, in %s', (state, tone) => {
    expect(shown({ state, detail: 'why' })).toEqual([`state ${tone}: why`])
    expect(shown({ state })).toEqual([`state ${tone}: The server gives no explanation.`])
  })

  it('say that it has several owners', () => {
    const owner = (serverId: string, epoch: bigint) => ({ owner: { serverId, epoch } })
    const same = { state: 'routing', lease: owner('a', 1n), progress: owner('a', 1n), execution: owner('a', 1n) }
    expect(shown(same)).toEqual([])
    expect(shown({ ...same, execution: owner('', 0n) })).toEqual([])
    expect(shown({ ...same, lease: owner('b', 1n) })).toHaveLength(1)
    expect(shown({ ...same, progress: owner('a', 2n) })[0]).toMatch(/^owners amber: This lasts for seconds/)
  })
})
