/** Who believed to hold a key when, by the one monotonic clock of this process; and what must be true of that. */

export interface Belief {
  readonly key: string
  readonly who: string
  readonly fence: bigint
  /** When the grant was in the holder's hands. */
  readonly from: number
  /** When the holder stopped believing: its deadline, its loss, or the moment before it asked for the release. */
  readonly until: number
}

export interface Verdict {
  readonly overlaps: readonly string[]
  /** Beliefs in the order of time whose fences do not grow. */
  readonly fencesOutOfOrder: readonly string[]
}

export function judge(beliefs: readonly Belief[]): Verdict {
  const overlaps: string[] = []
  const fencesOutOfOrder: string[] = []
  let longest: Belief | undefined
  let last: Belief | undefined
  for (const each of beliefs.toSorted((a, b) => (a.key < b.key ? -1 : a.key > b.key ? 1 : a.from - b.from))) {
    if (last?.key !== each.key) longest = last = undefined
    if (longest && each.from < longest.until)
      overlaps.push(`${name(each)} began ${(longest.until - each.from).toFixed(3)} ms before ${name(longest)} ended`)
    if (last && each.fence <= last.fence) fencesOutOfOrder.push(`${name(each)} came after ${name(last)}`)
    if (!longest || each.until > longest.until) longest = each
    last = each
  }
  return { overlaps, fencesOutOfOrder }
}

const name = ({ key, who, fence }: Belief): string => `${who} with fence ${fence} of ${key}`
