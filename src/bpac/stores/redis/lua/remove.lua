-- Takes a replica off a game: it has died, or leaves. Its tickets were cut off, and its audits get no outcome.
-- KEYS: state, inbox, open, replies, replicas. ARGV: token (0 if it leaves), replica, beat that it had when it died.
local state, inbox, open, replies, replicas = unpack(KEYS)
local token, replica = ARGV[1], ARGV[2]
if token ~= '0' then
  if redis.call('HGET', state, 'token') ~= token then return 'fenced' end
  if redis.call('HGET', replicas, replica) ~= ARGV[3] then return 'alive' end
end
if redis.call('HDEL', replicas, replica) == 0 then return 'unknown' end
redis.call('HSET', replies, replica, 'dead')
local tickets = redis.call('HVALS', open)
for _, terms in ipairs(tickets) do
  if string.sub(terms, 1, #replica + 1) == replica .. '|' then
    cut_off(state, inbox, open)
    break
  end
end
redis.call('XADD', inbox, '0-*', 'kind', 'left', 'replica', replica)
return 'ok'
