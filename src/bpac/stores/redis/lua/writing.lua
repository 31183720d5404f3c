-- Shared by the scripts that write to a game more than once. Redis takes nothing back when a script fails in its middle.
-- So they note first that they write, and last that they are done. A game in which such a note is found is half written,
-- and ends. The note is also what a full memory, a disk error or a copy refuses: Redis lets a script go on once it has
-- written, so that it is refused as a whole or not at all.
local HALF = 'a script failed in its middle: the game is half written'
local function is_half(state) return redis.call('HGET', state, 'writing') == '1' end
local function begin_writing(state) redis.call('HSET', state, 'writing', 1) end
local function end_writing(state) redis.call('HSET', state, 'writing', 0) end
