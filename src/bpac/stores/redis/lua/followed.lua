-- Seconds since the last request that followed each of some decisions; -1 where none is known. KEYS: followed.
-- ARGV: the steps of the decisions.
local time, found = redis.call('TIME'), {}
for at, step in ipairs(ARGV) do
  local last = redis.call('ZSCORE', KEYS[1], step)
  found[at] = last and math.floor(time[1] + time[2] / 1000000 - last) or -1
end
return found
