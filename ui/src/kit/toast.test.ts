import { Code, ConnectError } from '@connectrpc/connect'
import { beforeEach, describe, expect, it } from 'vitest'
import { messages, toast, toastError } from './Toast'

const texts = () => messages.get().map(({ text }) => text)

describe('short messages', () => {
  beforeEach(() => {
    messages.set([])
  })

  it('are at most four, the newest last', () => {
    for (const text of ['a', 'b', 'c', 'd', 'e']) toast(text)
    expect(texts()).toEqual(['b', 'c', 'd', 'e'])
  })

  it('have an ID each, also with the same text', () => {
    toast('a')
    toast('a')
    expect(new Set(messages.get().map(({ id }) => id)).size).toBe(2)
  })

  it('say why a call failed, in the words of the server', () => {
    toastError(new ConnectError('the run has ended', Code.FailedPrecondition))
    expect(messages.get()).toMatchObject([{ text: 'the run has ended', tone: 'error' }])
    toastError(new TypeError('Failed to fetch'))
    expect(texts().at(-1)).toBe('The server did not answer. Check the connection and try again.')
  })
})
