"""The past of a game in bounded memory: a series of points, events, traffic by uncertainty, unscored requests."""
