import { describe, expect, it } from 'vitest'
import {
  backfillCommands,
  fieldOf,
  formOf,
  formProblem,
  lengthOf,
  lengthText,
  momentOf,
  periodProblem,
  settingsCommands,
  settingsOf,
} from './schedule'

describe('lengthOf', () => {
  it.each([
    ['30s', 30_000],
    ['1h30m', 5_400_000],
    ['1 h 30 m', 5_400_000],
    ['2d', 172_800_000],
    ['100ms', 100],
    ['0.5s', 500],
    ['0s', 0],
  ])('reads %s', (text, ms) => expect(lengthOf(text)).toBe(ms))
  it.each(['', 'soon', '5', '5 x', '1h x', '-1s'])('refuses %s', (text) => expect(lengthOf(text)).toBeUndefined())
})

describe('lengthText', () => {
  it.each([0, 100, 1000, 5_420_250, 90_061_000, 31_536_000_000])('writes %d exactly', (ms) =>
    expect(lengthOf(lengthText(ms))).toBe(ms),
  )
  it('writes nothing for none', () => expect(lengthText(undefined)).toBe(''))
})

const form = {
  timeZone: ' Europe/Berlin ',
  overlap: 'queue one',
  jitter: '30s',
  catchUp: '',
  pausedUntil: '2027-01-02T06:00',
}

describe('the settings of a schedule', () => {
  it('become those of the API', () =>
    expect(settingsOf(form)).toEqual({
      timeZone: 'Europe/Berlin',
      overlap: 'queue one',
      jitter: { seconds: 30n, nanos: 0 },
      pausedUntil: { seconds: 1798869600n, nanos: 0 },
    }))
  it('become a command', () => {
    expect(settingsCommands('shop', 'a/b', form, true).cli).toBe(
      "signalbox workflow set a/b --project shop --time-zone Europe/Berlin --overlap 'queue one' --jitter 30s --catch-up none --pause-until 2027-01-02T06:00:00.000Z",
    )
    expect(settingsCommands('shop', 'a/b', formOf(undefined), false).cli).toBe(
      'signalbox workflow set a/b --project shop --overlap none --jitter none --catch-up none --pause-until none',
    )
  })
  it('become a call', () =>
    expect(settingsCommands('shop', 'a/b', form, true).rest).toEqual({
      method: 'PUT',
      path: '/v1/projects/shop/workflows/a/b:schedule',
      body: '{"settings":{"timeZone":"Europe/Berlin","overlap":"queue one","jitter":"30s","pausedUntil":"2027-01-02T06:00:00.000Z"}}',
    }))
  it('have problems of their own', () => {
    expect(formProblem(form, 'jitter')).toBeUndefined()
    expect(formProblem(form, 'catchUp')).toBeUndefined()
    expect(formProblem({ ...form, catchUp: 'soon' }, 'catchUp')).toBe('Write it like 30s or 2h.')
  })
})

describe('the period of a backfill', () => {
  it('has two ends in order', () => {
    expect(periodProblem({ since: '', until: '2026-11-20T10:00' })).toBe('Give both ends of the period.')
    expect(periodProblem({ since: '2026-11-20T10:00', until: '2026-11-20T10:00' })).toBe(
      'The period ends before it begins.',
    )
    expect(periodProblem({ since: '2026-11-20T09:00', until: '2026-11-20T10:00' })).toBeUndefined()
  })
  it('becomes a command and a call', () => {
    const { cli, rest } = backfillCommands('shop', 'a/b', { since: '2026-11-20T09:00', until: '2026-11-20T10:00' })
    expect(cli).toBe(
      'signalbox workflow backfill a/b --project shop --since 2026-11-20T09:00:00.000Z --until 2026-11-20T10:00:00.000Z',
    )
    expect(rest.path).toBe('/v1/projects/shop/workflows/a/b:backfill')
  })
  it('reads its fields in UTC', () => {
    expect(fieldOf(momentOf('2026-11-20T09:00'))).toBe('2026-11-20T09:00')
    expect(fieldOf(momentOf('2026-11-20T09:00:07'))).toBe('2026-11-20T09:00:07')
    expect(momentOf('')).toBeUndefined()
  })
})
