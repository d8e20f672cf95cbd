"""The core of the benchmarks: cases, rows on disk, budgets, bars; with suites made here."""

import itertools
import json
from dataclasses import replace
from pkgutil import iter_modules
from types import SimpleNamespace

import pytest

from lcma.errors import PlanError, SchemeFormatError, VerificationError
from lcma.kernels import Request, decision_for, machine_for, strategies
from lcma.kernels.cuda import clock
from lcma.kernels.planning.planner import decide
from lcma.workbench.bench import hand_loop, machine, runner, suites
from lcma.workbench.bench.case import Bar, Case, Options, Suite
from lcma.workbench.bench.contest import Contest, CpuClock, FlushedClock, paired_interval, within
from lcma.workbench.bench.gpu_layers import layer_cases, vendor_seconds
from lcma.workbench.bench.journal import Journal
from lcma.workbench.bench.machine import code_hash
from lcma.workbench.bench.suites import causal, cpu, search_gpu
from lcma.workbench.bench.suites.gpu import SPAN
from lcma.workbench.commands import bench


class Counted:
    """A suite of three rows that counts how often each was measured."""

    def __init__(self) -> None:
        self.runs: list[str] = []
        sources, nothing = ("schemes_db/ranks.py",), lambda rows, path: None
        self.suite = Suite("counted", "counts", self.cases, ("ratio",), sources, nothing)

    def cases(self, options: Options):
        for number in range(3):
            yield Case(f"row {number}", lambda say, n=number: self.measure(n), (Bar("ratio", 1.0),))

    def measure(self, number: int):
        self.runs.append(f"row {number}")
        if number == 2:
            raise PlanError("not here")
        return {"ratio": 0.5 + number}

    def run(self, journal, **options):
        cases = runner.chosen_cases(self.suite, Options(), options.pop("patterns", ()))
        return list(runner.run_cases(self.suite, cases, Options(), journal, **options))


@pytest.fixture
def counted(monkeypatch):
    # The suites' own files are in the hash; this one has none, so it borrows a name.
    monkeypatch.setattr(runner, "code_hash", lambda sources: code_hash(["schemes_db/ranks.py"]))
    counted = Counted()
    monkeypatch.setattr(bench, "find_suite", lambda name: counted.suite)
    return counted


def test_rows_add_up_over_runs(tmp_path, counted):
    journal = Journal(tmp_path / "rows.jsonl")
    first = counted.run(journal, budget=0.0)
    assert [row["key"] for row in first] == ["row 0"]
    rest = counted.run(journal, budget=12.0)
    assert [row["key"] for row in rest] == ["row 0", "row 1", "row 2"]
    assert counted.runs == ["row 0", "row 1", "row 2"]
    assert rest[0] == first[0]
    counted.run(journal, resume=False)
    assert counted.runs[3:] == ["row 0", "row 1", "row 2"]
    assert len(journal.rows()) == 4  # "row 2" cannot run here: told, not kept


def test_kernels_of_the_rows_to_come_are_asked_for_first(tmp_path, counted):
    def cases(options):
        return [
            replace(case, ahead=lambda key=case.key: counted.runs.append(f"ahead {key}"))
            for case in counted.cases(options)
        ]

    counted.suite = replace(counted.suite, cases=cases)
    journal, said = Journal(tmp_path / "rows.jsonl"), []
    counted.run(journal, patterns=("row 1",))
    counted.run(journal, say=said.append)
    assert counted.runs == ["ahead row 1", "row 1", "ahead row 0", "ahead row 2", "row 0", "row 2"]
    assert said[0] == "planning 2 rows"


def test_rows_of_other_code_are_measured_again(tmp_path, counted, monkeypatch):
    journal = Journal(tmp_path / "rows.jsonl")
    counted.run(journal, patterns=("row 1",))
    monkeypatch.setattr(runner, "code_hash", lambda sources: "another")
    counted.run(journal, patterns=("row 1",))
    assert counted.runs == ["row 1", "row 1"]


