-- Audits that games learn from together, and the scores that were learned. KEYS: audits, scores.
-- ARGV, packed: last audit that was read, audits to add, number of scores known, a score to offer ('' if none), most
-- audits to return, most to keep. A score is taken if nobody has offered that one before.
-- Returns the next audits, and the scores after those that are known.
local after, rows, known, offer, most, keep = unpack(cmsgpack.unpack(ARGV[1]))
-- Before anything is written: both keys are what they should be, or this fails.
local is_new = redis.call('LLEN', KEYS[2]) == known and redis.call('XLEN', KEYS[1]) >= 0
for _, row in ipairs(rows) do
  redis.call('XADD', KEYS[1], 'MAXLEN', '~', keep, '*', 'row', row)
end
if offer ~= '' and is_new then redis.call('RPUSH', KEYS[2], offer) end
local found = {}
for at, one in ipairs(redis.call('XRANGE', KEYS[1], '(' .. after, '+', 'COUNT', most)) do
  found[at] = {one[1], one[2][2]}
end
return {found, redis.call('LRANGE', KEYS[2], known, -1)}
