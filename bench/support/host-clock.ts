/** Milliseconds on a clock that all processes of this host share, and that nobody sets. */
export function hostNow(): number {
  const [seconds, nanoseconds] = process.hrtime()
  return seconds * 1e3 + nanoseconds / 1e6
}
