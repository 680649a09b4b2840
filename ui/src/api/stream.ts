import { callError } from './errors'

/** At most so many tabs of a browser stream: a server without HTTP/2 gets six connections from one browser. The others poll. */
const mostStreams = 4
/** The server sends at least one message each 15 seconds. */
const silence = 20_000
/** A page that is hidden for so long needs no stream. */
const hiddenTime = 30_000
/** A tab that may not stream reads so often, and waits so long for a message. One tab reads at a time: each read takes a connection. */
const pollInterval = 5000
const pollTime = 2000
const delays = [1, 2, 4, 8, 15]

/** retryDelay returns the milliseconds before the next try to connect, with jitter so that tabs do not try at the same moment. */
export const retryDelay = (failures: number, random: number): number =>
  (delays[Math.min(failures, delays.length) - 1] ?? 1) * 1000 * (0.75 + random / 2)

export interface Stream<Message> {
  /** Opens the stream after the last message that was received. */
  open: (signal: AbortSignal) => AsyncIterable<Message>
  /** Takes a message; true ends the stream for good. */
  onMessage: (message: Message) => boolean
  /** The stream is broken: it will be opened again, unless it has ended. */
  onBreak?: () => void
  /** Whether a tab that may not stream opens the stream each 5 s for one message. */
  poll: boolean
}

/** What became of a stream: it has ended for good, it broke after some messages or without one, or other tabs stream. */
type Outcome = 'ended' | 'broken' | 'failed' | 'busy'

/**
 * followStream reads a stream until the signal, and opens a broken one again: after a delay, or at once when the browser is online again. A
 * page that is hidden for a while has no stream until it is shown again. It returns when the stream has ended or the server refuses it.
 */
export async function followStream<Message>(stream: Stream<Message>, signal: AbortSignal): Promise<void> {
  let failures = 0
  while (!signal.aborted) {
    await visible(signal)
    if (signal.aborted) return
    const outcome = await whileFree(() => read(stream, signal, silence))
    if (outcome === 'ended') return
    if (outcome === 'busy') {
      if (
        stream.poll &&
        (await inTurn(
          () => read({ ...stream, onMessage: (message) => stream.onMessage(message) || 'enough' }, signal, pollTime),
          signal,
        )) === 'ended'
      )
        return
      await pause(pollInterval, signal)
      continue
    }
    failures = outcome === 'failed' ? failures + 1 : 1
    await pause(retryDelay(failures, Math.random()), signal)
  }
}

/** locksOf returns the locks that the tabs of this browser share; the browser has them on secure pages only. */
const locksOf = () => (navigator as Partial<Navigator>).locks

/** whileFree does the work if this tab may stream; no other tab takes its turn meanwhile. */
async function whileFree(work: () => Promise<Outcome>): Promise<Outcome> {
  const locks = locksOf()
  if (locks === undefined) return 'busy'
  for (let i = 0; i < mostStreams; i++) {
    const outcome = await locks.request(`signalbox-stream-${i}`, { ifAvailable: true }, (lock) =>
      lock === null ? 'busy' : work(),
    )
    if (outcome !== 'busy') return outcome
  }
  return 'busy'
}

/** inTurn does the work when no other tab reads. */
async function inTurn(work: () => Promise<Outcome>, signal: AbortSignal): Promise<Outcome> {
  const locks = locksOf()
  if (locks === undefined) return work()
  try {
    return await locks.request('signalbox-read', { signal }, work)
  } catch (error) {
    // Aborted while it waited.
    if (signal.aborted) return 'busy'
    throw error
  }
}

/** read reads the stream until it breaks, is silent for some time, or the page is hidden. */
async function read<Message>(
  {
    open,
    onMessage,
    onBreak,
  }: { open: Stream<Message>['open']; onMessage: (message: Message) => boolean | 'enough'; onBreak?: () => void },
  signal: AbortSignal,
  most: number,
): Promise<Outcome> {
  // The signal may have been aborted while the tab waited for its turn.
  if (signal.aborted) return 'failed'
  const stop = new AbortController()
  const abort = () => {
    stop.abort()
  }
  signal.addEventListener('abort', abort, { signal: stop.signal })
  whenHidden(stop.signal, abort)
  let timer = window.setTimeout(abort, most)
  let outcome: Outcome = 'failed'
  try {
    for await (const message of open(stop.signal)) {
      window.clearTimeout(timer)
      timer = window.setTimeout(abort, most)
      outcome = 'broken'
      const end = onMessage(message)
      if (end === true) return 'ended'
      if (end === 'enough') return outcome
    }
  } catch (error) {
    const { kind } = callError(error)
    // Denied or missing: the query of the page reports it.
    if (!stop.signal.aborted && kind !== 'unavailable' && kind !== 'other') return 'ended'
  } finally {
    window.clearTimeout(timer)
    stop.abort()
    onBreak?.()
  }
  return outcome
}

/** whenHidden calls `act` when the page has been hidden for some time. */
function whenHidden(signal: AbortSignal, act: () => void): void {
  let timer = 0
  const change = () => {
    window.clearTimeout(timer)
    if (document.hidden) timer = window.setTimeout(act, hiddenTime)
  }
  document.addEventListener('visibilitychange', change, { signal })
  signal.addEventListener('abort', () => {
    window.clearTimeout(timer)
  })
  change()
}

const visible = (signal: AbortSignal) =>
  new Promise<void>((resolve) => {
    const done = new AbortController()
    const check = () => {
      if (document.hidden && !signal.aborted) return
      done.abort()
      resolve()
    }
    document.addEventListener('visibilitychange', check, { signal: done.signal })
    signal.addEventListener('abort', check, { signal: done.signal })
    check()
  })

const pause = (ms: number, signal: AbortSignal) =>
  new Promise<void>((resolve) => {
    const end = new AbortController()
    const done = () => {
      window.clearTimeout(timer)
      end.abort()
      resolve()
    }
    const timer = window.setTimeout(done, ms)
    window.addEventListener('online', done, { signal: end.signal })
    signal.addEventListener('abort', done, { signal: end.signal })
    if (signal.aborted) done()
  })
