/** Moments of the wall clock, as people and machines read them; never for a decision. */

/** `2026-03-04T05:06:07.089Z` */
export const isoTime = (wallMs: number): string => new Date(wallMs).toISOString()

/** On our own clock and in our own zone: `05:06:07` today, `2026-03-04 05:06:07` on another day. */
export function localTime(wallMs: number, nowMs: number): string {
  const [day, time] = parts(wallMs)
  return day === parts(nowMs)[0] ? time : `${day} ${time}`
}

/** `05:06:07` */
export const clockTime = (wallMs: number): string => parts(wallMs)[1]

/** `2026-03-04 05:06:07 +0100` */
export function fullTime(wallMs: number): string {
  const minutes = -new Date(wallMs).getTimezoneOffset()
  const two = (number: number) => String(number).padStart(2, '0')
  const size = Math.abs(minutes)
  return `${parts(wallMs).join(' ')} ${minutes < 0 ? '-' : '+'}${two(Math.floor(size / 60))}${two(size % 60)}`
}

function parts(wallMs: number): [day: string, time: string] {
  const at = new Date(wallMs)
  const two = (number: number) => String(number).padStart(2, '0')
  const day = `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())}`
  return [day, `${two(at.getHours())}:${two(at.getMinutes())}:${two(at.getSeconds())}`]
}
