-- The games and their order, as they are at one moment. KEYS: games, order.
return {redis.call('LRANGE', KEYS[2], 0, -1), redis.call('HGETALL', KEYS[1])}
