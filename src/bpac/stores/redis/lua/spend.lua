-- Counts a request against the limits of a key that all gateways share, unless one is reached. The time is that of
-- Redis: the gateways' clocks may differ. KEYS: what was used on this day, and by second in the last minute.
-- ARGV: most requests and tokens per day, most requests and tokens per minute (-1: no limit), tokens of this request.
-- Returns which limit is reached ('' if none), seconds until it is not, the time, requests and tokens of the day.
local DAY, MINUTE = 86400, 60
local now = tonumber(redis.call('TIME')[1])
local most = {tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])}
local estimate = tonumber(ARGV[5])

local day = math.floor(now / DAY)
local used = redis.call('HMGET', KEYS[1], 'day', 'requests', 'tokens')
local requests, tokens, counted = 0, 0, tonumber(used[1] or -1)
-- A clock that was set back a little must not grant a second budget.
if counted == day or counted == day + 1 then
  day, requests, tokens = counted, tonumber(used[2]), tonumber(used[3])
end
local function refused(what, wait) return {what, wait, now, requests, tokens} end
if most[1] >= 0 and requests >= most[1] then return refused('requests per day', DAY - now % DAY) end
if most[2] >= 0 and tokens >= most[2] then return refused('tokens per day', DAY - now % DAY) end

if most[3] >= 0 or most[4] >= 0 then
  -- One field for each second of a ring, so that the key never grows: the second, requests and tokens.
  local ring, seconds, sums = redis.call('HVALS', KEYS[2]), {}, {0, 0}
  local here = {now, 0, 0}
  for _, packed in ipairs(ring) do
    local one = cmsgpack.unpack(packed)
    -- What is further away in either direction is over, or was written before the clock was set.
    if math.abs(now - one[1]) <= MINUTE then
      if one[1] == now then here = one end
      seconds[#seconds + 1] = one
      sums[1], sums[2] = sums[1] + one[2], sums[2] + one[3]
    end
  end
  table.sort(seconds, function(a, b) return a[1] < b[1] end)
  for kind, what in ipairs({'requests per minute', 'tokens per minute'}) do
    local limit, left = most[kind + 2], sums[kind]
    if limit >= 0 and left >= limit then
      for _, one in ipairs(seconds) do
        left = left - one[kind + 1]
        if left < limit then return refused(what, one[1] + MINUTE + 1 - now) end
      end
    end
  end
  here[2], here[3] = here[2] + 1, here[3] + estimate
  redis.call('HSET', KEYS[2], now % (MINUTE + 1), cmsgpack.pack(here))
  redis.call('EXPIRE', KEYS[2], 2 * MINUTE)
end

requests, tokens = requests + 1, tokens + estimate
redis.call('HSET', KEYS[1], 'day', day, 'requests', requests, 'tokens', tokens)
redis.call('EXPIRE', KEYS[1], 2 * DAY)
return {'', 0, now, requests, tokens}
