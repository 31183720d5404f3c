-- Registers a replica with a game. KEYS: state, replies, replicas. ARGV: replica.
if redis.call('EXISTS', KEYS[1]) == 0 then return 'lost' end
if redis.call('HEXISTS', KEYS[1], 'over') == 1 then return 'over' end
redis.call('HSETNX', KEYS[2], ARGV[1], cmsgpack.pack({0, '', ''}))
redis.call('HSETNX', KEYS[3], ARGV[1], 0)
return 'ok'
