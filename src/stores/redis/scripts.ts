/**
 * What the server does, in Lua: one script for each kind of step, each over any number of items, so that what falls due
 * together goes out together. A script is atomic; an item that fails says so and leaves the others alone.
 *
 * The text of every script carries the `run_id` of one server life. A server that has restarted, or a replica that was
 * promoted, does not know it by its hash: the question fails with NOSCRIPT, whatever proxy hides the change, and is sent in
 * full. That is not enough: whoever else was fooled by the proxy has sent it in full before. So each question carries
 * the mark of the life it is meant for, and where that is another one, or none is known, the script compares the `run_id`
 * before it does anything. The mark is the address of a table, which costs nothing to look at, and which a start puts elsewhere
 * (unless the kernel was told to randomise no addresses).
 *
 * A lease is a string `hf1 <owner> <fence> <state> <granted, µs> <label>` that expires; state h: held, r: asked back, k: kept by
 * nobody (its owner is `%`). Numbers stay text: those of Lua are exact only up to 2^53, and its text of a large one is
 * not even a number. The common way through a script asks the server for nothing that it may not need: with one question at a
 * time, its commands are what the server's time goes to (functions and patterns were measured not to matter).
 *
 * The reply is one text, a line for `ok` and for each item. Answers: `e COMMAND message` refused, `f` the key holds something else, `c` the counter does.
 */

/** Compares decimal texts without leading zeros; adds a small number to one. */
const NUMBERS = `
local function greater(a, b) return #a > #b or (#a == #b and a > b) end
local function plus(text, n)
  if #text <= 15 then return string.format('%.0f', tonumber(text) + n) end
  local head, sum = string.sub(text, 1, -16), tonumber(string.sub(text, -15)) + n
  if sum < 1e15 then return head .. string.format('%015.0f', sum) end
  return plus(head, 1) .. string.format('%015.0f', sum - 1e15)
end
`

/** What is answered in place of a value that could not be read. */
const UNREADABLE = `
local function unreadable(value, foreign)
  if string.find(value.err, 'WRONGTYPE', 1, true) then return foreign end
  return 'e GET ' .. value.err
end
`

/**
 * KEYS: the counter, the leases. Per item: owner, how long the server keeps it (ms),
 * the server's time after which it is too late (µs), the floor of the fence, the label. `g fence`, `h pttl label`, `l time` (too late).
 */
const ACQUIRE = `
${NUMBERS}
local now, counter, reserved
for i = 1, n do
  local key, answer = KEYS[i + 1], nil
  local owner, px, before, floor, label = string.match(ARGV[i], '^(%S+) (%d+) (%d+) (%d+) (.*)$')
  local value = call('GET', key)
  if not value then
    if not now then
      local time = call('TIME')
      if time.err then answer = 'e TIME ' .. time.err else now = time[1] .. string.sub('00000' .. time[2], -6) end
    end
    local fence = now
    if not answer and greater(now, before) then answer = 'l ' .. now end
    if not answer then
      if greater(floor, fence) then fence = floor end
      if counter and not greater(fence, counter) then fence = plus(counter, 1) end
      -- Before the lease, and for all that may follow in this call: a fence is never given twice.
      if not counter or greater(fence, reserved) then
        reserved = i < n and plus(fence, n - i) or fence
        local last = call('SET', KEYS[1], reserved, 'GET')
        if last then
          if last.err then
            answer = string.find(last.err, 'WRONGTYPE', 1, true) and 'c' or 'e SET ' .. last.err
          elseif not string.find(last, '^[1-9]%d*$') then
            call('SET', KEYS[1], last)
            answer = 'c'
          elseif not counter and not greater(fence, last) then
            fence = plus(last, 1)
            reserved = plus(fence, n - i)
            last = call('SET', KEYS[1], reserved)
            if last.err then answer = 'e SET ' .. last.err end
          end
        end
      end
    end
    if not answer then
      counter = fence
      local reply = call('SET', key, 'hf1 ' .. owner .. ' ' .. fence .. ' h ' .. now .. ' ' .. label, 'PX', px)
      answer = reply.err and 'e SET ' .. reply.err or 'g ' .. fence
    end
  elseif value.err then
    answer = string.find(value.err, 'WRONGTYPE', 1, true) and 'f' or 'e GET ' .. value.err
  else
    local holder, fence, state, since, its = string.match(value, '^hf1 (%S+) (%d+) (%a) (%d+) ([^\\n]*)$')
    local left = call('PTTL', key)
    if not holder then answer = 'f'
    elseif type(left) == 'table' then answer = 'e PTTL ' .. left.err
    elseif holder == owner and state == 'h' then
      -- Asked again by the same owner: its time restored, never cut, and its fence as it was.
      if left > tonumber(px) then px = left end
      local reply = call('SET', key, 'hf1 ' .. owner .. ' ' .. fence .. ' h ' .. since .. ' ' .. label, 'PX', px)
      answer = reply.err and 'e SET ' .. reply.err or 'g ' .. fence
    else answer = 'h ' .. left .. ' ' .. its
    end
  end
  answers[i + 1] = answer
end
return table.concat(answers, '\\n')
`

