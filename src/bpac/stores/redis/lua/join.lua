-- Registers a replica with a game. KEYS: state, replies, replicas. ARGV: replica.
local state, replies, replicas = unpack(KEYS)
if redis.call('EXISTS', state) == 0 or is_half(state) then return 'lost' end
if redis.call('HEXISTS', state, 'over') == 1 then return 'over' end
begin_writing(state)
redis.call('HSETNX', replies, ARGV[1], cmsgpack.pack({0, '', ''}))
redis.call('HSETNX', replicas, ARGV[1], 0)
end_writing(state)
return 'ok'
