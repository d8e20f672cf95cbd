"""Installation, names and imports: the package list, the wheel, public classes, lazy imports."""

import ast
import fcntl
import json
import os
import subprocess
import sys
import tomllib
import zipfile
from collections import defaultdict
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

import lcma

ROOT = Path(lcma.__file__).resolve().parent
HEAVY = {"torch", "triton", "numba", "ortools", "sympy", "networkx", "matplotlib", "llvmlite", "pandas", "jinja2"}


DATA_FOLDERS = (
    "kernels/planning/data/",
    "schemes_db/data/",
    "search/data/",
    "workbench/bench/data/",
    "workbench/bench/peers/",
    "workbench/data/",
    "workbench/site/static/",
    "workbench/site/templates/",
    "workbench/templates/",
)


def project():
    return tomllib.loads((ROOT / "pyproject.toml").read_text())


def folders_on_disk():
    skipped = {"tests", "examples", "docs", "build", "dist"}
    found = {"lcma"}
    for init in ROOT.rglob("__init__.py"):
        parts = init.relative_to(ROOT).parent.parts
        if parts and parts[0] not in skipped and not parts[0].startswith("."):
            found.add(".".join(("lcma", *parts)))
    return found


def test_the_package_list_is_what_is_on_disk():
    listed = project()["tool"]["setuptools"]["packages"]
    assert set(listed) == folders_on_disk()
    assert listed == sorted(listed)


def test_no_modules_import_each_other_in_a_circle():
    """Imports inside functions and those for type checkers are counted too."""
    graph = pytest.importorskip("grimp").build_graph("lcma", cache_dir=None)
    imports = {name: graph.find_modules_directly_imported_by(name) - {name} for name in graph.modules}
    assert "lcma.search.runs.engine" in imports["lcma.search.cluster.engine"]
    TopologicalSorter(imports).prepare()  # CycleError names the modules


def test_versions_agree_and_constraints_name_every_base_dependency():
    pinned = {line.split("==")[0] for line in (ROOT / "constraints.txt").read_text().splitlines() if "==" in line}
    base = {need.split(">")[0] for need in project()["project"]["dependencies"]}
    assert base <= pinned
    assert (ROOT / "CHANGELOG.md").read_text().count(f"## {lcma.__version__}") == 1


