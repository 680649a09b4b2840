import {
  Ban,
  Check,
  CircleCheck,
  CircleDashed,
  CircleX,
  Clock,
  Flag,
  Gauge,
  Heart,
  HeartOff,
  HeartPulse,
  CircleHelp,
  Hourglass,
  Inbox,
  Loader,
  LogOut,
  Moon,
  OctagonX,
  Play,
  Plug,
  Route,
  Shield,
  SkipForward,
  Skull,
  Square,
  TimerOff,
  TriangleAlert,
  Unplug,
  Wrench,
  type LucideIcon,
} from 'lucide-react'

/** Status words, icons and colours, one vocabulary per thing. A status is always shown by all three. */
export type Tone = 'slate' | 'blue' | 'violet' | 'green' | 'red' | 'amber'

export interface StatusWord {
  icon: LucideIcon
  word: string
  tone: Tone
}

const w = (icon: LucideIcon, word: string, tone: Tone): StatusWord => ({ icon, word, tone })

export const vocabularies = {
  run: {
    queued: w(Clock, 'Queued', 'slate'),
    running: w(Play, 'Running', 'blue'),
    waiting: w(Hourglass, 'Waiting', 'violet'),
    completed: w(CircleCheck, 'Completed', 'green'),
    failed: w(CircleX, 'Failed', 'red'),
    timed_out: w(TimerOff, 'Timed out', 'red'),
    canceled: w(Ban, 'Canceled', 'slate'),
    terminated: w(OctagonX, 'Terminated', 'slate'),
  },
  step: {
    running: w(Play, 'Running', 'blue'),
    waiting: w(Hourglass, 'Waiting', 'violet'),
    completed: w(CircleCheck, 'Completed', 'green'),
    failed: w(CircleX, 'Failed', 'red'),
    caught: w(Shield, 'Failed, caught', 'slate'),
    timed_out: w(TimerOff, 'Timed out', 'red'),
    canceled: w(Ban, 'Canceled', 'slate'),
    skipped: w(SkipForward, 'Skipped', 'slate'),
    not_reached: w(CircleDashed, 'Not reached', 'slate'),
  },
  event: {
    pending: w(Inbox, 'Pending', 'slate'),
    routed: w(Route, 'Routed', 'green'),
    unmatched: w(Unplug, 'Unmatched', 'amber'),
    rejected: w(CircleX, 'Rejected', 'red'),
  },
  delivery: {
    pending: w(Inbox, 'Pending', 'slate'),
    done: w(Check, 'Done', 'green'),
    dead: w(Skull, 'Dead', 'red'),
  },
  webhook: {
    active: w(Check, 'Active', 'green'),
    failing: w(CircleX, 'Failing', 'red'),
    paused: w(Hourglass, 'Paused', 'amber'),
  },
  webhookDelivery: {
    pending: w(Inbox, 'Pending', 'slate'),
    delivered: w(Check, 'Delivered', 'green'),
    dead: w(Skull, 'Dead', 'red'),
  },
  dispatcher: {
    routing: w(Route, 'Routing', 'green'),
    parked: w(Moon, 'Parked', 'slate'),
    stale: w(TimerOff, 'Stale', 'amber'),
    missing: w(Unplug, 'Missing', 'red'),
    foreign: w(Flag, 'Foreign', 'amber'),
    no_workers: w(Unplug, 'No workers', 'red'),
    unknown: w(CircleHelp, 'Unknown', 'amber'),
  },
  worker: {
    alive: w(Heart, 'Alive', 'green'),
    late: w(HeartPulse, 'Late', 'amber'),
    dead: w(HeartOff, 'Dead', 'red'),
    silent: w(CircleHelp, 'Silent', 'amber'),
    unknown: w(CircleHelp, 'Unknown', 'amber'),
    stopped: w(Square, 'Stopped', 'slate'),
  },
  lease: {
    held: w(Check, 'Held', 'green'),
    resigned: w(LogOut, 'Resigned', 'slate'),
    expired: w(TimerOff, 'Expired', 'amber'),
  },
  breaker: {
    closed: w(Check, 'Closed', 'green'),
    half_open: w(Gauge, 'Half open', 'amber'),
    open: w(Unplug, 'Open', 'red'),
  },
  maintenance: {
    on: w(Wrench, 'On', 'violet'),
    off: w(Check, 'Off', 'slate'),
  },
  dependency: {
    up: w(Check, 'Up', 'green'),
    impaired: w(Gauge, 'Impaired', 'amber'),
    down: w(Unplug, 'Down', 'red'),
  },
  connection: {
    connecting: w(Loader, 'Connecting', 'blue'),
    connected: w(Plug, 'Connected', 'green'),
    degraded: w(Gauge, 'Degraded', 'amber'),
    down: w(Unplug, 'Down', 'red'),
    closed: w(Square, 'Closed', 'slate'),
  },
  stuck: {
    ENGINE_DISCONNECTED: w(TriangleAlert, 'Temporal unreachable', 'amber'),
    NO_POLLER: w(TriangleAlert, 'No worker', 'amber'),
    POLLER_STALE: w(TriangleAlert, 'Worker gone', 'amber'),
    NO_RUNNER: w(TriangleAlert, 'No runner', 'amber'),
    BACKLOG: w(TriangleAlert, 'Backlog', 'amber'),
    TASK_FAILING: w(TriangleAlert, 'Task failing', 'amber'),
    POISON: w(TriangleAlert, 'Poison', 'amber'),
    ACTIVITY_RETRYING: w(TriangleAlert, 'Activity retrying', 'amber'),
    NOT_STARTED: w(TriangleAlert, 'Not started', 'amber'),
    IN_ANOTHER_TEMPORAL: w(TriangleAlert, 'In another Temporal', 'amber'),
    EXECUTION_MISSING: w(TriangleAlert, 'Missing in Temporal', 'amber'),
    EXECUTION_CLOSED: w(TriangleAlert, 'Ended in Temporal', 'amber'),
    TIMER_LATE: w(TriangleAlert, 'Timer late', 'amber'),
    UNKNOWN: w(TriangleAlert, 'No progress', 'amber'),
  },
  batch: {
    selecting: w(Loader, 'Selecting', 'slate'),
    running: w(Play, 'Running', 'blue'),
    paused: w(Hourglass, 'Paused', 'violet'),
    started: w(Play, 'Runs open', 'blue'),
    completed: w(CircleCheck, 'Completed', 'green'),
    failures: w(CircleX, 'Failures', 'red'),
  },
  /** What became of a run that a batch started. */
  outcome: {
    open: w(Play, 'Open', 'blue'),
    completed: w(CircleCheck, 'Completed', 'green'),
    failed_same_cause: w(CircleX, 'Failed, same cause', 'red'),
    failed_other_cause: w(CircleX, 'Failed, another cause', 'red'),
    canceled: w(Ban, 'Canceled', 'slate'),
    terminated: w(Ban, 'Terminated', 'slate'),
    unknown: w(CircleDashed, 'Unknown', 'slate'),
  },
  item: {
    pending: w(Clock, 'Pending', 'slate'),
    succeeded: w(CircleCheck, 'Succeeded', 'green'),
    started: w(Play, 'Started', 'blue'),
    refused: w(Ban, 'Refused', 'amber'),
    failed: w(CircleX, 'Failed', 'red'),
  },
  workflow: {
    draft: w(CircleDashed, 'Draft', 'slate'),
    published: w(CircleCheck, 'Published', 'green'),
    paused: w(Hourglass, 'Paused', 'amber'),
  },
} as const satisfies Record<string, Record<string, StatusWord>>

export type Vocabulary = keyof typeof vocabularies

export const cancelRequested = w(LogOut, 'Cancel requested', 'amber')

/** inWords turns a word of the API into words: timed_out → Timed out, NO_WORKER → No worker. */
export function inWords(code: string): string {
  const text = code.replaceAll('_', ' ').toLowerCase()
  return text.charAt(0).toUpperCase() + text.slice(1)
}

/** statusOptions returns the statuses of a vocabulary as the options of a filter. */
export const statusOptions = (of: Vocabulary): { value: string; label: string }[] =>
  Object.entries(vocabularies[of]).map(([value, { word }]: [string, StatusWord]) => ({ value, label: word }))

/** statusWord returns how a status is shown; a word that this page has no icon for is shown as it is. */
export function statusWord(of: Vocabulary, status: string): StatusWord {
  const words: Record<string, StatusWord> = vocabularies[of]
  return (
    words[status] ??
    w(
      of === 'stuck' ? TriangleAlert : CircleHelp,
      status === '' ? 'Unknown' : inWords(status),
      of === 'stuck' ? 'amber' : 'slate',
    )
  )
}
