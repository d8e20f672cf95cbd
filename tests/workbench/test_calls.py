"""Calls of tables: wrong ones are refused before anything is computed, each with its reason; others have a value."""

import json

from ..refusal import has_value, refuses_as_said, values, wrong_calls

TENSOR = {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}


def tensors(header, body=b""):
    """Write a .safetensors file of this header, bytes or JSON; return its name."""
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    with open("x.safetensors", "wb") as file:
        file.write(len(text).to_bytes(8, "little") + text + body)
    return "x.safetensors"


def tensor(size, **changes):
    """Write a file of one tensor with another header, and of so many bytes; return its name."""
    return tensors({"x": {**TENSOR, **changes}}, bytes(size))


@wrong_calls(__file__)
def test_a_wrong_call_is_refused_in_one_line(modules, call, error, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    refuses_as_said(modules, call, error, tensors=tensors, tensor=tensor, json=json)


@values(__file__)
def test_a_call_has_its_value(modules, call, wanted):
    has_value(modules, call, wanted)
