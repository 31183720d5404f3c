-- Begins a game, unless it is there. KEYS: state. ARGV: head of the empty journal.
if redis.call('EXISTS', KEYS[1]) == 1 then return 0 end
redis.call('HSET', KEYS[1], 'generation', 0, 'epoch', 1, 'given', 0, 'step', 0, 'sealed', 1, 'first', 0,
  'terms_version', 0, 'terms', '', 'models_version', '', 'models', '[]',
  'token', 0, 'holder', '', 'beat', 0, 'folded', '0-0', 'folded_generation', 0, 'entries', 0, 'head', ARGV[1])
return 1
