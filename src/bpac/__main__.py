"""``python -m bpac`` is the command ``bpac``."""

import sys

from bpac.cli.program import main

sys.exit(main())
