/** The least that a user of the store needs, as an ACL. The page of the store shows the same line, and a test compares them. */
export const LEAST_RIGHTS = [
  '~holdfast:*',
  '&holdfast:*',
  '+info',
  '+time',
  '+eval',
  '+evalsha',
  '+get',
  '+set',
  '+del',
  '+pttl',
  '+pexpire',
  '+scan',
  '+publish',
  '+subscribe',
  '+unsubscribe',
] as const
