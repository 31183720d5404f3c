"""The journal: what was decided and what came of it.

``entries.py`` has the entries and their JSON, ``chain.py`` the hash chain, ``rebuild.py`` makes a state from entries,
``snapshot.py`` saves reading them all, ``past_game.py`` reads an older journal as history.
"""
