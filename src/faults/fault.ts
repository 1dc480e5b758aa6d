/**
 * The vocabulary of what can go wrong between a client and a store. Everything that injects faults speaks it: the
 * faulty store, the simulator's network, the proxy before a real server.
 */
export type Fault =
  | { readonly kind: 'pass' }
  /** The request arrives `ms` late. */
  | { readonly kind: 'delay-request'; readonly ms: number }
  /** It is executed at once, and its answer arrives `ms` late. */
  | { readonly kind: 'delay-reply'; readonly ms: number }
  /** It never arrives, and nobody says so. */
  | { readonly kind: 'lose-request' }
  /** It is executed, and its answer never arrives. */
  | { readonly kind: 'lose-reply' }
  /** It lies in some buffer, and arrives when the store heals. */
  | { readonly kind: 'hang' }
  /** It is answered by an error. `none`: it was not executed. `unknown`: it was (`executed`), but nobody can know. */
  | { readonly kind: 'fail'; readonly effect: 'none' | 'unknown'; readonly executed: boolean }
  /** It is executed and answered, and arrives once more `ms` later. */
  | { readonly kind: 'duplicate'; readonly ms: number }

export const pass: Fault = { kind: 'pass' }
export const loseRequest: Fault = { kind: 'lose-request' }
export const loseReply: Fault = { kind: 'lose-reply' }
export const hang: Fault = { kind: 'hang' }
export const delayRequest = (ms: number): Fault => ({ kind: 'delay-request', ms })
export const delayReply = (ms: number): Fault => ({ kind: 'delay-reply', ms })
export const duplicate = (ms: number): Fault => ({ kind: 'duplicate', ms })
/** Certainly not executed: refused, or never sent. */
export const refuse: Fault = { kind: 'fail', effect: 'none', executed: false }
/** The connection broke: `executed` before it did, or not. */
export const breakOff = (executed: boolean): Fault => ({ kind: 'fail', effect: 'unknown', executed })