def test_bars_and_refusals(tmp_path, counted):
    journal = Journal(tmp_path / "rows.jsonl")
    low, high, refused = counted.run(journal)
    assert [row["key"] for row in journal.rows()] == [low["key"], high["key"]]
    assert low["bars"] == [["ratio >= 1", False]]
    assert high["bars"] == [["ratio >= 1", True]]
    assert refused["refused"] == "not here"
    assert refused["bars"] == []
    assert not Bar("ratio", 1.0).met({})
    assert Bar("bytes", 3, at_most=True).met({"bytes": 3})


def test_a_wrong_result_stops_the_suite(tmp_path, counted):
    def wrong(say):
        raise VerificationError("row 0 came out wrong")

    journal = Journal(tmp_path / "rows.jsonl")
    with pytest.raises(VerificationError):
        list(runner.run_cases(counted.suite, [Case("row 0", wrong)], Options(), journal))
    assert journal.rows() == []


def test_a_torn_last_line_is_dropped_and_a_bad_one_named(tmp_path):
    journal = Journal(tmp_path / "rows.jsonl")
    row = {"suite": "s", "key": "k", "code": "c"}
    journal.append(row)
    with journal.path.open("a") as stream:
        stream.write('{"suite": "s", "ke')
    assert journal.rows() == [row]
    journal.append(row)
    assert journal.rows() == [row, row]
    for lines in (["nonsense", json.dumps(row)], [json.dumps(row), "nonsense"]):  # the last one is not torn
        journal.path.write_text("".join(line + "\n" for line in lines))
        with pytest.raises(SchemeFormatError, match="not a row"):
            journal.rows()


def test_the_code_hash_sees_every_file_and_table(tmp_path, monkeypatch):
    monkeypatch.setattr(machine, "ROOT", tmp_path)
    (tmp_path / "a").mkdir()
    hashes = []
    for name, text in (("x.py", "1"), ("y.py", "1"), ("y.py", "2"), ("settings.csv", "a,b"), ("settings.csv", "a,c")):
        (tmp_path / "a" / name).write_text(text)
        hashes.append(code_hash(["a"]))
    assert len(set(hashes)) == 5
    assert code_hash(["a"]) == hashes[-1]


def test_rounds_begin_with_another_contender_each():
    calls = []
    timings = Contest({name: lambda name=name: calls.append(name) for name in "abc"}, 4).run()
    assert "".join(calls) == "abc" + "bca" + "cab" + "abc" + "bca"
    assert [len(timings[name].seconds) for name in "abc"] == [4, 4, 4]


def test_nothing_is_timed_before_every_result_is_right():
    called = []

    def call(name, result):
        return lambda: called.append(name) or result

    calls = {"a": call("a", 0.5), "b": call("b", 2.0)}
    with pytest.raises(VerificationError, match=r"b came out wrong: error 2.0e\+00; nothing was timed"):
        Contest(calls, 3, judge=within(float, 1.0)).run()
    assert called == ["a", "b"]
    timings = Contest(calls, 1, judge=within(float, 3.0)).run()
    assert (timings.errors, called[2:]) == ({"a": 0.5, "b": 2.0}, ["a", "b", "a", "b", "b", "a"])


def test_a_suite_of_which_no_row_can_run_writes_nothing(run, tmp_path, counted):
    out = tmp_path / "results"
    text = run.said(3, "bench", "counted", "--rows", "row 2", "--out", out)
    told = ("row 2" in text, "no row of counted can run here: not here" in text, "data in" in text)
    assert told == (True, True, False)
    assert not out.exists()
    assert run("bench", "counted", "--out", out)[0] == 1
    assert {path.name for path in out.iterdir()} == {"counted-cpu.jsonl"}
    before = {path: path.read_bytes() for path in out.iterdir()}
    assert run("bench", "counted", "--rows", "row 2", "--out", out)[0] == 3
    assert {path: path.read_bytes() for path in out.iterdir()} == before


