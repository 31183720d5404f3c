-- Writes entries of a journal that comes from another store. KEYS: journal.
-- ARGV: packed: number of the entry before, entries (text and note).
local count, entries = unpack(cmsgpack.unpack(ARGV[1]))
for _, entry in ipairs(entries) do
  count = count + 1
  redis.call('XADD', KEYS[1], count .. '-0', 'text', entry[1], 'note', entry[2])
end
return count
