/** JSON with fences: one line, integers of any size. */
export const encode = (value: unknown): string =>
  JSON.stringify(value, (_, each: unknown) => (typeof each === 'bigint' ? { $fence: String(each) } : each))

export const decode = (line: string): unknown =>
  JSON.parse(line, (_, each: unknown) => {
    const fence = typeof each === 'object' && each !== null && '$fence' in each ? each.$fence : undefined
    return typeof fence === 'string' ? BigInt(fence) : each
  })
