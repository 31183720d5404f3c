"""Results that can be reproduced by name."""

from bpac.replay.experiments import EXPERIMENTS
from bpac.replay.studies.comparison import ComparisonStudy
from bpac.replay.studies.gap import GapStudy, Summary
from bpac.replay.studies.load import FaultsStudy, OrderStudy
from bpac.replay.studies.promises import CertificateStudy, DriftStudy, HostileStudy
from bpac.replay.studies.prompting import PromptingStudy
from bpac.replay.studies.stall import StallStudy
from bpac.replay.studies.study import Folder, Study

STUDIES: tuple[Study, ...] = (
    Summary(),
    StallStudy(),
    *(ComparisonStudy(experiment) for experiment in EXPERIMENTS),
    PromptingStudy(),
    DriftStudy(),
    CertificateStudy(),
    HostileStudy(),
    OrderStudy(),
    FaultsStudy(),
)

__all__ = ["STUDIES", "ComparisonStudy", "Folder", "GapStudy", "PromptingStudy", "Study"]