def test_no_row_is_begun_beyond_the_budget_of_the_command(run, tmp_path, counted):
    for number in range(3):
        row = {"suite": "counted", "key": f"row {number}", "code": "another", "seconds": 5.0}
        Journal(tmp_path / "counted-cpu.jsonl").append(row)
    listed = json.loads(run.ok("bench", "counted", "--out", tmp_path, "--json", "--dry-run"))
    assert [row["seconds"] for row in listed] == [5.0] * 3
    for budget, begun in (("1s", ["row 0"]), ("8m", ["row 0", "row 1", "row 2"])):
        run("bench", "counted", "--out", tmp_path, "--no-picture", "--budget", budget)
        assert counted.runs == begun


def test_the_picture_is_of_all_rows_that_are_stored(run, tmp_path, counted):
    picture = lambda rows, path: path.write_text(" ".join(row["key"] for row in rows))  # noqa: E731
    counted.suite = replace(counted.suite, picture=picture)
    for pattern, drawn in (("row 1", "row 1"), ("row 0", "row 1 row 0")):
        run("bench", "counted", "--rows", pattern, "--out", tmp_path)
        assert (tmp_path / "counted-cpu.svg").read_text() == drawn


def test_rounds_of_warming_up_with_a_flushed_cache_do_not_count(monkeypatch):
    torch = pytest.importorskip("torch")
    empty, seconds, calls = torch.empty, {"a": 0.0, "b": 100.0}, []
    monkeypatch.setattr(torch, "empty", lambda *_, **__: empty(1))

    def seconds_of(call):
        name = call()
        calls.append(name)
        seconds[name] += 1.0
        return seconds[name]

    monkeypatch.setattr(clock, "seconds_of", seconds_of)
    found = Contest({name: lambda name=name: name for name in "ab"}, 3, FlushedClock()).run()
    assert {name: timing.seconds for name, timing in found.items()} == {"a": (3, 4, 5), "b": (103, 104, 105)}
    assert "".join(calls) == "abbaabbaab"


def test_every_file_of_cases_is_of_a_suite():
    assert runner.suite_names() == sorted(info.name for info in iter_modules(suites.__path__))


@pytest.mark.parametrize("name", runner.suite_names())
def test_the_sources_of_a_suite_are_there(name):
    assert code_hash(runner.find_suite(name).sources)


def test_every_suite_names_its_rows(run):
    for name in runner.suite_names():
        run.ok("bench", name, "--dry-run")


@pytest.mark.parametrize("name", ["causal", "compress", "e2e", "e2e_blr", "e2e_ks", "falcon", "gpu", "precision"])
def test_rows_of_a_gpu_have_names_of_their_own_and_refuse_without_one(no_gpu, name):
    cases = list(runner.find_suite(name).cases(Options("cuda", sample=3)))
    assert len({case.key for case in cases}) == len(cases)
    for case in {case.key.split()[0]: case for case in cases}.values():
        for call in (case.ahead, lambda case=case: case.run(lambda line: None)):
            if call is not None:
                with pytest.raises(PlanError, match="sees no GPU"):
                    call()


def test_the_seconds_to_a_rank_are_those_of_the_first_find(monkeypatch):
    def found(target, on_event, **_):
        for seconds, finds in ((1.0, 0), (2.0, 1), (3.0, 2)):
            on_event(SimpleNamespace(seconds=seconds, finds=finds, line=""))

    monkeypatch.setattr(search_gpu, "find", found)
    assert search_gpu.search(Options(), "3x3x3", 23, 1, 5.0, lambda line: None) == (2.0, None)