def test_names_are_those_of_the_imports_for_type_checkers():
    tree = ast.parse((ROOT / "__init__.py").read_text())
    guarded = next(node for node in tree.body if isinstance(node, ast.If))
    names = {node.names[0].asname for node in guarded.body}
    for name in names:
        assert getattr(lcma, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        lcma.nothing  # noqa: B018
    assert dir(lcma) == lcma.__all__ == sorted({"__version__", *names})
    # These are packages; a function of the same name would hide one of them.
    assert not {"verify", "search", "kernels", "schemes_db", "workbench", "lazy"} & set(lcma.__all__)


def test_all_names_but_those_of_torch_are_imported_without_it():
    code = (
        "import sys\nsys.modules['torch'] = None\nfrom lcma import *\nimport lcma\n"
        "assert matmul([[2]], [[3]]) == 6 and 'FastLinear' not in globals()\n"
        "assert 'FastLinear' not in dir(lcma) and set(dir(lcma)) <= set(globals())\n"
        "lcma.FastLinear"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    last = run.stderr.splitlines()[-1]
    assert last == "ModuleNotFoundError: lcma.FastLinear needs torch; pip install 'lcma[torch]'"


def classes(source):
    """The names of the public classes of a module."""
    return [one.name for one in ast.parse(source).body if isinstance(one, ast.ClassDef) and one.name[0] != "_"]


def test_no_class_name_is_defined_twice():
    found, floors = defaultdict(list), ("kernels", "schemes_db", "search", "verify")
    for path in (path for floor in floors for path in (ROOT / floor).rglob("*.py")):
        for name in classes(path.read_text()):
            found[name].append(str(path.relative_to(ROOT)))
    assert len(found) > 300
    assert {name: places for name, places in found.items() if len(places) > 1} == {}
    assert classes("class A: pass\nclass _B: pass\ndef f():\n    class C: pass\n") == ["A"]


def modules_after(code, *arguments):
    """The modules that a fresh process has after running some code."""
    report = "\nimport json, sys\nsys.stderr.write('MODULES' + json.dumps(sorted(sys.modules)))"
    run = subprocess.run([sys.executable, "-c", code + report, *arguments], capture_output=True, text=True, check=True)
    return set(json.loads(run.stderr.split("MODULES")[1]))


LIGHT = (
    "import lcma",
    "import lcma.kernels, lcma.search, lcma.verify, lcma.schemes_db\nlcma.search.find, lcma.search.lift",
    "import lcma.workbench.site, lcma.workbench.commands.site",
    "import lcma\nlcma.certify(lcma.resolve('strassen')[0])",
    "import sys\nfrom lcma.workbench.cli import main\nassert main(['verify', '-q', 'SCHEME']) == 0\n"
    "assert not {'rich', 'scipy'} & set(sys.modules)",
    *(
        f"from lcma.workbench.cli import main\nassert main({line.split()}) == 0"
        for line in ("--help", "list", "show strassen", "verify SCHEME")
    ),
)


@pytest.mark.parametrize("code", LIGHT)
def test_nothing_heavy_is_imported_before_it_is_needed(code, tmp_path):
    scheme = tmp_path / "s.json"
    scheme.write_text(lcma.schemes_db.formats.lcma_json.render(lcma.resolve("strassen")[0]))
    assert not HEAVY & modules_after(code.replace("SCHEME", str(scheme)))


def test_the_package_runs_as_a_module(tmp_path):
    run = subprocess.run([sys.executable, "-m", "lcma", "--version"], capture_output=True, text=True, cwd=tmp_path)
    assert run.stdout == f"lcma, version {lcma.__version__}\n"


@pytest.fixture(scope="session")
def wheel(tmp_path_factory, worker_id):
    """The wheel, built once for all processes of a run: two builds at once would share the tree's folder `build`."""
    base = tmp_path_factory.getbasetemp()
    folder = (base if worker_id == "master" else base.parent) / "dist"
    with Path(f"{folder}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not list(folder.glob("*.whl")):
            command = [sys.executable, "-m", "build", "--wheel", "--outdir", str(folder), str(ROOT)]
            subprocess.run(command, check=True, capture_output=True)
    (found,) = folder.glob("*.whl")
    return found


def install(python, *requirements):
    options = ["-q", "--no-compile", "-c", str(ROOT / "constraints.txt")]
    subprocess.run([python, "-m", "pip", "install", *options, *requirements], check=True)


def make_venv(folder, *requirements):
    subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
    python = folder / "bin" / "python"
    for requirement in requirements:
        install(python, requirement)
    return python


def runner(python, folder):
    """run(*command): a command of the environment in a folder, with a home of its own; what it returned and wrote."""
    environment = {**os.environ, "LCMA_HOME": str(folder / "home"), "HF_HUB_OFFLINE": "1"}

    def run(program, *arguments):
        command = [python.parent / program, *arguments]
        return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)

    return run


def expected_files():
    """The tracked files that belong in the wheel."""
    tracked = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
    packages = {name.replace(".", "/").removeprefix("lcma").lstrip("/") for name in folders_on_disk()}
    parents = {name: str(Path(name).parent).replace(".", "", 1).lstrip("/") for name in tracked if name.endswith(".py")}
    modules = {name for name, parent in parents.items() if parent in packages}
    return modules | {name for name in tracked if name.startswith(DATA_FOLDERS)} | {"py.typed"}


@pytest.mark.slow
def test_the_wheel_holds_the_tree_and_runs_elsewhere_without_and_with_the_extra_of_reports(tmp_path, wheel):
    import numpy as np

    names = zipfile.ZipFile(wheel).namelist()
    assert {name.split("/")[0].split("-")[0] for name in names} == {"lcma"}
    assert {name.removeprefix("lcma/") for name in names if name.startswith("lcma/")} == expected_files()
    python = make_venv(tmp_path / "venv", str(wheel))
    run = runner(python, tmp_path)
    np.save(tmp_path / "A.npy", np.eye(8))
    product = ["run", "strassen", "A.npy", "A.npy", "--out", "C.npy"]
    for arguments in (["--version"], ["list"], ["doctor"], ["show", "eca-stage1"], product):
        assert (ran := run("lcma", *arguments)).returncode == 0, ran.stderr
    code = (
        "import lcma, numpy as np\na = np.arange(36.0).reshape(6, 6)\n"
        "assert np.allclose(lcma.matmul(a, a, 'laderman'), a @ a)\nprint(lcma.__file__)"
    )
    assert str(tmp_path / "venv") in run("python", "-c", code).stdout
    refused = run("lcma", "site", "out")
    assert (refused.returncode, refused.stdout) == (3, "")
    assert "pip install 'lcma[report]'" in refused.stderr
    install(python, f"lcma[report] @ {wheel.as_uri()}")
    assert (ran := run("lcma", "site", "out")).returncode == 0, ran.stderr
    assert "No module named 'torch'" in run("python", "-c", "import torch").stderr


ACCELERATED = """
from transformers import GPT2Config, GPT2LMHeadModel

llama = LlamaConfig(vocab_size=64, hidden_size=2048, intermediate_size=4096, num_hidden_layers=1,
                    num_attention_heads=16, num_key_value_heads=16, max_position_embeddings=32)
gpt2 = GPT2Config(vocab_size=64, n_embd=2048, n_layer=1, n_head=16, n_positions=32)
config = lcma.AccelerateConfig(rows=(8192,), device="cuda")  # planned for the GPU, run here
tokens = torch.arange(8)[None]
for model, fast, left in ((LlamaForCausalLM(llama).eval(), 7, 1), (GPT2LMHeadModel(gpt2).eval(), 4, 1)):
    wanted, names = model(tokens).logits, list(model.state_dict())
    reports = lcma.accelerate_(model, config)
    changed = [name for name, module in model.named_modules() if type(module).__name__ in ("FastLinear", "FastConv1D")]
    assert changed == [one.name for one in reports if one.refused is None]
    assert (len(changed), len(reports) - len(changed)) == (fast, left), reports
    assert list(model.state_dict()) == names
    torch.testing.assert_close(model(tokens).logits, wanted, rtol=1e-3, atol=1e-3)
    assert lcma.restore_(model) == fast
    assert torch.equal(model(tokens).logits, wanted)
assert any("tied" in (one.refused or "") for one in reports)  # GPT-2's head is its embedding
"""


@pytest.mark.slow
def test_the_wheel_with_torch_then_beside_hugging_face_kernels_and_transformers(tmp_path, wheel):
    # torch first and alone, as constraints.txt says
    python = make_venv(tmp_path / "venv", "torch", f"lcma[torch] @ {wheel.as_uri()}")
    run = runner(python, tmp_path)
    assert (ran := run("lcma", "time", "strassen", "64", "--rounds", "1")).returncode == 0, ran.stderr
    install(python, "transformers", "kernels")
    code = (
        "import kernels, lcma, torch, transformers\n"
        "from transformers import LlamaConfig, LlamaForCausalLM\n"
        "config = LlamaConfig(vocab_size=64, hidden_size=32, intermediate_size=64, num_hidden_layers=1,\n"
        "                     num_attention_heads=2, num_key_value_heads=2, max_position_embeddings=32)\n"
        "logits = LlamaForCausalLM(config)(torch.arange(8)[None]).logits\n"
        "assert logits.shape == (1, 8, 64) and torch.isfinite(logits).all()\n"
        "assert 'lcma' not in kernels.__file__\n"
        "import numpy as np\n"
        "a = np.arange(16.0).reshape(4, 4)\n"
        "assert np.allclose(lcma.matmul(a, a), a @ a)\n"
    ) + ACCELERATED
    assert (ran := run("python", "-c", code)).returncode == 0, ran.stderr


def test_the_citation_file_is_of_this_version():
    text = (ROOT / "CITATION.cff").read_text()
    assert f"\nversion: {lcma.__version__}\n" in text
    assert text.startswith("cff-version: 1.2.0\n")
    assert f"\nlicense: {project()['project']['license']}\n" in text
