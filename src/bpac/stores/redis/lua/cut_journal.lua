-- Cuts archived entries from a journal. KEYS: state, journal, archived, claims.
-- ARGV: number of the last entry to cut, how many were archived before, what takes their place, claims to cut.
local before = redis.call('GET', KEYS[3])
local had = before and cjson.decode(before).entries or 0
if had ~= tonumber(ARGV[2]) then return 0 end
redis.call('SET', KEYS[3], ARGV[3])
redis.call('XTRIM', KEYS[2], 'MINID', (tonumber(ARGV[1]) + 1) .. '-0')
for _ = 1, tonumber(ARGV[4]) do redis.call('LPOP', KEYS[4]) end
return 1
