import { callError, clients, now } from '../api'
import type { Run } from '../gen/signalbox/v1/run_pb'
import type { RunsChange } from '../gen/signalbox/v1/watch_pb'
import { listRequest, type RunFilter } from './filter'
import { follow } from './stream'
import {
  append,
  type Change,
  type Compare,
  inOrder,
  merge,
  missing,
  mostRows,
  noRows,
  type Rows,
  showArrived,
} from './rows'

export interface FeedState extends Rows {
  /** The first page has been read. */
  ready: boolean
  /** Why the list could not be read; undefined once it was. */
  error: unknown
  loadingMore: boolean
  /** Server's time at which the rows were last confirmed. */
  refreshedAt: number | undefined
}

/** About two windows of rows: to read a row takes the browser as long as to draw it. */
const pageSize = 50
const interval = 5000
/** While the changes are streamed, only the pages after the first are read again: those that another server changed are not in the stream. */
const streamedInterval = 15_000
/** At most so many runs that left the list are read one by one at each refresh. */
const mostReadAlone = 20

/**
 * RunFeed holds the rows of one list and keeps them up to date while the page is open: by a stream of changes, or where that is not
 * possible, by reading the first page and the pages in view each 5 s. It survives the page, so that going back shows the list as it was.
 */
export class RunFeed {
  private state: FeedState = { ...noRows, ready: false, error: undefined, loadingMore: false, refreshedAt: undefined }
  private readonly listeners = new Set<() => void>()
  /** The pages that were read: their token, and the run before them. */
  private pages: { token: string; after: Run | undefined }[] = []
  private request: ReturnType<typeof listRequest>
  private compare: Compare
  /** The first page, which is requested before the page is drawn. */
  private early: ReturnType<typeof clients.runs.listRuns> | undefined
  private timer: number | undefined
  private abort = new AbortController()
  private streaming: AbortController | undefined
  private connected = false
  private inView: [number, number] = [0, 0]
  private held = false
  private paused = false
  /** The row that has the keyboard, for the way back. */
  active: string | undefined

  constructor(
    private readonly project: string,
    private readonly filter: RunFilter,
  ) {
    this.request = listRequest(project, filter, now())
    this.compare = inOrder(filter.order, now())
    this.early = clients.runs.listRuns({ ...this.request, pageSize })
    this.early.catch(() => undefined)
  }

  readonly subscribe = (listener: () => void) => {
    this.listeners.add(listener)
    return () => {
      this.listeners.delete(listener)
    }
  }

  readonly snapshot = (): FeedState => this.state

  private set(change: Partial<FeedState>): void {
    this.state = { ...this.state, ...change }
    for (const listener of this.listeners) listener()
  }

  /** open begins to read; the returned function ends it. */
  open(): () => void {
    this.abort = new AbortController()
    const onVisible = () => {
      if (!document.hidden) void this.refresh()
    }
    document.addEventListener('visibilitychange', onVisible)
    void this.refresh().then(() => {
      this.stream()
    })
    return () => {
      document.removeEventListener('visibilitychange', onVisible)
      window.clearTimeout(this.timer)
      this.streaming?.abort()
      this.abort.abort()
    }
  }

  /** stream follows the changes of the list, unless that is under way. */
  private stream(): void {
    if (this.abort.signal.aborted || !this.state.ready || this.paused || this.streaming?.signal.aborted === false)
      return
    const stop = new AbortController()
    this.streaming = stop
    const events = {
      onState: (connected: boolean) => {
        this.connected = connected && !stop.signal.aborted
      },
      onMessage: () => this.set({ refreshedAt: now() }),
      onChange: (change: RunsChange, reset: boolean) => {
        if (stop.signal.aborted) return
        const runs = change.rows.flatMap(({ run, matches }) => (run === undefined ? [] : [{ run, matches }]))
        if (reset)
          void this.mergePage(
            runs.map(({ run }) => run),
            undefined,
            change.nextPageToken,
            stop.signal,
          )
        else this.merge(runs, change.removed)
      },
    }
    void follow(() => this.request, pageSize, events, stop.signal).finally(() => {
      // The server refuses to stream: polling goes on by itself.
      this.connected = false
      stop.abort()
    })
  }

  /** reload reads the list from its beginning. The old rows stay until the answer is there. */
  readonly reload = async (): Promise<void> => {
    const { signal } = this.abort
    this.request = listRequest(this.project, this.filter, now())
    this.compare = inOrder(this.filter.order, now())
    try {
      const early = this.early
      this.early = undefined
      const answer = await (early ?? clients.runs.listRuns({ ...this.request, pageSize }, { signal }))
      if (signal.aborted) return
      this.pages = [{ token: '', after: undefined }]
      this.set({
        ...append(noRows, answer.runs, answer.nextPageToken),
        ready: true,
        error: undefined,
        refreshedAt: now(),
      })
    } catch (error) {
      if (!signal.aborted) this.set({ error })
    }
  }

