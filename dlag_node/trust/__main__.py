"""`python -m dlag_node.trust`: `dlag keys` for an image without the laboratory."""

from __future__ import annotations

import sys

from dlag_node.process import run_command
from dlag_node.trust.cli import app

sys.exit(run_command(app, sys.argv[1:], "dlag keys"))
