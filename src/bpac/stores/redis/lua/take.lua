-- Takes the lease of the folder. KEYS: state. ARGV: replica, token and beat that the lease had when it was last seen.
-- Nothing depends on a clock here: who takes the lease has seen that its beat stood still for too long.
local now = redis.call('HMGET', KEYS[1], 'token', 'beat', 'over')
if not now[1] then return -1 end
if now[3] or now[1] ~= ARGV[2] or now[2] ~= ARGV[3] then return 0 end
local token = tonumber(now[1]) + 1
redis.call('HSET', KEYS[1], 'holder', ARGV[1], 'beat', tonumber(now[2]) + 1, 'token', token)
return token
