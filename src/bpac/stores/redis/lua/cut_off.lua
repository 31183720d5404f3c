-- Shared by the scripts that end tickets. The generation counts on, so that tickets given out before are void, and
-- nothing arrives until the folder has published what is in force after the cut.
local function cut_off(state, inbox, open)
  local generation = redis.call('HINCRBY', state, 'generation', 1)
  redis.call('HSET', state, 'given', 0, 'sealed', 1)
  redis.call('DEL', open)
  redis.call('XADD', inbox, '0-*', 'kind', 'started', 'generation', generation)
  return generation
end
