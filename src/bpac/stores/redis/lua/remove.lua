-- Takes a replica off a game: it has died, or leaves. Its tickets were cut off, and its audits get no outcome.
-- KEYS: state, inbox, open, replies, replicas. ARGV: token (0 if it leaves), replica, beat that it had when it died, id of
-- the server on which that was seen.
local state, inbox, open, replies, replicas = unpack(KEYS)
local token, replica = ARGV[1], ARGV[2]
-- A replica that was taken for dead and comes back learns here that it is, and by the number of its last batch whether
-- the server has lost one. Of so many, the older half is forgotten; one that came back even later would find that the
-- server does not know it, and end the game.
local MOST_DEAD = 1000
if is_half(state) then return 'lost' end
if token ~= '0' then
  if redis.call('HGET', state, 'token') ~= token then return 'fenced' end
  if redis.call('HGET', replicas, replica) ~= ARGV[3] then return 'alive' end
  -- It may have lost what the replica had written: the folder has to look again.
  if ARGV[4] and ARGV[4] ~= server_id() then return 'restarted' end
end
if redis.call('HEXISTS', replicas, replica) == 0 then return 'unknown' end
begin_writing(state)
redis.call('HDEL', replicas, replica)
if token == '0' then
  redis.call('HDEL', replies, replica)  -- its process ends: it never calls again
else
  local last = redis.call('HGET', replies, replica)
  last = last and cmsgpack.unpack(last) or {0}
  local deaths = redis.call('HINCRBY', state, 'deaths', 1)
  redis.call('HSET', replies, replica, 'dead ' .. deaths .. ' ' .. last[1])
  if redis.call('HLEN', replies) - redis.call('HLEN', replicas) > MOST_DEAD then
    local all = redis.call('HGETALL', replies)
    for at = 1, #all, 2 do
      local death = string.match(all[at + 1], '^dead ?(%d*)')
      if death and (tonumber(death) or 0) <= deaths - MOST_DEAD / 2 then redis.call('HDEL', replies, all[at]) end
    end
  end
end
local tickets = redis.call('HVALS', open)
for _, terms in ipairs(tickets) do
  if string.sub(terms, 1, #replica + 1) == replica .. '|' then
    cut_off(state, inbox, open)
    break
  end
end
redis.call('XADD', inbox, '0-*', 'kind', 'left', 'replica', replica)
end_writing(state)
return 'ok'
