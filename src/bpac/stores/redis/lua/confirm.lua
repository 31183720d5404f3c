-- Notes that all replicas of a game have called this server, and that it had what they were told. KEYS: state.
-- ARGV: token of the folder, the server's id. Returns 1; 0 if another replica folds, or if the game is gone.
if redis.call('HGET', KEYS[1], 'token') ~= ARGV[1] then return 0 end
redis.call('HSET', KEYS[1], 'server', ARGV[2])
return 1
