-- Ends a game that goes on elsewhere. KEYS: state, inbox, replicas. ARGV: why, names and beats of the replicas that died.
-- Returns '' or why it cannot be: it is played, not everything is in its journal, or it is half written.
local state, inbox, replicas = unpack(KEYS)
local over = redis.call('HGET', state, 'over')
if over == ARGV[1] then return '' end
if over then return 'over' end
if is_half(state) then return 'half' end
if table.concat(redis.call('HGETALL', replicas), ' ') ~= ARGV[2] then return 'played' end
local last = redis.call('XREVRANGE', inbox, '+', '-', 'COUNT', 1)
if #last > 0 and last[1][1] ~= redis.call('HGET', state, 'folded') then return 'behind' end
redis.call('HSET', state, 'over', ARGV[1])
return ''
