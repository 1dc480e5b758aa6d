/** Of values in ascending order. */
export const quantile = (sorted: readonly number[], part: number): number =>
  sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))] ?? Number.NaN

export const ascending = (values: readonly number[]): number[] => [...values].sort((a, b) => a - b)
