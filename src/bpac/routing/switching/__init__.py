"""May a new model replace an old one? Evidence from a journal, and the verdict at any time."""

from bpac.routing.switching.evidence import SwitchEvidence
from bpac.routing.switching.verdict import SwitchVerdict, switch_verdict

__all__ = ["SwitchEvidence", "SwitchVerdict", "switch_verdict"]
