import { describe, expect, it } from 'vitest'
import { readJson } from '../api'
import { canCheck, type Readiness, shownErrors, startAlerts, startCommands, startRefusal } from './request'

const ready: Readiness = {
  caller: undefined,
  name: 'shop/order',
  workflow: { state: 'published', latestVersion: '1.0.0' },
  reading: false,
  problem: undefined,
  broken: 0,
  wrong: 0,
  labels: undefined,
}

describe('why a run cannot be started', () => {
  it('is not there for a complete request', () => {
    expect(startRefusal(ready)).toBeUndefined()
    expect(canCheck(ready)).toBe(true)
  })

  it.each<[Partial<Readiness>, string, boolean]>([
    [{ caller: 'Needs operator in shop' }, 'Needs operator in shop', false],
    [{ name: '', workflow: undefined }, 'Choose a workflow', false],
    [{ workflow: undefined }, 'The workflow has not been read', false],
    [{ workflow: { state: 'paused', latestVersion: '1.0.0' } }, 'The workflow is paused', true],
    [{ workflow: { state: 'draft', latestVersion: '' } }, 'Nothing is published', false],
    [{ reading: true }, 'The version is being read', true],
    [{ problem: 'expected a value' }, 'The input is not JSON', false],
    [{ broken: 1 }, 'A field contains text that is not JSON', false],
    [{ wrong: 1 }, 'A number is not a number', false],
    [{ labels: 'A label has no key' }, 'A label has no key', false],
  ])('with %o is %j; the server can check it: %s', (part, text, checkable) => {
    expect(startRefusal({ ...ready, ...part })).toBe(text)
    expect(canCheck({ ...ready, ...part })).toBe(checkable)
  })

  it('is the first of several reasons', () => {
    const all: Readiness = {
      ...ready,
      caller: 'offline',
      workflow: { state: 'paused', latestVersion: '' },
      broken: 1,
      labels: 'A label has no key',
    }
    expect(startRefusal(all)).toBe('offline')
    expect(startRefusal({ ...all, caller: undefined })).toBe('The workflow is paused')
    expect(startRefusal({ ...all, caller: undefined, workflow: ready.workflow })).toBe(
      'A field contains text that is not JSON',
    )
  })
})

describe('the errors at the fields', () => {
  const schema = readJson(
    '{"type":"object","required":["id","at"],"properties":{"id":{"type":"string"},"at":{"type":"string","format":"date"},"n":{"type":"integer"}}}',
  )
  const given = {
    schema,
    value: readJson('{"at":"tomorrow"}'),
    reported: [] as { path: string; message: string }[],
    wrong: [] as string[],
    submitted: true,
    checked: true,
  }
  const shown = (part: Partial<typeof given>) => {
    const { errors, complete } = shownErrors({ ...given, ...part })
    return { errors: Object.fromEntries(errors), complete }
  }

  it('are all there once the input was submitted', () => {
    expect(shown({}).errors).toEqual({ '/id': 'Required', '/at': 'Not a date, such as 2026-01-31' })
    expect(shown({ checked: false }).errors).toEqual({ '/id': 'Required', '/at': 'Not a date, such as 2026-01-31' })
  })

  it('do not mark what is missing before that', () => {
    expect(shown({ submitted: false }).errors).toEqual({ '/at': 'Not a date, such as 2026-01-31' })
  })

  it('mark nothing while a person types, but numbers that are none', () => {
    expect(shown({ submitted: false, checked: false }).errors).toEqual({})
    expect(shown({ submitted: false, checked: false, wrong: ['/n'] }).errors).toEqual({ '/n': 'not a number' })
  })

  it('have those of the server, which then need no sentence of their own', () => {
    const value = readJson('{"id":"a","at":"2026-01-31","n":7}')
    expect(shown({ value, reported: [{ path: 'input/n', message: 'must be less than 5' }] })).toEqual({
      errors: { '/n': 'must be less than 5' },
      complete: true,
    })
    expect(shown({ value, reported: [{ path: 'labels/order', message: 'is empty' }] })).toEqual({
      errors: {},
      complete: true,
    })
  })

  it('are not complete where the server reported something else, or nothing', () => {
    const value = readJson('{"id":"a","at":"2026-01-31"}')
    expect(shown({ value }).complete).toBe(false)
    expect(shown({ value, reported: [{ path: 'version', message: 'is unknown' }] }).complete).toBe(false)
    expect(shown({ value, reported: [{ path: 'inputs', message: 'is unknown' }] }).complete).toBe(false)
    expect(shown({ value, reported: [{ path: 'input/more', message: 'is not allowed' }] }).complete).toBe(false)
  })

  it('are not complete without a form', () => {
    const reported = [{ path: 'input', message: 'must be an object' }]
    expect(shown({ schema: undefined as never, value: 'text', reported })).toEqual({
      errors: { '': 'must be an object' },
      complete: false,
    })
  })
})

