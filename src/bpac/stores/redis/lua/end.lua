-- Ends a game whose journal lost acknowledged entries. KEYS: state. ARGV: why.
if redis.call('EXISTS', KEYS[1]) == 0 then return 0 end
return redis.call('HSETNX', KEYS[1], 'over', ARGV[1])
