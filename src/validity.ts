/** How far to trust a grant: the holder stops believing before the store can give the key to another. */
export interface Validity {
  /** How far the store's clock rate and ours may differ; 0.01 is 10 times what real oscillators do. */
  readonly driftRatio: number
  /** Timer granularity, in ms. */
  readonly marginMs: number
}

/**
 * The moment on our clock at which a grant ends: counted from before the request was sent, because the store may have
 * executed it at once and the answer may have taken long (I1). The arithmetic is that of the Redlock article's
 * MIN_VALIDITY, taken at the send instead of the receipt.
 */
export function deadlineOf(sentAtMs: number, grantedTtlMs: number, validity: Validity): number {
  return sentAtMs + grantedTtlMs * (1 - validity.driftRatio) - validity.marginMs
}
