-- Gives the lease back. KEYS: state. ARGV: token.
if redis.call('HGET', KEYS[1], 'token') ~= ARGV[1] then return 0 end
redis.call('HSET', KEYS[1], 'holder', '')
return 1
