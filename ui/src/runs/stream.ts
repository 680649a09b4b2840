import { clients, followStream, milliseconds, observeServerTime } from '../api'
import type { RunsChange, WatchResponse } from '../gen/signalbox/v1/watch_pb'
import type { listRequest } from './filter'

/** What a stream reports. */
export interface StreamEvents {
  /** A change of the list; with `reset`, its first page. */
  onChange: (change: RunsChange, reset: boolean) => void
  /** The server confirmed that nothing else has changed. */
  onMessage: () => void
  /** The stream is connected, or it is not and the list has to be polled. */
  onState: (connected: boolean) => void
}

/** follow streams the changes of a list until the signal; a broken stream is continued after its last message. */
export function follow(
  request: () => ReturnType<typeof listRequest>,
  pageSize: number,
  events: StreamEvents,
  signal: AbortSignal,
): Promise<void> {
  let cursor = ''
  return followStream<WatchResponse>(
    {
      open: (stop) => {
        const list = request()
        return clients.watches.watch(
          {
            project: list.project,
            topics: [{ cursor, topic: { case: 'runs', value: { list: { ...list, pageSize } } } }],
          },
          { signal: stop },
        )
      },
      onMessage: (message) => {
        const time = milliseconds(message.time)
        if (time !== undefined) observeServerTime(time, performance.now(), 'exact')
        events.onState(true)
        if (message.content.case === 'runs') {
          cursor = message.cursor
          events.onChange(message.content.value, message.reset)
        }
        events.onMessage()
        return false
      },
      onBreak: () => events.onState(false),
      // The list is polled while it is not streamed.
      poll: false,
    },
    signal,
  )
}
