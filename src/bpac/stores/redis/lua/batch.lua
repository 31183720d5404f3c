-- What happened in a replica since its last call, in order: arrivals, decisions, outcomes. All of it or nothing takes
-- effect. A call that is repeated because its reply was lost gets the reply of the first time.
-- KEYS: state, inbox, open, keys, replies, replicas, named, named_ends, followed.
-- ARGV: replica, sequence number, nonce, and packed: versions of terms and models that the replica knows, first step of
-- the block of coins it knows, a new key and its digest, operations, and the draws of the key if a budget needs them.
-- Returns a status and, packed: generation, epoch, version of the terms, terms, version of the models, models, blocks
-- of coins, whether the new key was used, results. Terms and models are false if the replica has them.
local state, inbox, open, keys, replies, replicas, named, named_ends, followed = unpack(KEYS)
local replica, sequence, nonce = ARGV[1], tonumber(ARGV[2]), ARGV[3]
local now = redis.call('HMGET', state, 'generation', 'epoch', 'given', 'step', 'sealed', 'first', 'terms_version',
  'models_version', 'over', 'terms', 'room', 'writing')
if not now[1] then return {'lost', 'the game is gone'} end
if now[9] then return {'over', now[9]} end
if now[12] == '1' then return {'lost', HALF} end
-- From the first decision on both are there, also when they are empty.
if now[6] ~= '0' and redis.call('EXISTS', inbox, keys) < 2 then return {'lost', 'keys of the game are gone'} end
local last = redis.call('HGET', replies, replica)
if not last then return {'lost', 'the server has forgotten this replica'} end
local function behind(has)
  return {'lost', 'the server has batch ' .. has .. ' of this replica and acknowledged ' .. (sequence - 1)}
end
if string.sub(last, 1, 4) == 'dead' then
  local has = tonumber(string.match(last, '^dead %d+ (%d+)$'))
  if has and has < sequence - 1 then return behind(has) end
  return {'gone', ''}
end
last = cmsgpack.unpack(last)
if last[1] == sequence then
  if last[2] == nonce then return {'ok', last[3]} end
  return {'earlier', last[3]}
end
if last[1] > sequence then return {'old', ''} end
if last[1] < sequence - 1 then return behind(last[1]) end

local known_terms, known_models, known_first, key, digest, operations, new_draws = unpack(cmsgpack.unpack(ARGV[4]))
local generation, epoch, given, step = tonumber(now[1]), tonumber(now[2]), tonumber(now[3]), tonumber(now[4])
local sealed, first = now[5] == '1', tonumber(now[6])
local blocks, used, results = {}, false, {}
local BLOCK = 256
begin_writing(state)  -- a failure from here on ends the game: see writing.lua

-- A budget: what is published is ε, and what ε times the step must reach to keep a draft after 0, 1, 2, … audits that
-- are decided and not folded. A kept draft moves no bound; an audit, and a draft served in the expert's place, do.
local room, draws, audits, instead, audits_folded, instead_folded
if new_draws then
  local counts = redis.call('HMGET', state, 'draws', 'audits', 'instead', 'audits_folded', 'instead_folded')
  room, draws = now[11] and cmsgpack.unpack(now[11]) or {0}, counts[1] and cmsgpack.unpack(counts[1]) or {}
  audits, instead = tonumber(counts[2] or 0), tonumber(counts[3] or 0)
  audits_folded, instead_folded = tonumber(counts[4] or 0), tonumber(counts[5] or 0)
end
local function has_no_room(uncertainty, terms)
  local needed = room[audits - audits_folded + 2]
  if not needed or needed + instead - instead_folded > room[1] * step then return true end
  local threshold, rate = string.match(terms, '^[^|]*|([^|]*)|([^|]*)|')
  local draw = draws[step - first + 1]
  if uncertainty < tonumber(threshold) and (not draw or draw < tonumber(rate)) then audits = audits + 1 end
  return false
end

