"""Commands that change games: begun again, moved, merged."""
