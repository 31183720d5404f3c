-- Counts a request against a budget that all gateways share, unless it is used up. KEYS: what was used on this day.
-- ARGV: most requests, most tokens (-1: no limit), requests and tokens of this request, seconds to keep the counts.
-- Returns what is used up ('' if nothing is), requests and tokens so far.
local used = redis.call('HMGET', KEYS[1], 'requests', 'tokens')
local requests, tokens = tonumber(used[1] or 0), tonumber(used[2] or 0)
local most_requests, most_tokens = tonumber(ARGV[1]), tonumber(ARGV[2])
if most_requests >= 0 and requests >= most_requests then return {'requests', requests, tokens} end
if most_tokens >= 0 and tokens >= most_tokens then return {'tokens', requests, tokens} end
requests, tokens = requests + tonumber(ARGV[3]), tokens + tonumber(ARGV[4])
redis.call('HSET', KEYS[1], 'requests', requests, 'tokens', tokens)
redis.call('EXPIRE', KEYS[1], ARGV[5])
return {'', requests, tokens}
