const hour = 3_600_000

/** The periods up to now that a list can show, by their names in the URL. */
const spans = {
  '1h': { label: 'Last hour', length: hour },
  '24h': { label: 'Last 24 hours', length: 24 * hour },
  '7d': { label: 'Last 7 days', length: 7 * 24 * hour },
  '30d': { label: 'Last 30 days', length: 30 * 24 * hour },
}

/** spanOptions returns periods as the options of a filter. */
export const spanOptions = (...names: (keyof typeof spans)[]): { value: string; label: string }[] =>
  names.map((value) => ({ value, label: spans[value].label }))

/** spanStart returns when a period of the URL began; undefined for none and for one that is not known. */
export const spanStart = (name: string, now: number): number | undefined =>
  Object.hasOwn(spans, name) ? now - spans[name as keyof typeof spans].length : undefined
