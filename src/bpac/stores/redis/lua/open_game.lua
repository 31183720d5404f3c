-- Opens a game unless another one was opened or resumed since the list was read. KEYS: games, order.
-- ARGV: length of the order that was read, number of the game, its route, segment and terms, packed (empty: it is known).
if redis.call('LLEN', KEYS[2]) ~= tonumber(ARGV[1]) then return 0 end
if ARGV[3] ~= '' then redis.call('HSET', KEYS[1], ARGV[2], ARGV[3]) end
redis.call('RPUSH', KEYS[2], ARGV[2])
return 1
