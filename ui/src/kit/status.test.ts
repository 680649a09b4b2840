import { describe, expect, it } from 'vitest'
import { inWords, statusOptions, statusWord, vocabularies, type Vocabulary } from './status'

describe('the words of a status', () => {
  it.each([
    ['timed_out', 'Timed out'],
    ['NO_POLLER', 'No poller'],
    ['api', 'Api'],
    ['', ''],
  ])('of %j are %j', (code, words) => {
    expect(inWords(code)).toBe(words)
  })

  it.each([
    ['run', 'failed', 'Failed', 'red'],
    ['step', 'caught', 'Failed, caught', 'slate'],
    ['run', 'hovering_low', 'Hovering low', 'slate'],
    ['run', '', 'Unknown', 'slate'],
    ['stuck', 'NEW_REASON', 'New reason', 'amber'],
  ] as const)('%s %j is shown as %j in %s', (of, status, word, tone) => {
    expect(statusWord(of, status)).toMatchObject({ word, tone })
  })

  it('have no two meanings within a vocabulary', () => {
    for (const [name, words] of Object.entries(vocabularies)) {
      const shown = Object.keys(words).map((status) => statusWord(name as Vocabulary, status).word)
      expect(new Set(shown).size, name).toBe(shown.length)
    }
  })

  it('have an icon beside their colour', () => {
    for (const [name, words] of Object.entries(vocabularies)) {
      for (const status of Object.keys(words)) expect(statusWord(name as Vocabulary, status).icon).toBeDefined()
    }
  })
})

describe('the options of a filter', () => {
  it('are the statuses with their words, in the order of the vocabulary', () => {
    expect(statusOptions('event')).toEqual([
      { value: 'pending', label: 'Pending' },
      { value: 'routed', label: 'Routed' },
      { value: 'unmatched', label: 'Unmatched' },
      { value: 'rejected', label: 'Rejected' },
    ])
  })
})