/** KEYS as above. Per item: owner, fence, ms to keep, floor. `y`, or why it is lost: `m` missing, `t` taken, `r` revoked. */
const RENEW = `
${NUMBERS}
${UNREADABLE}
local function raise(floor)
  local counter = call('GET', KEYS[1])
  if counter and counter.err then return unreadable(counter, 'c') end
  if counter and not string.find(counter, '^[1-9]%d*$') then return 'c' end
  if counter and not greater(floor, counter) then return end
  local reply = call('SET', KEYS[1], floor)
  return reply.err and 'e SET ' .. reply.err
end
local function renew(key, owner, fence, px, floor)
  local value = call('GET', key)
  if not value then return 'm' end
  if value.err then return unreadable(value, 'f') end
  local holder, its, state = string.match(value, '^hf1 (%S+) (%d+) (%a) %d+ [^\\n]*$')
  if not holder then return 'f' end
  if state == 'k' then return 'm' end
  if holder ~= owner or its ~= fence then return 't' end
  if state == 'r' then return 'r' end
  local left = call('PTTL', key)
  if type(left) == 'table' then return 'e PTTL ' .. left.err end
  if left < tonumber(px) then
    local reply = call('PEXPIRE', key, px)
    if type(reply) == 'table' then return 'e PEXPIRE ' .. reply.err end
  end
  return floor ~= '0' and raise(floor) or 'y'
end
for i = 1, n do
  answers[i + 1] = renew(KEYS[i + 1], string.match(ARGV[i], '^(%S+) (%d+) (%d+) (%d+)$'))
end
return table.concat(answers, '\\n')
`

/** KEYS: the leases. Per item: owner, ms to keep it taken. `y` released, `n` not this owner's. */
const RELEASE = `
for i = 1, #KEYS do
  local owner, keep = string.match(ARGV[i], '^(%S+) (%d+)$')
  local key, start = KEYS[i], 'hf1 ' .. owner .. ' '
  local value, answer = call('GET', key), 'n'
  if value and value.err then
    if not string.find(value.err, 'WRONGTYPE', 1, true) then answer = 'e GET ' .. value.err end
  elseif value and string.sub(value, 1, #start) == start then
    local command, reply = 'DEL', nil
    if keep == '0' then
      reply = call('DEL', key)
    else
      local fence, since, label = string.match(value, '^(%d+) %a (%d+) (.*)$', #start + 1)
      command, reply = 'SET', call('SET', key, 'hf1 % ' .. fence .. ' k ' .. since .. ' ' .. label, 'PX', keep)
    end
    if type(reply) == 'table' and reply.err then answer = 'e ' .. command .. ' ' .. reply.err
    else
      answer = 'y'
      call('PUBLISH', key, '')
    end
  end
  answers[i + 1] = answer
end
return table.concat(answers, '\\n')
`

/** KEYS: leases. Per item: force (0 or 1), the channel of revocations. `d` freed, `r` refusing from now on, `n` nobody. */
const REVOKE = `
${UNREADABLE}
local function revoke(key, force, channel)
  local value = call('GET', key)
  if not value then return 'n' end
  if value.err then return unreadable(value, 'f') end
  local start, state, rest = string.match(value, '^(hf1 %S+ %d+ )(%a)( %d+ [^\\n]*)$')
  if not start then return 'f' end
  local command, reply = 'DEL', nil
  if force == '1' then reply = call('DEL', key)
  elseif state == 'h' then command, reply = 'SET', call('SET', key, start .. 'r' .. rest, 'KEEPTTL')
  end
  if type(reply) == 'table' and reply.err then return 'e ' .. command .. ' ' .. reply.err end
  call('PUBLISH', channel, key)
  if force == '1' then call('PUBLISH', key, '') end
  return force == '1' and 'd' or 'r'
end
for i = 1, #KEYS do
  answers[i + 1] = revoke(KEYS[i], string.match(ARGV[i], '^(%d) (.*)$'))
end
return table.concat(answers, '\\n')
`

/** KEYS: leases. `v pttl time value`, `n` where there is none. */
const LOOK = `
${UNREADABLE}
local time = call('TIME')
for i = 1, #KEYS do
  local value, left = call('GET', KEYS[i]), call('PTTL', KEYS[i])
  if time.err then answers[i + 1] = 'e TIME ' .. time.err
  elseif not value then answers[i + 1] = 'n'
  elseif value.err then answers[i + 1] = unreadable(value, 'f')
  elseif type(left) == 'table' then answers[i + 1] = 'e PTTL ' .. left.err
  elseif string.find(value, '\\n', 1, true) then answers[i + 1] = 'f'
  else answers[i + 1] = 'v ' .. left .. ' ' .. time[1] .. string.sub('00000' .. time[2], -6) .. ' ' .. value
  end
end
return table.concat(answers, '\\n')
`

const BODIES = { acquire: ACQUIRE, renew: RENEW, release: RELEASE, revoke: REVOKE, look: LOOK }

export type StepName = keyof typeof BODIES

/**
 * The whole text of a step for one server life. The last argument is the mark of that life, where it is known. The reply begins with `ok`,
 * with `ok mark` where the mark was not known and the life is the right one, or is `? run_id` of another one, with nothing done.
 */
export const scriptText = (step: StepName, runId: string): string => `-- holdfast 1
local RUN_ID, call, answers, n, mark = '${runId}', redis.pcall, { 'ok' }, #ARGV - 1, tostring(redis)
if ARGV[n + 1] ~= mark then
  local info = call('INFO', 'server')
  if type(info) == 'table' then return 'e INFO ' .. info.err end
  local id = string.match(info, 'run_id:(%x+)')
  if id ~= RUN_ID then return '? ' .. tostring(id) end
  answers[1] = 'ok ' .. mark
end
${BODIES[step]}`
