/** How long to wait before asking again, in ms: doubling, capped, with "equal jitter" (between half and the whole). */
export function backoff(
  attempt: number,
  random: number,
  bounds: { readonly baseMs: number; readonly capMs: number },
): number {
  const ceiling = Math.min(bounds.capMs, bounds.baseMs * 2 ** Math.min(attempt, 30))
  return ceiling / 2 + (random * ceiling) / 2
}