  /** refresh reads the rows again, at once and then each 5 s. */
  readonly refresh = async (): Promise<void> => {
    window.clearTimeout(this.timer)
    const { signal } = this.abort
    if (!document.hidden && !this.paused) {
      if (this.state.ready) await this.readAgain(signal)
      else await this.reload()
    }
    if (signal.aborted) return
    window.clearTimeout(this.timer)
    const refused = this.state.error !== undefined && callError(this.state.error).kind !== 'unavailable'
    if (!refused)
      this.timer = window.setTimeout(() => void this.refresh(), this.connected ? streamedInterval : interval)
  }

  private async readAgain(signal: AbortSignal): Promise<void> {
    const wanted = this.pages.filter(
      (_, i) =>
        (i === 0 && !this.connected) ||
        (i >= Math.floor(this.inView[0] / pageSize) && i <= Math.floor(this.inView[1] / pageSize) && i > 0),
    )
    try {
      for (const page of wanted) {
        const answer = await clients.runs.listRuns({ ...this.request, pageSize, pageToken: page.token }, { signal })
        await this.mergePage(answer.runs, page.after, answer.nextPageToken, signal)
      }
      if (wanted.length > 0) this.set({ refreshedAt: now(), error: undefined })
    } catch {
      // The link state shows that the data is old. The next refresh tries again.
    }
  }

  /** mergePage merges a page that was read again; `after` is the run before it. */
  private async mergePage(page: Run[], after: Run | undefined, next: string, signal: AbortSignal): Promise<void> {
    const left = this.left(after, page, next)
    const alone = await Promise.all(left.slice(0, mostReadAlone).map((run) => this.readAlone(run, signal)))
    if (signal.aborted) return
    this.merge(
      [
        ...page.map((run) => ({ run, matches: true })),
        ...[...alone, ...left.slice(mostReadAlone)].map((run) => ({ run, matches: this.stays(run) })),
      ],
      [],
    )
  }

  private merge(changes: Change[], removed: string[]): void {
    this.set(merge(this.state, changes, removed, this.compare))
    // In an empty list no person is at work with a row.
    if (this.state.shown.length === 0 && this.state.arrived.length > 0) this.showNew()
    this.admit()
  }

  /** left returns the shown runs that a page, read again, no longer has. */
  private left(after: Run | undefined, page: Run[], next: string): Run[] {
    if (this.filter.order !== 'longest') return missing(this.state, page, after, next, this.compare)
    // The place of a run by length changes: only the first page shows which ones are gone from it.
    const ids = new Set(page.map((run) => run.id))
    return after === undefined
      ? this.state.shown.slice(0, pageSize).filter((run) => !ids.has(run.id) && !this.state.faded.has(run.id))
      : []
  }

  /** stays reports whether a run that left its page may still match: by length, it may only have moved. */
  private stays(run: Run): boolean {
    return (
      this.filter.order === 'longest' &&
      (this.filter.statuses.length === 0 || this.filter.statuses.includes(run.status))
    )
  }

  /** readAlone reads a run that left the list, to show what became of it; as it was if that fails. */
  private async readAlone(run: Run, signal: AbortSignal): Promise<Run> {
    try {
      const { run: current } = await clients.runs.getRun({ project: this.project, id: run.id }, { signal })
      if (current === undefined) return run
      // Payloads are not part of a list.
      delete current.input
      delete current.output
      return current
    } catch {
      return run
    }
  }

  readonly loadMore = (): void => {
    const { next, loadingMore, shown, cut } = this.state
    if (next === '' || loadingMore || cut || shown.length >= mostRows) return
    const { signal } = this.abort
    this.set({ loadingMore: true })
    clients.runs.listRuns({ ...this.request, pageSize, pageToken: next }, { signal }).then(
      (answer) => {
        this.pages.push({ token: next, after: shown.at(-1) })
        this.set({ ...append(this.state, answer.runs, answer.nextPageToken), loadingMore: false })
      },
      () => {
        this.set({ loadingMore: false })
      },
    )
  }

  readonly setView = (first: number, last: number): void => {
    this.inView = [first, last]
  }

  /** hold keeps new runs out of the rows, because a person is at work with them. */
  hold(held: boolean): void {
    this.held = held
    this.admit()
  }

  /** pause stops all changes of the rows. */
  pause(paused: boolean): void {
    if (this.paused === paused) return
    this.paused = paused
    if (paused) this.streaming?.abort()
    else
      void this.refresh().then(() => {
        this.stream()
      })
  }

  private admit(): void {
    if (!this.held && !this.paused && this.state.arrived.length > 0) this.showNew()
  }

  readonly showNew = (): void => {
    if (this.state.overflow) void this.reload()
    else this.set(showArrived(this.state, this.compare))
  }
}