local function note_block(number)
  if number ~= known_first and (#blocks == 0 or blocks[#blocks][1] ~= number) then
    local found = redis.call('ZRANGEBYSCORE', keys, number, number)
    blocks[#blocks + 1] = {number, found[1]}
  end
end

local function give(count)
  if sealed then return 0 end
  for number = given + 1, given + count do
    redis.call('HSET', open, epoch .. ':' .. number, replica .. '|' .. now[10])
  end
  given = given + count
  return given - count + 1
end

-- Decisions by name: see named_decisions.py. A name stands for a decision (began, requests, and what it follows from)
-- or is held by a ticket under way (generation, ticket).
local clock
local function seconds()
  if not clock then
    local time = redis.call('TIME')
    clock = time[1] + time[2] / 1000000
  end
  return clock
end

local function keep(name, most, value, ends)
  redis.call('HSET', named, name, cmsgpack.pack(value))
  redis.call('ZADD', named_ends, ends, name)
  for _, old in ipairs(redis.call('ZRANGEBYSCORE', named_ends, '-inf', '(' .. seconds(), 'LIMIT', 0, 4)) do
    redis.call('HDEL', named, old)
    redis.call('ZREM', named_ends, old)
  end
  if redis.call('ZCARD', named_ends) > most then
    redis.call('HDEL', named, redis.call('ZPOPMIN', named_ends)[1])
    redis.call('HINCRBY', state, 'names_forgotten', 1)
  end
end

local function find(name)
  local ends = redis.call('ZSCORE', named_ends, name)
  if not ends or tonumber(ends) < seconds() then return end
  local value = redis.call('HGET', named, name)
  return value and cmsgpack.unpack(value)
end

local function join(name, most, idle, age, requests, hold, deadline)
  local found = find(name)
  if found and #found > 2 and found[2] < requests then
    found[2] = found[2] + 1
    redis.call('HSET', named, name, cmsgpack.pack(found))
    redis.call('ZADD', named_ends, math.min(seconds() + idle, found[1] + age), name)
    if deadline > 0 then
      redis.call('ZADD', followed, seconds(), found[3])
      redis.call('ZREMRANGEBYSCORE', followed, '-inf', seconds() - deadline)
    end
    return found
  end
  if found and #found == 2 and found[1] == generation then
    local terms = redis.call('HGET', open, found[2])
    if terms then return {generation, found[2], terms} end
  end
  local number = give(1)
  if number > 0 then keep(name, most, {generation, epoch .. ':' .. number}, seconds() + hold) end
  return number
end

for at, operation in ipairs(operations) do
  local kind, result = operation[1], 0
  if kind == 'a' then
    result = give(operation[2])
  elseif kind == 'j' then
    result = join(unpack(operation, 2))
  elseif kind == 'f' then
    local found = find(operation[2])
    if found and #found > 2 then result = found end
  elseif kind == 'd' then
    local id = operation[3] .. ':' .. operation[4]
    local terms = operation[2] == generation and redis.call('HGET', open, id)
    if terms then
      redis.call('HDEL', open, id)
      step = step + 1
      if first == 0 or step >= first + BLOCK then
        first, used = step, true
        if new_draws then
          draws = new_draws
          redis.call('HSET', state, 'draws', cmsgpack.pack(draws))
        end
        redis.call('ZADD', keys, first, key)
        redis.call('XADD', inbox, '0-*', 'kind', 'committed', 'first', first, 'digest', digest, 'key', key)
      end
      note_block(first)
      local stale = operation[3] ~= epoch or (room and has_no_room(operation[6], terms))
      redis.call('XADD', inbox, '0-*', 'kind', 'decided', 'step', step, 'ticket', id, 'terms', terms,
        'stale', stale and 1 or 0, 'draft', operation[5], 'audits', audits or 0)
      result = stale and -step or step
      if operation[7] then
        local name, most, idle, age = unpack(operation[7])
        local found = find(name)
        local coins = redis.call('ZRANGEBYSCORE', keys, first, first)[1]
        -- A ticket that held the name for too long does not take it from a decision that was made meanwhile.
        if not found or #found == 2 then
          keep(name, most, {seconds(), 1, step, stale and 1 or 0, generation, id, terms, operation[5], first, coins},
            seconds() + math.min(idle, age))
        end
      end
    end
  elseif kind == 'w' or kind == 'o' then
    local id = operation[3] .. ':' .. operation[4]
    if operation[2] == generation and redis.call('HEXISTS', open, id) == 1 then
      if kind == 'w' then redis.call('HDEL', open, id) end
      redis.call('XADD', inbox, '0-*', 'kind', kind == 'w' and 'withdrawn' or 'overdue', 'ticket', id,
        'reason', operation[5])
      result = 1
    end
  elseif kind == 'r' then
    if room then instead = instead + operation[3] end
    redis.call('XADD', inbox, '0-*', 'kind', 'resolved', 'outcome', operation[2], 'instead', instead or 0)
    result = 1
  elseif kind == 'c' then
    if redis.call('EXISTS', open) == 1 then
      generation = cut_off(state, inbox, open)
      given, sealed, result = 0, true, 1
    end
  end
  results[at] = result
end

if room then redis.call('HSET', state, 'audits', audits, 'instead', instead) end
redis.call('HINCRBY', replicas, replica, 1)
local version, models_version = tonumber(now[7]), now[8]
local reply = cmsgpack.pack({generation, epoch, version, version ~= known_terms and now[10],
  models_version, models_version ~= known_models and redis.call('HGET', state, 'models'), blocks, used, results})
redis.call('HSET', replies, replica, cmsgpack.pack({sequence, nonce, reply}))
redis.call('HSET', state, 'given', given, 'step', step, 'first', first, 'writing', 0)
return {'ok', reply}
