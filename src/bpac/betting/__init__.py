"""The mathematics: payoffs, wealth, thresholds, certificates. Pure; see ``docs/mathematics.md``."""
