"""Results that can be reproduced by name."""

from bpac.replay.experiments import EXPERIMENTS
from bpac.replay.studies.comparison import Comparison
from bpac.replay.studies.gap import Gap, Summary
from bpac.replay.studies.load import FaultsStudy, Order
from bpac.replay.studies.promises import Certificates, Drift, Hostile
from bpac.replay.studies.prompting import Prompting
from bpac.replay.studies.stall import Stall
from bpac.replay.studies.study import Folder, Study

STUDIES: tuple[Study, ...] = (
    Summary(),
    Stall(),
    *(Comparison(experiment) for experiment in EXPERIMENTS),
    Prompting(),
    Drift(),
    Certificates(),
    Hostile(),
    Order(),
    FaultsStudy(),
)

__all__ = ["STUDIES", "Comparison", "Folder", "Gap", "Prompting", "Study"]
