"""Layers under DDP, FSDP2 and as DTensors, on two processes of this machine."""

import subprocess
import sys
from pathlib import Path

import pytest
import torch.distributed as dist

pytestmark = pytest.mark.skipif(not dist.is_available() or not dist.is_gloo_available(), reason="torch without gloo")


@pytest.mark.slow
def test_layers_train_as_on_one_process_and_refuse_parts_of_weights(tmp_path):
    command = [sys.executable, str(Path(__file__).with_name("checks_sharded.py")), str(tmp_path / "store")]
    started = [
        subprocess.Popen([*command, str(rank)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        for rank in range(2)
    ]
    try:
        said = [one.communicate(timeout=240)[0] for one in started]
    finally:
        for one in started:
            one.kill()
    assert [one.returncode for one in started] == [0, 0], "\n".join(text[-3000:] for text in said)
