-- Begins a game whose journal is there already. KEYS: state, inbox.
-- ARGV: number of entries, head, epoch, last step, 1 if queries were under way, who made its decisions so far, number of
-- entries before the snapshot (0 if there is none).
local running = ARGV[5] == '1'
redis.call('HSET', KEYS[1], 'generation', running and 1 or 0, 'epoch', ARGV[3], 'given', 0, 'step', ARGV[4], 'sealed', 1,
  'first', 0, 'terms_version', 0, 'terms', '', 'models_version', '', 'models', '[]',
  'token', 0, 'holder', '', 'beat', 0, 'folded', '0-0', 'folded_generation', 0, 'entries', ARGV[1], 'head', ARGV[2],
  'folded_step', ARGV[4], 'snapshot', ARGV[7])
if running then redis.call('XADD', KEYS[2], '0-*', 'kind', 'started', 'generation', 1) end
redis.call('XADD', KEYS[2], '0-*', 'kind', 'left', 'replica', ARGV[6])
return 1
