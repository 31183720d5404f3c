"""``python -m bpac`` is the command ``bpac``."""

import sys

from bpac.cli.main import main

sys.exit(main())
