-- Cuts archived entries from a journal. KEYS: state, journal, archived, claims, point, keys.
-- ARGV: number of the last entry to cut, how many were archived before, what takes their place, claims to cut, token of
-- the folder (0: a command, which needs none), first step whose coin's key is still needed (0: all are).
-- Returns 1; 0 if something else was archived meanwhile, or if the game is half written; -1 if another replica folds it.
local state, journal, archived, claims, point, keys = unpack(KEYS)
local token = redis.call('HGET', state, 'token')
if ARGV[5] ~= '0' and ARGV[5] ~= token then return -1 end
local before = redis.call('GET', archived)
local had = before and cjson.decode(before).entries or 0
if had ~= tonumber(ARGV[2]) or is_half(state) then return 0 end
begin_writing(state)
redis.call('SET', archived, ARGV[3])
redis.call('XTRIM', journal, 'MINID', (tonumber(ARGV[1]) + 1) .. '-0')
for _ = 1, tonumber(ARGV[4]) do redis.call('LPOP', claims) end
redis.call('DEL', point)
redis.call('ZREMRANGEBYSCORE', keys, '-inf', '(' .. ARGV[6])
end_writing(state)
return 1
