import { create } from '@bufbuild/protobuf'
import { describe, expect, it } from 'vitest'
import { AttemptLogSchema, ListLogsResponseSchema } from '../gen/signalbox/v1/run_pb'
import { allLogs, skippedText, streamsOf } from './logs'

const log = (attempt: number, stdout = '', stderr = '', skippedBytes = 0n) =>
  create(AttemptLogSchema, { attempt, stdout: { text: stdout, skippedBytes }, stderr: { text: stderr } })

describe('the logs of a step', () => {
  it('are read page by page, and the last one says what is unknown', async () => {
    const pages: Record<string, Parameters<typeof create<typeof ListLogsResponseSchema>>[1]> = {
      '': { logs: [log(1)], nextPageToken: 'next' },
      next: { logs: [log(2)], runningError: 'Temporal is unavailable' },
    }
    const read = await allLogs(async (token) => Promise.resolve(create(ListLogsResponseSchema, pages[token])))
    expect(read.logs.map(({ attempt }) => attempt)).toEqual([1, 2])
    expect(read.unknown).toBe('Temporal is unavailable')
  })

  it('have the streams with anything in them', () => {
    expect(streamsOf(log(1, 'a', 'b')).map(({ name }) => name)).toEqual(['Standard output', 'Standard error'])
    expect(streamsOf(log(1, '', 'b')).map(({ name }) => name)).toEqual(['Standard error'])
    expect(streamsOf(log(1))).toEqual([])
  })

  it('say what is not kept', () => {
    expect(streamsOf(log(1, 'a', '', 2000n)).map(({ stream }) => skippedText(stream))).toEqual([
      'the first 2.0 kB are not kept',
    ])
    expect(streamsOf(log(1, 'a')).map(({ stream }) => skippedText(stream))).toEqual([''])
  })
})
