"""The linear weights of a stored model: found by name and shape, decomposed one after the other, and written."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import PlanError, RankError, SchemeFormatError
from ..kernels import safetensors
from ..kernels.arrays import Matrix
from ..kernels.bfloat16 import bfloat16_bits, float32_of
from ..kernels.compressed_files import STRUCTURES, FinishedLayers, structures_in
from ..kernels.compression import (
    CompressConfig,
    Decomposition,
    FactorChain,
    LayerReport,
    compress_weight,
    config_for,
    output_error,
    predicted_speed,
)
from ..kernels.factor_files import readable
from ..kernels.factored import factored_request, product_dtype
from .contenders import contest_of
from .destination import write, writing
from .matrix_files import read_operand, to_gpu
from .output import print_figures
from .products import Device
from .schemes import AUTO

FLOATS = {"F64": "float64", "F32": "float32", "F16": "float16", "BF16": "bfloat16"}

EMBEDDINGS = ("*embed*", "*wte*", "*wpe*", "*lm_head*")
"""Names of weights that stay as they are unless they are named: tables of embeddings, and heads that may share them."""

LAYOUTS = ("auto", "linear", "conv1d")
"""The storage of weights: (outputs, inputs) as nn.Linear's, (inputs, outputs) as Conv1D's, or as their biases say."""

CALIBRATION_ROWS = 256


@dataclass(frozen=True)
class StoredWeight:
    """A linear layer of a file: its name, the tensor, and whether that is stored as (inputs, outputs)."""

    layer: str
    entry: safetensors.TensorEntry
    turned: bool

    @property
    def tensor(self) -> str:
        return f"{self.layer}.weight"

    @property
    def shape(self) -> tuple[int, int]:
        """(outputs, inputs)."""
        first, second = self.entry.shape
        return (second, first) if self.turned else (first, second)

    def read(self, path: Path) -> Matrix:
        """W (outputs, inputs) as an array of its own; bfloat16 as float32."""
        bits = safetensors.read(path, self.entry)
        wide = float32_of(bits) if self.entry.kind == "BF16" else np.array(bits)
        return np.ascontiguousarray(wide.T if self.turned else wide)


@dataclass(frozen=True)
class Task:
    """A weight with its configuration and the structures it may get, or the reason why it stays dense."""

    weight: StoredWeight
    config: CompressConfig
    structures: tuple[FactorChain, ...]
    reason: str | None = None


def stored_weights(path: Path, layout: str = "auto") -> list[StoredWeight]:
    """The two-dimensional floating-point tensors NAME.weight of a file.

    With "auto" a weight whose bias has as many entries as its second side, and not as its first, is stored as
    (inputs, outputs). Where the bias does not say, it is stored as those weights of the file where it does, if they
    agree, and as nn.Linear's else.

    Raises:
        SchemeFormatError: the file cannot be read, or is cut off.
    """
    with readable(path):
        known = safetensors.entries(path)
    found = {
        name.removesuffix(".weight"): entry
        for name, entry in known.items()
        if name.endswith(".weight") and len(entry.shape) == 2 and entry.kind in FLOATS and 0 not in entry.shape
    }
    turned = dict.fromkeys(found, layout == "conv1d")
    if layout == "auto":
        said = {}
        for name, entry in found.items():
            bias, (first, second) = known.get(f"{name}.bias"), entry.shape
            if bias is not None and first != second and bias.shape in ((first,), (second,)):
                said[name] = bias.shape == (second,)
        others = bool(said) and all(said.values())
        turned = {name: said.get(name, others) for name in found}
    return [StoredWeight(name, entry, turned[name]) for name, entry in found.items()]


def planned(weights: Sequence[StoredWeight], configs: Mapping[str, CompressConfig | None]) -> list[Task]:
    """Return the tasks, by the first pattern that fits a layer's name, without layers that are not compressed.

    Raises:
        RankError: a rank exceeds that of a weight.
        PlanError: no layer is meant.
    """
    found = []
    for weight in weights:
        config = config_for(weight.layer, configs)
        if config is None:
            continue
        try:
            found.append(Task(weight, config, config.structures(*weight.shape)))
        except RankError as error:
            raise RankError(f"{weight.layer}: {error}, or give --layer '{weight.layer}=dense'") from None
        except PlanError as error:
            found.append(Task(weight, config, (), str(error)))
    if not found:
        raise PlanError("no linear weight was taken: tensors NAME.weight of two dimensions are, but for embeddings")
    return found


def check_finite(path: Path, tasks: Sequence[Task]) -> None:
    """Check that all weights are finite numbers.

    Raises:
        SchemeFormatError: one is not.
    """
    for task in tasks:
        if not np.isfinite(task.weight.read(path)).all():
            raise SchemeFormatError(f"{task.weight.tensor} holds NaN or infinity; repair it first", path)


def calibration_inputs(text: str, tasks: Sequence[Task]) -> dict[str, Matrix]:
    """Inputs by layer: of X.npy (n, features) for all layers of so many inputs, of X.safetensors by the layers' names.

    Raises:
        SchemeFormatError: the file cannot be read, or holds NaN or infinity.
        PlanError: it fits no layer.
    """
    path, found = Path(text), {}
    named = set(safetensors.entries(path)) if path.suffix == ".safetensors" and path.is_file() else None
    for task in tasks:
        layer, cols = task.weight.layer, task.weight.shape[1]
        if named is not None and layer not in named:
            continue
        x = read_operand(text if named is None else f"{text}:{layer}").widened()
        if x.dtype.kind != "f" or x.shape[-1] != cols:
            if named is None:
                continue
            raise PlanError(f"{layer} takes {cols} inputs, and {text} has {x.dtype} of shape {x.shape} for it")
        some = np.array(x.reshape(-1, cols)[:CALIBRATION_ROWS], np.float64)
        if not np.isfinite(some).all():
            raise SchemeFormatError("holds NaN or infinity", text)
        found[layer] = some
    if not found:
        raise PlanError(f"{text} fits no layer: (n, inputs) is needed, or tensors by the names of layers")
    return found


class Compression:
    """The compression of one file: tasks, the device, and what was finished before.

    Raises:
        SchemeFormatError: the file has compressed layers that are not understood.
    """

    def __init__(
        self, path: Path, tasks: Sequence[Task], device: Device, store: FinishedLayers, resume: bool = True
    ) -> None:
        self._resume = resume
        self._metadata = safetensors.metadata(path)
        self._earlier = structures_in(path) if STRUCTURES in self._metadata else {}
        self.path, self.tasks, self.device, self.store = path, tasks, device, store
        self.keys: list[str] = []
        self.resumed = 0
        self._factors: dict[str, Decomposition] = {}

    def run(
        self, inputs: Mapping[str, Matrix], batch: int, rounds: int | None, say: Callable[[str], None] = lambda _: None
    ) -> Iterator[LayerReport]:
        """Decompose one weight after the other and yield their reports; `rounds` is for measured speeds (None: none).

        Raises:
            LcmaError: the folder of finished layers cannot be written.
        """
        speeds: dict[tuple[FactorChain, str], dict[str, float | None]] = {}
        for task in self.tasks:
            weight, kind = task.weight, task.weight.entry.kind
            held = weight.entry.stop - weight.entry.start
            if task.reason is not None:
                yield LayerReport(weight.layer, "dense", held, held, 0.0, task.reason)
                continue
            matrix = weight.read(self.path)
            found = self._factors[weight.layer] = self._decomposed(task, matrix, say)
            structure = found.structure
            say(f"{weight.layer}: speed")
            if (structure, kind) not in speeds:
                speeds[structure, kind] = speeds_of(structure, batch, FLOATS[kind], self.device, rounds)
            after, error = structure.parameters * held // matrix.size, None
            if (x := inputs.get(weight.layer)) is not None:
                stored = [_stored(factor, kind, weight.layer) for factor in found.factors]
                rounded = tuple(float32_of(one) if kind == "BF16" else one for one in stored)
                error = output_error(matrix, structure, rounded, x)
            about: dict[str, Any] = {"output_error": error, **speeds[structure, kind]}
            yield LayerReport(weight.layer, structure.name, held, after, found.error, **about)

    def write(self, out: Path) -> None:
        """Write the model with the factors in place of the weights, and forget the finished layers.

        Raises:
            PlanError: factors are too large for the weights' dtype.
            LcmaError: the file cannot be written.
        """
        tensors: dict[str, tuple[str, Matrix]] = {}
        done = {task.weight.tensor: task.weight for task in self.tasks if task.weight.layer in self._factors}
        for name, entry in safetensors.entries(self.path).items():
            if name not in done:
                tensors[name] = entry.kind, safetensors.read(self.path, entry)
                continue
            layer = done[name].layer
            found = self._factors[layer]
            for part, factor in zip(found.structure.factor_names, found.factors, strict=True):
                tensors[f"{layer}.{part}"] = entry.kind, _stored(factor, entry.kind, layer)
        structures = {**self._earlier, **{name: found.structure for name, found in self._factors.items()}}
        texts = json.dumps({name: structure.text for name, structure in structures.items()})
        write(out, safetensors.chunks(tensors, {**self._metadata, STRUCTURES: texts}))
        self.store.remove(self.keys)

    def _decomposed(self, task: Task, matrix: Matrix, say: Callable[[str], None]) -> Decomposition:
        layer = task.weight.layer
        self.keys.append(key := self.store.key(layer, f"{task.config!r} {self.device.kind}", matrix))
        if self._resume and (found := self.store.load(key)):
            self.resumed += 1
            return found
        given: Any = matrix
        if self.device.kind == "cuda":
            given = to_gpu(matrix.astype(np.float32), "float32", task.weight.tensor)
        found = compress_weight(
            given, task.structures, task.config.steps, lambda text: say(f"{layer}: {text}"), task.config.tolerance
        )
        arrays = tuple(np.asarray(x if isinstance(x, np.ndarray) else x.cpu().numpy()) for x in found.factors)
        wide = tuple(x if x.dtype == np.float64 else x.astype(np.float32) for x in arrays)
        found = replace(found, factors=wide)
        with writing(self.store.folder):
            self.store.store(key, found)
        return found


def speeds_of(
    structure: FactorChain, batch: int, dtype: str, device: Device, rounds: int | None
) -> dict[str, float | None]:
    """Seconds of the dense product over those of the structured one: "predicted", and "measured" in so many rounds.

    None where there are no rounds, or the dense matrix does not fit.
    """
    found = {"predicted": predicted_speed(structure, batch, dtype, device.kind), "measured": None}
    if rounds is not None:
        request = factored_request(structure, batch, product_dtype(dtype, device.kind), device=device.kind)
        seconds = {row.what: row.median_s for row in contest_of(request, AUTO, (1,), None).run(rounds).rows}
        found["measured"] = seconds["dense"] / seconds[AUTO] if "dense" in seconds else None
    return found


def _stored(factor: Matrix, kind: str, layer: str) -> Matrix:
    with np.errstate(over="ignore"):
        found = bfloat16_bits(factor) if kind == "BF16" else factor.astype(safetensors.STORAGE[kind])
    if not np.isfinite(float32_of(found) if kind == "BF16" else found).all():
        raise PlanError(f"factors of {layer} are too large for {FLOATS[kind]}; convert the model to float32")
    return found


def show_layers(reports: Sequence[LayerReport]) -> None:
    """Print the reports, and the sum of the bytes."""
    rows: list[dict[str, Any]] = []
    for one in reports:
        said = {name: value for name, value in asdict(one).items() if value is not None}
        rows.append(said if one.skipped is None else {**said, "error": None})
    before, after = (sum(getattr(one, f"bytes_{when}") for one in reports) for when in ("before", "after"))
    count = f"{sum(one.skipped is None for one in reports)} of {len(reports)} layers"
    rows.append({"name": count, "bytes_before": before, "bytes_after": after, "skipped": f"{after / before:.1%}"})
    print_figures("layers", rows)
