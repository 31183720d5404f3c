-- A number that no game has had; or, if one is given, makes sure that no other game gets it.
-- KEYS: games, last number. ARGV: a number that a game had, also if Redis lost it; 0 for a new number.
local last = math.max(tonumber(redis.call('GET', KEYS[2]) or 0), tonumber(ARGV[1]))
for _, number in ipairs(redis.call('HKEYS', KEYS[1])) do last = math.max(last, tonumber(number)) end
if ARGV[1] == '0' then last = last + 1 end
redis.call('SET', KEYS[2], last)
return last