class Counting:
    """A strategy that lists the requests it prices."""

    def __init__(self, strategy, priced):
        self._strategy, self._priced = strategy, priced

    def __getattr__(self, name):
        return getattr(self._strategy, name)

    def predict(self, *arguments):
        self._priced.append(arguments)
        return self._strategy.predict(*arguments)


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_a_cold_plan_prices_few_of_the_candidates(device):
    """For the shipped machines, at the sizes of row "planning"."""
    for size in cpu.NEW_SIZES[::40]:
        request, priced = Request(size, size, size, device=device), []
        counting = {key: Counting(strategy, priced) for key, strategy in strategies(device).items()}
        decision = decide(request, machine_for(request), counting)
        assert decision.plan.candidate == decision_for(request).plan.candidate
        assert 0 < len(priced) <= 64 + 1
        assert len(priced) < len(decision.proposals)


@pytest.mark.slow
@pytest.mark.parametrize("product", ["QK", "dV"])
def test_triangular_products_are_judged_and_timed(product, monkeypatch):
    figures = causal._timed(product, 64, 32, "float32", Options(rounds=2), lambda line: None)
    assert {*causal.PLAIN, "halving:strassen", "chosen"} <= figures["ratios"].keys()
    assert figures["ratios"]["chosen"] == figures["ratio"] > 0
    assert figures["baseline"] in causal.BASELINES
    errors = causal._product_error(product, 64, 32, Options(), lambda line: None)
    standard = errors["errors"].pop("standard")
    assert errors["ratio_of_errors"] == max(errors["errors"].values()) / standard > 0
    monkeypatch.setattr(causal, "_whole", lambda a, b, out, triangle: out.fill(0))
    with pytest.raises(VerificationError, match=r"full \+ tril came out wrong"):
        causal._timed(product, 64, 32, "float32", Options(rounds=2), lambda line: None)


def test_layers_in_tf32_are_drawn_from_products_of_a_millisecond_and_more():
    def sizes(dtype, **options):
        keys = [case.key.split() for case in layer_cases(Options(dtypes=(dtype,), **options), (), 12, span=SPAN)]
        return [tuple(map(int, key[-1].split("x"))) for key in keys]

    drawn = sizes("tf32", sample=24)
    assert len(drawn) == len(set(drawn)) == 24
    assert all(1e-3 <= vendor_seconds("tf32", one) <= 30e-3 for one in drawn)
    assert min(vendor_seconds("bfloat16", one) for one in sizes("bfloat16")) < 1e-3


class TableClock(CpuClock):
    """Seconds of two calls by turns of a table, in blocks of ten."""

    def __init__(self, seconds):
        super().__init__(10, lambda: None)
        self.times = {name: itertools.cycle(some) for name, some in seconds.items()}

    def seconds(self, call):
        return next(self.times[call()])


def compared(seconds):
    return hand_loop.compared({name: (lambda name=name: name) for name in seconds}, TableClock(seconds))


def test_what_scatters_little_is_compared_in_as_few_blocks_as_are_asked_for():
    vendor, ours = compared({"vendor": [0.02], "ours": [0.0201, 0.0199]})
    assert len(vendor.seconds) == len(ours.seconds) == hand_loop.DECIDED_BLOCKS


def test_what_scatters_is_compared_until_the_interval_is_narrow():
    scattered = [0.01 * (1 + 0.002 * (i % 21)) for i in range(0, 16 * 21, 16)]
    vendor, ours = compared({"vendor": [0.01], "ours": scattered})
    assert len(ours.seconds) > hand_loop.DECIDED_BLOCKS
    low, high = paired_interval(vendor, ours)
    assert high - low <= hand_loop.NARROW


@pytest.mark.parametrize("seconds", [0.5, 5.0])
def test_long_calls_are_not_compared_for_longer_than_a_minute_or_the_least_blocks(seconds):
    vendor, _ = compared({"vendor": [seconds], "ours": [seconds, 2 * seconds, seconds / 2]})
    assert len(vendor.seconds) == hand_loop.DECIDED_BLOCKS
