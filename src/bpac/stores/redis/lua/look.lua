-- The replicas of a game and the server that it is on, at one moment. KEYS: state, replicas.
-- Returns the server's id, the id of the server that all replicas are known to have called ('' if none is), and the
-- names and beats of the replicas.
return {server_id(), redis.call('HGET', KEYS[1], 'server') or '', redis.call('HGETALL', KEYS[2])}
