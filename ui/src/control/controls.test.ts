import { create } from '@bufbuild/protobuf'
import { describe, expect, it } from 'vitest'
import { RunSchema } from '../gen/signalbox/v1/run_pb'
import { answered, controlCommands, controlWords, doneText, noteOf, refusalOf, stateText } from './controls'

const run = (more: object) => create(RunSchema, { id: 'r1', status: 'running', ...more } as never)
const state = (more: object) => run({ controlStates: [{ control: 'cancel', ...more }] })

describe('why a control does nothing', () => {
  it('is not known where the server says that it takes effect', () => {
    expect(refusalOf(state({ effect: 'yes', detail: 'A worker may be gone.' }), 'cancel')).toBeUndefined()
  })

  it.each([
    [{ effect: 'no', detail: 'The run ended at 12:00.', reason: 'RUN_ENDED' }, 'The run ended at 12:00.'],
    [{ effect: 'no', reason: 'RUN_ENDED' }, 'The run has ended.'],
    [{ effect: 'no', reason: 'RUN_STARTING' }, 'The run is being submitted to Temporal.'],
    [{ effect: 'no', reason: 'RUN_NOT_STARTED' }, 'The run has not been submitted to Temporal yet.'],
    [{ effect: 'no', reason: 'RUN_CANCELING' }, 'The run is being canceled.'],
    [{ effect: 'no', reason: 'RUN_IMPORTED' }, 'The run was imported: it cannot be controlled here.'],
    [{ effect: 'no', reason: 'OTHER_REASON' }, 'OTHER_REASON'],
    [{ effect: 'no' }, 'It does not apply to the run in its current state.'],
    [{ effect: 'no_effect' }, 'It would not change the run in its current state.'],
    [{ effect: 'no_effect', detail: 'It is paused.' }, 'It is paused.'],
  ])('is said for %o', (of, text) => {
    expect(refusalOf(state(of), 'cancel')).toBe(text)
  })

  it('follows the list of controls of a server without states', () => {
    expect(refusalOf(run({ controls: ['cancel'] }), 'cancel')).toBeUndefined()
    expect(refusalOf(run({ controls: ['cancel'] }), 'terminate')).toBe(
      'It does not apply to the run in its current state.',
    )
  })
})

describe('the note of a control', () => {
  it('is what may still refuse it', () => {
    expect(noteOf(state({ effect: 'yes', detail: 'No worker is alive.' }), 'cancel')).toBe('No worker is alive.')
    expect(noteOf(state({ effect: 'no', detail: 'It has ended.' }), 'cancel')).toBe('')
    expect(noteOf(state({ effect: 'yes', detail: 'No worker is alive.' }), 'pause')).toBe('')
    expect(noteOf(run({}), 'cancel')).toBe('')
  })
})

describe('the state of a run in a dialog', () => {
  it.each([
    [{}, 'running'],
    [{ status: 'waiting', waitingKind: 'timer' }, 'waiting: timer'],
    [{ status: 'queued', queuedReason: 'quota', waitingKind: 'timer' }, 'queued: quota'],
    [{ status: 'running', waitingKind: 'timer' }, 'running'],
    [{ cancelRequested: true }, 'running, cancel requested'],
    [{ status: 'timed_out', cancelRequested: true }, 'timed out'],
  ])('of %o is %j', (of, text) => {
    expect(stateText(run(of))).toBe(text)
  })
})

describe('the words of the controls', () => {
  it('ask for a reason where a run is ended without its worker', () => {
    const required = Object.entries(controlWords).filter(([, words]) => words.reasonRequired)
    expect(required.map(([name]) => name)).toEqual(['terminate'])
    expect(controlWords.terminate.danger).toBe(true)
  })
})

describe('the commands of a control', () => {
  it('name the run and the reason', () => {
    expect(controlCommands('cancel', 'my shop', 'r1', 'too late')).toEqual({
      cli: "signalbox run cancel r1 --project 'my shop' --reason 'too late'",
      rest: { method: 'POST', path: '/v1/projects/my%20shop/runs/r1:cancel', body: '{"reason":"too late"}' },
    })
    expect(controlCommands('unpause', 'shop', 'r1', '').cli).toBe('signalbox run unpause r1 --project shop')
  })

  it('of the quota are those of the project, for one run', () => {
    expect(controlCommands('resume_quota', 'shop', 'r1', 'paid')).toEqual({
      cli: 'signalbox quota resume r1 --project shop --reason paid',
      rest: { method: 'POST', path: '/v1/projects/shop/quota:resume', body: '{"runIds":["r1"],"reason":"paid"}' },
    })
  })
})

describe('what became of a control', () => {
  it('is that the server accepted it; a worker has yet to cancel the run', () => {
    expect(doneText('pause', run({}))).toBe('Pause: the server has accepted it.')
    expect(doneText('resume_quota', undefined)).toBe('Resume quota: the server has accepted it.')
    expect(doneText('cancel', run({ cancelRequested: true }))).toBe('Cancel requested. A worker ends the run.')
    expect(doneText('cancel', run({ status: 'canceled', cancelRequested: true }))).toBe(
      'Cancel: the server has accepted it.',
    )
  })

  it('changes the state of the run alone, not what only a whole run has', () => {
    const known = run({ input: { json: '1' }, workflow: 'shop/order', sequence: 3n })
    const next = { ...known, ...answered(run({ status: 'waiting', waitingKind: 'paused', sequence: 4n })) }
    expect(next).toMatchObject({
      status: 'waiting',
      waitingKind: 'paused',
      sequence: 4n,
      workflow: 'shop/order',
      input: { json: '1' },
    })
  })
})
