-- The folder publishes: entries of the journal, and what is in force after them. It also shows that the folder lives.
-- KEYS: state, inbox, journal, snapshot, claims.
-- ARGV: token, and packed: last event and number of entries before, last event folded, entries (text and note), head,
-- generation, epoch, what is in force, terms, version of the models, models, snapshot, claim, last step in the journal,
-- room of a budget and the audits and drafts that it has counted. What has not changed is false.
local state, inbox, journal, snapshot, claims = unpack(KEYS)
local now = redis.call('HMGET', state, 'token', 'folded', 'entries', 'generation', 'epoch', 'in_force', 'models_version',
  'over', 'writing')
if not now[1] then return 'lost' end
if now[1] ~= ARGV[1] or now[8] then return 'fenced' end
if now[9] == '1' then return 'lost' end
local from, count, upto, entries, head, generation, epoch, in_force, terms, models_version, models, state_after, claim,
  step, room, audits, instead = unpack(cmsgpack.unpack(ARGV[2]))
if now[2] ~= from or tonumber(now[3]) ~= count then return 'lost' end
if count > 0 and redis.call('EXISTS', journal) == 0 then return 'lost' end
local there = redis.call('EXISTS', inbox) == 1
if from ~= '0-0' and not there then return 'lost' end
if there then
  -- Events are numbered 0-1, 0-2, …: the last one must be there, and not before those that were folded.
  local info, last, given = redis.call('XINFO', 'STREAM', inbox), false, false
  for at = 1, #info, 2 do
    if info[at] == 'last-entry' then last = info[at + 1] end
    if info[at] == 'last-generated-id' then given = info[at + 1] end
  end
  if not last or last[1] ~= given then return 'lost' end
  if tonumber(string.match(given, '%d+$')) < tonumber(string.match(upto, '%d+$')) then return 'lost' end
end
begin_writing(state)
for _, entry in ipairs(entries) do
  count = count + 1
  redis.call('XADD', journal, count .. '-0', 'text', entry[1], 'note', entry[2])
end
redis.call('HSET', state, 'folded', upto, 'entries', count, 'head', head, 'folded_generation', generation,
  'folded_step', step)
if upto ~= from then redis.call('XTRIM', inbox, 'MINID', upto) end
if now[6] ~= in_force then
  redis.call('HSET', state, 'in_force', in_force, 'terms', terms)
  redis.call('HINCRBY', state, 'terms_version', 1)
end
if now[7] ~= models_version then redis.call('HSET', state, 'models_version', models_version, 'models', models) end
if tonumber(now[5]) ~= epoch then redis.call('HSET', state, 'epoch', epoch, 'given', 0) end
if room then
  redis.call('HSET', state, 'room', cmsgpack.pack(room), 'audits_folded', audits, 'instead_folded', instead)
end
if state_after then
  redis.call('SET', snapshot, state_after)
  redis.call('HSET', state, 'snapshot', count)
end
if claim then redis.call('RPUSH', claims, claim) end
-- A cut or a stop that is not folded yet keeps arrivals waiting.
if tonumber(now[4]) == generation and in_force ~= '' then redis.call('HSET', state, 'sealed', 0) end
redis.call('HINCRBY', state, 'beat', 1)
end_writing(state)
return 'ok'
