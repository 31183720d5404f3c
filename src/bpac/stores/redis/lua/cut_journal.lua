-- Cuts archived entries from a journal. KEYS: state, journal, archived, claims, point, keys.
-- ARGV: number of the last entry to cut, how many were archived before, what takes their place, claims to cut, token of
-- the folder (0: a command, which needs none), first step whose coin's key is still needed (0: all are).
-- Returns 1; 0 if something else was archived meanwhile; -1 if another replica folds the game.
local token = redis.call('HGET', KEYS[1], 'token')
if ARGV[5] ~= '0' and ARGV[5] ~= token then return -1 end
local before = redis.call('GET', KEYS[3])
local had = before and cjson.decode(before).entries or 0
if had ~= tonumber(ARGV[2]) then return 0 end
redis.call('SET', KEYS[3], ARGV[3])
redis.call('XTRIM', KEYS[2], 'MINID', (tonumber(ARGV[1]) + 1) .. '-0')
for _ = 1, tonumber(ARGV[4]) do redis.call('LPOP', KEYS[4]) end
redis.call('DEL', KEYS[5])
redis.call('ZREMRANGEBYSCORE', KEYS[6], '-inf', '(' .. ARGV[6])
return 1