describe('the commands of a start', () => {
  const request = {
    project: 'my shop',
    workflow: 'shop/order',
    version: '',
    input: undefined,
    labels: [],
    requestId: 'q1',
  }

  it('name what is needed alone', () => {
    expect(startCommands(request)).toEqual({
      cli: "signalbox run start shop/order --project 'my shop' --request-id q1",
      rest: {
        method: 'POST',
        path: '/v1/projects/my%20shop/runs',
        body: '{"workflow":"shop/order","requestId":"q1"}',
      },
    })
  })

  it('have version, input and labels, with every digit', () => {
    const { cli, rest } = startCommands({
      ...request,
      project: 'shop',
      version: '1.0.0',
      input: readJson('{"n":1.50,"text":"it\'s"}'),
      labels: [
        { key: 'order', value: '4711' },
        { key: 'note', value: 'a b' },
      ],
    })
    expect(cli).toBe(
      `signalbox run start shop/order --project shop --version 1.0.0 --input '{"n":1.50,"text":"it'\\''s"}' --label order=4711 --label 'note=a b' --request-id q1`,
    )
    expect(rest.body).toBe(
      '{"workflow":"shop/order","version":"1.0.0","input":{"n":1.50,"text":"it\'s"},"labels":{"order":"4711","note":"a b"},"requestId":"q1"}',
    )
  })

  it('have the input null', () => {
    expect(startCommands({ ...request, input: null }).cli).toContain('--input null')
  })
})

describe('the alerts before a start', () => {
  const connected = { state: 'connected', title: '', mismatch: '', queuesRuns: false }
  const fine = { paused: undefined, unpublished: false, connection: connected, workers: 2 }
  const ids = (part: Partial<Parameters<typeof startAlerts>[1]>) =>
    startAlerts('shop', { ...fine, ...part }).map(({ id, tone }) => `${id} ${tone}`)

  it('are none where all is well, or not known', () => {
    expect(ids({})).toEqual([])
    expect(ids({ connection: undefined, workers: undefined })).toEqual([])
    expect(ids({ connection: { ...connected, state: 'degraded' } })).toEqual([])
  })

  it('say what refuses or delays the run', () => {
    expect(ids({ paused: 'A bug.' })).toEqual(['paused amber'])
    expect(ids({ unpublished: true })).toEqual(['unpublished amber'])
    expect(ids({ connection: { ...connected, state: 'down' } })).toEqual(['engine red'])
    expect(ids({ connection: { ...connected, mismatch: 'Another Temporal' } })).toEqual(['mismatch red'])
    expect(ids({ workers: 0 })).toEqual(['worker amber'])
    expect(
      ids({ paused: '', unpublished: true, connection: { ...connected, state: 'down', mismatch: 'x' }, workers: 0 }),
    ).toEqual(['paused amber', 'unpublished amber', 'engine red', 'mismatch red', 'worker amber'])
  })

  it('say whether a run is queued or refused without Temporal', () => {
    const down = { ...connected, state: 'down', title: 'Temporal does not answer' }
    expect(startAlerts('shop', { ...fine, connection: down })[0]).toMatchObject({
      title: 'Temporal does not answer: the run will be refused',
      detail: 'Try again when Temporal is available again.',
    })
    expect(startAlerts('shop', { ...fine, connection: { ...down, queuesRuns: true } })[0]).toMatchObject({
      title: 'Temporal does not answer: the run will be queued',
      detail: 'It starts when Temporal is available again.',
    })
  })

  it('have the reason of a paused workflow', () => {
    expect(startAlerts('shop', { ...fine, paused: 'A bug.' })[0]?.detail).toBe('A bug.')
  })
})
