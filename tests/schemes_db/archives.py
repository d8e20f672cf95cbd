"""Archives and documents that are damaged, or hold what they should not."""

import io
import json
import os
import zipfile
from pathlib import Path

import numpy as np

import lcma
from lcma.schemes_db.formats import lcma_json, render


def sample(name):
    """The bytes of a file of the folder samples."""
    return (Path(__file__).parent / "samples" / name).read_bytes()


def maple(entry):
    """A file of Maple with a product of 1x1x1 with this entry of A, and statements beside it."""
    one = "Matrix(1, 1, [[1]])"
    triad = f"Triad([Matrix(1, 1, [[{entry}]]), {one}, {one}])"
    return f"A:=Matrix(1,1,[[A_1_1]]):\nTensor:=TriadSet([{triad}]):\nmap(expand,A-op([1,i],Tensor));"


def archive(**members):
    stream = io.BytesIO()
    np.savez_compressed(stream, **members)
    return stream.getvalue()


def zipped(members, **options):
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED, **options) as made:
        for name, content in members:
            made.writestr(name, content)
    return stream.getvalue()


def header(descr, shape):
    """The header of a .npy file."""
    text = repr({"descr": descr, "fortran_order": False, "shape": shape}).encode()
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text


def npy(array):
    stream = io.BytesIO()
    np.save(stream, array)
    return stream.getvalue()


class Evil:
    """What makes a folder where it is read from a pickle."""

    def __reduce__(self):
        return os.mkdir, ("pickled-and-run",)


def pickled(*items):
    """An archive with some objects in an array."""
    array = np.empty(len(items), dtype=object)
    array[:] = items
    return archive(**{"2,2,2": array})


def npz_with(**changes):
    """Our own .npz of Strassen's identity with some arrays changed."""
    with np.load(io.BytesIO(render(lcma.resolve("strassen")[0], "lcma-npz"))) as members:
        return archive(**{**dict(members), **changes})


def json_with(product=None, **changes):
    """Our own JSON of Strassen's identity with some fields changed, or its fourth product; `...` takes a field out."""
    data = lcma_json.to_json(lcma.resolve("strassen")[0]) | changes
    if product is not None:
        whole = isinstance(product, dict) and "u" in product
        data["products"][3] = data["products"][3] | product if whole else product
    return json.dumps({name: value for name, value in data.items() if value is not ...})
