-- Shared by the scripts that must know which server runs them: its id changes when it starts again, and when another one
-- takes over. In a cluster it is that of the node that the game is on.
local function server_id() return string.match(redis.call('INFO', 'server'), 'run_id:(%w+)') or '' end
