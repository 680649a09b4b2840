import { create, type MessageInitShape } from '@bufbuild/protobuf'
import { describe, expect, it } from 'vitest'
import { CheckRestoreResponseSchema, GetStatusResponseSchema } from '../gen/signalbox/v1/system_pb'
import { alerts } from './SystemPage'
import { verdict } from './words'

const shown = (status: MessageInitShape<typeof GetStatusResponseSchema>) =>
  alerts(create(GetStatusResponseSchema, status)).map(({ id, tone, title }) => `${id} ${tone}: ${String(title)}`)

describe('the alerts of the installation', () => {
  it('are none while all works', () => {
    expect(
      shown({
        connection: { state: 'connected' },
        dependencies: [
          { name: 'store', state: 'up' },
          { name: 'temporal', state: 'up' },
        ],
      }),
    ).toEqual([])
  })

  it('name Temporal once, and each part that does not work', () => {
    expect(
      shown({
        connection: { state: 'down', title: 'Temporal does not answer' },
        dependencies: [
          { name: 'temporal', state: 'down' },
          { name: 'store', state: 'impaired' },
          { name: 'payload_store', state: 'down', title: 'The bucket is gone' },
        ],
        workersError: 'the store does not answer',
      }),
    ).toEqual([
      'temporal red: Temporal does not answer',
      'store amber: Store: impaired',
      'payload_store red: The bucket is gone',
      'workers amber: The workers are not known.',
    ])
  })

  it('name the runners without isolation', () => {
    const runner = (serverId: string, shell: string) => ({ serverId, isolations: { js: 'webassembly', shell } })
    const of = (...runners: ReturnType<typeof runner>[]) => shown({ connection: { state: 'connected' }, runners: [{ runners }] })
    expect(of(runner('a', 'bubblewrap'))).toEqual([])
    expect(of(runner('a', 'bubblewrap'), runner('b', 'none'))).toEqual([
      'isolation amber: Programs are executed without isolation.',
    ])
  })

  it.each([
    ['connecting', 'amber'],
    ['degraded', 'amber'],
    ['closed', 'amber'],
    ['down', 'red'],
  ])('have a connection that is %s in %s', (state, tone) => {
    expect(shown({ connection: { state, title: 't' } })).toEqual([`temporal ${tone}: t`])
  })
})

describe('the result of a restore check', () => {
  const result = (check: MessageInitShape<typeof CheckRestoreResponseSchema>) =>
    verdict(create(CheckRestoreResponseSchema, check))

  it('keeps the maintenance on until the check is complete', () => {
    expect(result({ complete: false, maintenance: { active: true } })).toMatchObject({
      tone: 'amber',
      title: 'The database and Temporal differ, or it is not known whether they do.',
    })
  })

  it('asks to end the maintenance once they agree', () => {
    expect(result({ complete: true, maintenance: { active: true } })).toMatchObject({
      tone: 'amber',
      detail: 'End the maintenance to let runs start.',
    })
    expect(result({ complete: true })).toMatchObject({ tone: 'blue', detail: undefined })
  })
})
