"""Measurements that need a process of their own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any


def in_new_process(code: str, home: str | None = None) -> Any:
    """Return the JSON that a Python program prints; `home` is its LCMA_HOME."""
    environment = {**os.environ, **({"LCMA_HOME": home} if home else {})}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment)
    return json.loads(done.stdout)
