-- Corrects what spend.lua counted of a request. KEYS: as there.
-- ARGV: when it was counted, on the clock of Redis; requests and tokens to add; whether the key has a limit per minute.
local DAY, MINUTE = 86400, 60
local counted, requests, tokens = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])

if tonumber(redis.call('HGET', KEYS[1], 'day') or -1) == math.floor(counted / DAY) then
  redis.call('HINCRBY', KEYS[1], 'requests', requests)
  redis.call('HINCRBY', KEYS[1], 'tokens', tokens)
end
if ARGV[4] == '1' then
  -- Tokens beyond the estimate count now, when they are known; what is taken back is taken from where it was counted.
  local second = tokens > 0 and tonumber(redis.call('TIME')[1]) or counted
  local field = second % (MINUTE + 1)
  local packed = redis.call('HGET', KEYS[2], field)
  local here = packed and cmsgpack.unpack(packed) or {-1, 0, 0}
  if here[1] ~= second and tokens > 0 then here = {second, 0, 0} end
  if here[1] == second then
    redis.call('HSET', KEYS[2], field, cmsgpack.pack({second, here[2] + requests, here[3] + tokens}))
    redis.call('EXPIRE', KEYS[2], 2 * MINUTE)
  end
end
