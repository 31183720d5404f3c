-- The folder begins to give out tickets, or ends it: nothing is under way and no replica is left.
-- KEYS: state, inbox, open, replicas. ARGV: token, 'start' or 'stop'.
local state, inbox, open, replicas = unpack(KEYS)
if redis.call('HGET', state, 'token') ~= ARGV[1] then return 'fenced' end
if is_half(state) then return 'lost' end
if ARGV[2] == 'start' then
  begin_writing(state)
  cut_off(state, inbox, open)
elseif redis.call('EXISTS', open) == 0 and redis.call('EXISTS', replicas) == 0 then
  begin_writing(state)
  local generation = redis.call('HINCRBY', state, 'generation', 1)
  redis.call('HSET', state, 'given', 0, 'sealed', 1)
  redis.call('XADD', inbox, '0-*', 'kind', 'stopped', 'generation', generation)
else
  return 'busy'
end
end_writing(state)
return 'ok'
