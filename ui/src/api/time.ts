import type { Duration, Timestamp } from '@bufbuild/protobuf/wkt'

/** milliseconds returns a time of the API in milliseconds since the epoch; undefined if the API gave none. */
export const milliseconds = (time: Timestamp | undefined): number | undefined =>
  time === undefined ? undefined : Number(time.seconds) * 1000 + time.nanos / 1e6

/** durationMilliseconds returns a duration of the API in milliseconds; undefined if the API gave none. */
export const durationMilliseconds = (duration: Duration | undefined): number | undefined =>
  duration === undefined ? undefined : Number(duration.seconds) * 1000 + duration.nanos / 1e6

/** timestamp returns milliseconds since the epoch as a time of the API. */
export const timestamp = (ms: number) => ({
  seconds: BigInt(Math.floor(ms / 1000)),
  nanos: Math.round((ms % 1000) * 1e6),
})
