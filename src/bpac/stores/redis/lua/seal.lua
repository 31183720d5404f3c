-- Lets nothing arrive until the folder publishes. Returns the last ticket given out, the generation and the epoch.
-- KEYS: state. ARGV: token.
if redis.call('HGET', KEYS[1], 'token') ~= ARGV[1] then return {-1, 0, 0} end
redis.call('HSET', KEYS[1], 'sealed', 1)
local now = redis.call('HMGET', KEYS[1], 'given', 'generation', 'epoch')
return {tonumber(now[1]), tonumber(now[2]), tonumber(now[3])}
