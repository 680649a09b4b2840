/** nameRefusal returns why a project cannot have a name. */
export const nameRefusal = (name: string): string | undefined =>
  /^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/.test(name)
    ? undefined
    : 'The name has 1 to 63 characters of a-z, 0-9 and "-", which is neither the first nor the last.'

/** stepsRefusal returns why a text is no limit of steps. */
export const stepsRefusal = (steps: string): string | undefined =>
  /^\d{1,18}$/.test(steps) ? undefined : 'The limit of steps is a whole number; 0 means the limit of the servers.'

/** quotaRefusal returns why texts are no limits of a quota. */
export const quotaRefusal = (...limits: string[]): string | undefined =>
  limits.every((text) => /^\d{1,15}$/.test(text)) ? undefined : 'Each limit is a whole number; 0 means no limit.'

/** usedShare returns how much of a limit is used, from 0 to 1; undefined without a limit. */
export const usedShare = (used: bigint, limit: bigint): number | undefined =>
  limit === 0n ? undefined : Math.min(1, Number(used) / Number(limit))

/** isHigh reports whether so much of a limit is used that work will soon wait. */
export const isHigh = (share: number): boolean => share >= 0.9
