import { callError, clients, milliseconds, observeServerTime } from '../api'
import type { RunsChange } from '../gen/signalbox/v1/watch_pb'
import type { listRequest } from './filter'

/** At most so many tabs of a browser stream: a server without HTTP/2 gets six connections from one browser. The others poll. */
const mostStreams = 4
/** The server sends at least one message each 15 seconds. */
const silence = 20_000
const delays = [1, 2, 4, 8, 15]

/** What a stream reports. */
export interface StreamEvents {
  /** A change of the list; with `reset`, its first page. */
  onChange: (change: RunsChange, reset: boolean) => void
  /** The server confirmed that nothing else has changed. */
  onMessage: () => void
  /** The stream is connected, or it is not and the list has to be polled. */
  onState: (connected: boolean) => void
}

/** withStream calls `work` while this tab may stream; it returns at once if it may not. */
async function withStream(work: () => Promise<void>): Promise<void> {
  // The browser has locks on secure pages only.
  const locks = (navigator as Partial<Navigator>).locks
  if (locks === undefined) return
  for (let i = 0; i < mostStreams; i++) {
    const had = await locks.request(`signalbox-stream-${i}`, { ifAvailable: true }, async (lock) => {
      if (lock !== null) await work()
      return lock !== null
    })
    if (had) return
  }
}

const pause = (ms: number, signal: AbortSignal) =>
  new Promise<void>((resolve) => {
    const done = () => {
      window.clearTimeout(timer)
      window.removeEventListener('online', done)
      resolve()
    }
    const timer = window.setTimeout(done, ms)
    window.addEventListener('online', done)
    signal.addEventListener('abort', done)
  })

/**
 * follow streams the changes of a list until the signal. A broken stream is continued after its last message. It returns earlier when the
 * tab may not stream, or when the server refuses to: then the list is polled.
 */
export const follow = (request: () => ReturnType<typeof listRequest>, pageSize: number, events: StreamEvents, signal: AbortSignal): Promise<void> =>
  withStream(async () => {
    let cursor = ''
    let failures = 0
    while (!signal.aborted) {
      const stop = new AbortController()
      const abort = () => { stop.abort() }
      signal.addEventListener('abort', abort)
      let timer = window.setTimeout(abort, silence)
      const list = request()
      try {
        const topic = { cursor, topic: { case: 'runs' as const, value: { list: { ...list, pageSize } } } }
        for await (const message of clients.watches.watch({ project: list.project, topics: [topic] }, { signal: stop.signal })) {
          window.clearTimeout(timer)
          timer = window.setTimeout(abort, silence)
          const time = milliseconds(message.time)
          if (time !== undefined) observeServerTime(time, performance.now(), 'exact')
          failures = 0
          events.onState(true)
          if (message.content.case === 'runs') {
            cursor = message.cursor
            events.onChange(message.content.value, message.reset)
          }
          events.onMessage()
        }
      } catch (error) {
        const { kind } = callError(error)
        if (!signal.aborted && !stop.signal.aborted && kind !== 'unavailable' && kind !== 'other') return
      } finally {
        window.clearTimeout(timer)
        signal.removeEventListener('abort', abort)
        stop.abort()
        events.onState(false)
      }
      failures++
      if (!signal.aborted) await pause((delays[Math.min(failures, delays.length) - 1] ?? 15) * 1000 * (0.75 + Math.random() / 2), signal)
    }
  })
