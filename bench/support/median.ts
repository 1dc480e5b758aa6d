export interface Median {
  readonly median: number
  /** The median of whatever made these values lies between them, with a probability of at least 95 % (94 % for five values). */
  readonly low: number
  readonly high: number
}

/** The interval counts ranks, and so assumes nothing about how the values are spread. */
export function medianOf(values: readonly number[]): Median {
  const sorted = [...values].sort((a, b) => a - b)
  const middle = sorted.length / 2
  const at = (index: number) => sorted[index] ?? Number.NaN
  const cut = ranksToCut(sorted.length)
  return {
    median: (at(Math.ceil(middle) - 1) + at(Math.floor(middle))) / 2,
    low: at(cut),
    high: at(sorted.length - 1 - cut),
  }
}

/** How many of the smallest, and of the largest, can be left out: a coin says of each value on which side it lies. */
function ranksToCut(count: number): number {
  let probability = 0.5 ** count
  let below = probability
  let cut = 0
  for (; below <= 0.025 && cut < count / 2; cut++) {
    probability *= (count - cut) / (cut + 1)
    below += probability
  }
  return Math.max(0, cut - 1)
}
