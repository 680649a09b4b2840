import { describe, expect, it } from 'vitest'
import { newDraft, readEdit } from './edit'
import {
  canCheck,
  canReplay,
  isUnchosen,
  latestLabel,
  replayCommands,
  type ReplayForm,
  type VersionChoice,
  versionOf,
} from './replay'

const form: ReplayForm = {
  reason: 'a fixed address',
  version: { kind: 'same', other: '' },
  labels: undefined,
  edit: undefined,
}
const draft = newDraft('{"card":"⟦redacted⟧","n":1}')
const edited = (change: (text: string) => string) => readEdit({ ...draft, text: change(draft.text) })

describe('the version of a replay', () => {
  it.each<[VersionChoice, string, boolean]>([
    [{ kind: 'same', other: '' }, '', false],
    [{ kind: 'same', other: '1.0.0' }, '', false],
    [{ kind: 'latest', other: '1.0.0' }, 'latest', false],
    [{ kind: 'other', other: '1.0.0' }, '1.0.0', false],
    [{ kind: 'other', other: '' }, '', true],
  ])('of %o is %j; it is still to be chosen: %s', (choice, version, unchosen) => {
    expect(versionOf(choice)).toBe(version)
    expect(isUnchosen(choice)).toBe(unchosen)
  })

  it('says which one is the latest', () => {
    expect(latestLabel(undefined, '1.0.0')).toBe('latest')
    expect(latestLabel('1.0.0', '1.0.0')).toBe('latest, now the same')
    expect(latestLabel('2.0.0', '1.0.0')).toBe('2.0.0, latest')
  })
})

describe('a replay', () => {
  it('can be sent once it has a reason', () => {
    expect(canReplay(form)).toBe(true)
    expect(canReplay({ ...form, reason: ' \n' })).toBe(false)
    expect(canCheck({ ...form })).toBe(true)
  })

  it.each<[string, Partial<ReplayForm>]>([
    ['another version that is not chosen', { version: { kind: 'other', other: '' } }],
    ['labels that a run cannot have', { labels: 'A label has no key' }],
    ['an input that is not JSON', { edit: edited((text) => `${text}]`) }],
    ['a mark in another place', { edit: edited((text) => text.replace('"n": 1', '"n": "⟦redacted:1⟧"')) }],
  ])('can neither be checked nor sent with %s', (_, part) => {
    expect(canCheck({ ...form, ...part })).toBe(false)
    expect(canReplay({ ...form, ...part })).toBe(false)
  })

  it('can be sent with an edited input', () => {
    expect(canReplay({ ...form, edit: edited((text) => text.replace('"n": 1', '"n": 2')) })).toBe(true)
    expect(canReplay({ ...form, edit: edited((text) => text) })).toBe(true)
  })
})

describe('the commands of a replay', () => {
  const request = {
    project: 'my shop',
    id: 'r1',
    reason: "it's fixed",
    version: '',
    patch: undefined,
    labels: [],
    requestId: 'q1',
  }

  it('have the same input without a word about it', () => {
    expect(replayCommands(request)).toEqual({
      cli: `signalbox run replay r1 --project 'my shop' --reason 'it'\\''s fixed' --request-id q1`,
      rest: {
        method: 'POST',
        path: '/v1/projects/my%20shop/runs/r1:replay',
        body: '{"reason":"it\'s fixed","version":"","requestId":"q1"}',
      },
    })
  })

  it('have an edit as a patch, so that sealed values are never in them', () => {
    const { cli, rest } = replayCommands({
      ...request,
      version: 'latest',
      patch: '[{"op":"replace","path":"/n","value":1.50}]',
      labels: [
        { key: 'a', value: '1' },
        { key: 'b', value: '2 3' },
      ],
    })
    expect(cli).toContain(
      `--version latest --patch '[{"op":"replace","path":"/n","value":1.50}]' --label a=1 --label 'b=2 3'`,
    )
    expect(rest.body).toContain('"labels":{"a":"1","b":"2 3"},"patch":[{"op":"replace","path":"/n","value":1.50}]')
  })
})
