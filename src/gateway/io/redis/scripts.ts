// Atomic operations in Redis, as Lua scripts. Their text is fixed: names and numbers are arguments. Time is taken from Redis, so that replicas'
// clocks may differ.

import { CONTENDED_MS, FORGOTTEN_MS } from '../../core/limits/global-tokens.ts'

/**
 * A bucket, as the script of a RateLimiterRedis: KEYS[1], points wanted (less than 0 = returned), seconds to keep it, its size, and the seconds in
 * which it fills. Returns how many points were granted, at most what is there, and in how many milliseconds it would be full.
 *
 * `t` tokens at time `s` (microseconds); `c` is when there were last too few. For a second after that, little accumulates, so that many late callers
 * together get no more than the rate. A bucket unused for long starts empty: Redis, or every replica, was unavailable, and what was spent meanwhile
 * is unknown.
 */
export const BUCKET_SCRIPT: string = `
local want, size = tonumber(ARGV[1]), tonumber(ARGV[3])
local rate = size / tonumber(ARGV[4]) / 1000000
local clock = redis.call('time')
local now = clock[1] * 1000000 + clock[2]
local saved = redis.call('hmget', KEYS[1], 't', 's', 'c')
local level, since, short = tonumber(saved[1]), tonumber(saved[2]), tonumber(saved[3])
if not level or not since or not short or now - since > ${FORGOTTEN_MS * 1000} then
  level, since, short = 0, now, now
end
local room = size
if since - short < 1000000 then room = math.min(size, math.max(1, rate * ${CONTENDED_MS * 1000})) end
level = math.min(room, level + rate * math.max(0, now - since))
local given = want
if want > 0 then
  given = math.min(want, math.floor(level))
  if given < want then short = now end
end
level = math.min(room, level - given)
redis.call('hset', KEYS[1], 't', tostring(level), 's', string.format('%.0f', now), 'c', string.format('%.0f', short))
redis.call('expire', KEYS[1], ARGV[2])
return {given, math.ceil((size - level) / rate / 1000)}
`

/**
 * Leases of slots: KEYS[1], the replica, how many it uses, how many it wants, whether it lacks some (0 or 1), the limit, the lease duration in
 * milliseconds, and each replica's share. Returns the slots of this replica, of the others together, and how many of the others lack some and have
 * less than their share.
 */
export const LEASE_SCRIPT: string = `
local used, want, max, hold = tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[5]), tonumber(ARGV[6])
local clock = redis.call('time')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
local others, lacking = 0, 0
local all = redis.call('hgetall', KEYS[1])
for i = 1, #all, 2 do
  local slots, lacks, ends = string.match(all[i + 1], '^(%d+) (%d) (%d+)$')
  if not slots or tonumber(ends) <= now then
    redis.call('hdel', KEYS[1], all[i])
  elseif all[i] ~= ARGV[1] then
    others = others + slots
    if lacks == '1' and tonumber(slots) < tonumber(ARGV[7]) then lacking = lacking + 1 end
  end
end
local slots = math.max(used, math.min(want, max - others), 0)
local lease = string.format('%d %s %.0f', slots, ARGV[4], now + hold)
redis.call('hset', KEYS[1], ARGV[1], lease)
redis.call('pexpire', KEYS[1], hold * 2)
return {slots, others, lacking}
`

/** Heartbeat: KEYS[1], the replica, and how long it counts in milliseconds. Returns the time, and every replica with its last heartbeat. */
export const HEARTBEAT_SCRIPT: string = `
local clock = redis.call('time')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
redis.call('zremrangebyscore', KEYS[1], '-inf', now - ARGV[2])
redis.call('zadd', KEYS[1], string.format('%.0f', now), ARGV[1])
redis.call('pexpire', KEYS[1], ARGV[2] * 2)
local answer = redis.call('zrange', KEYS[1], 0, -1, 'WITHSCORES')
table.insert(answer, 1, string.format('%.0f', now))
return answer
`
