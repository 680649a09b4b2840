import type { Duration } from '@bufbuild/protobuf/wkt'
import { durationMilliseconds } from '../api/time'

/** What the pages print for numbers, times and identifiers. Unknown values are "unknown" or a dash, never 0. */

const second = 1000
const minute = 60 * second
const hour = 60 * minute
const day = 24 * hour

const two = (n: number) => String(n).padStart(2, '0')

/** formatDuration prints milliseconds with two units at most: < 1 ms, 420 ms, 12.4 s, 3m 07s, 2h 05m, 3d 4h. */
export function formatDuration(ms: number): string {
  const value = Math.max(0, ms)
  if (value > 0 && value < 1) return '< 1 ms'
  if (value < second) return `${Math.round(value)} ms`
  if (value < minute) return `${(Math.floor(value / 100) / 10).toFixed(1)} s`
  if (value < hour) return `${Math.floor(value / minute)}m ${two(Math.floor((value % minute) / second))}s`
  if (value < day) return `${Math.floor(value / hour)}h ${two(Math.floor((value % hour) / minute))}m`
  return `${Math.floor(value / day)}d ${Math.floor((value % day) / hour)}h`
}

/** The units of lengths of time, in milliseconds. */
export const lengthUnits: Record<string, number> = { ms: 1, s: second, m: minute, h: hour, d: day }

/** durationText prints a duration of the API; one that it did not give is "unknown". */
export const durationText = (duration: Duration | undefined): string => {
  const ms = durationMilliseconds(duration)
  return ms === undefined ? 'unknown' : formatDuration(ms)
}

/** formatCountdown prints the time until something happens: 0:17, 12:04, 2:05:00; from a day on as a duration: 2d 19h. */
export function formatCountdown(ms: number): string {
  if (ms >= day) return formatDuration(ms)
  const total = Math.max(0, Math.ceil(ms / second))
  const h = Math.floor(total / 3600)
  const m = Math.floor((total % 3600) / 60)
  return h > 0 ? `${h}:${two(m)}:${two(total % 60)}` : `${m}:${two(total % 60)}`
}

/** formatAgo prints how long ago a time was: 3 s ago, 12m ago, 3h ago, 2d ago. */
export function formatAgo(ms: number): string {
  const value = Math.max(0, ms)
  if (value < minute) return `${Math.floor(value / second)} s ago`
  if (value < hour) return `${Math.floor(value / minute)}m ago`
  if (value < day) return `${Math.floor(value / hour)}h ago`
  return `${Math.floor(value / day)}d ago`
}

/** formatDistance prints how far a time is from now: 3 s ago, in 2m 05s. */
export const formatDistance = (at: number, now: number): string =>
  now >= at ? formatAgo(now - at) : `in ${formatDuration(at - now)}`

export type Zone = 'local' | 'utc'

const months = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec']

function parts(ms: number, zone: Zone) {
  const d = new Date(ms)
  return zone === 'utc'
    ? {
        y: d.getUTCFullYear(),
        mo: d.getUTCMonth(),
        d: d.getUTCDate(),
        h: d.getUTCHours(),
        mi: d.getUTCMinutes(),
        s: d.getUTCSeconds(),
      }
    : { y: d.getFullYear(), mo: d.getMonth(), d: d.getDate(), h: d.getHours(), mi: d.getMinutes(), s: d.getSeconds() }
}

/** formatTime prints 14:02:11 for times of the last 12 hours or the same day, 20 Nov 14:02 before, 20 Nov 2025 of other years. */
export function formatTime(ms: number, now: number, zone: Zone): string {
  const t = parts(ms, zone)
  const n = parts(now, zone)
  if ((t.y === n.y && t.mo === n.mo && t.d === n.d) || Math.abs(now - ms) < 12 * hour)
    return `${two(t.h)}:${two(t.mi)}:${two(t.s)}`
  const date = `${t.d} ${months[t.mo] ?? ''}`
  return t.y === n.y ? `${date} ${two(t.h)}:${two(t.mi)}` : `${date} ${t.y}`
}

/** formatFullTime prints a time with its date, seconds and zone. */
export function formatFullTime(ms: number, zone: Zone): string {
  const t = parts(ms, zone)
  return `${t.y}-${two(t.mo + 1)}-${two(t.d)} ${two(t.h)}:${two(t.mi)}:${two(t.s)} ${zone === 'utc' ? 'UTC' : 'local time'}`
}

/** formatCount prints 12,480, and 10,000+ for a count that was cut off. */
export function formatCount(count: number | bigint, more = false): string {
  return String(count).replace(/\B(?=(\d{3})+$)/g, ',') + (more ? '+' : '')
}

/** formatBytes prints 312 B, 64.0 kB, 1.2 MB. */
export function formatBytes(bytes: number): string {
  if (bytes < 1000) return `${bytes} B`
  if (bytes < 1_000_000) return `${(bytes / 1000).toFixed(1)} kB`
  return `${(bytes / 1_000_000).toFixed(1)} MB`
}

/** byteLength returns how many bytes a text has where it is stored. */
export const byteLength = (text: string): number => new TextEncoder().encode(text).length

/** orDash prints a text, or a dash if it is empty. */
export const orDash = (text: string): string => (text === '' ? '–' : text)

/** formatPercent prints 98.2 %. */
export const formatPercent = (share: number): string => `${(share * 100).toFixed(1)} %`

/** shortId prints the first 8 and the last 4 characters of an ID: the heads of IDs of the same moment are equal. */
export const shortId = (id: string): string => (id.length <= 14 ? id : `${id.slice(0, 8)}…${id.slice(-4)}`)

/** plural prints "1 run", "2 runs". */
export const plural = (count: number | bigint, one: string, many = `${one}s`): string =>
  `${formatCount(count)} ${count === 1 || count === 1n ? one : many}`
