"""Offer a catalogue finds at a steady rate from several processes, half of them duplicates, and measure each write.

    python tests/schemes_db/load_catalogue.py --processes 8 --rate 200 --seconds 60

prints the latencies, from the moment a find was due to the moment the catalogue had it, and ends with 1 where the 99th
percentile is above --bar seconds, or a find is lost or stored twice.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

import lcma
from lcma.schemes_db.constructions import change_of_basis

LEAD = 1.0
"""Seconds between the last process's report that it is ready and the first find."""


def schemes(first, count, step):
    """Every `step`-th of the endless family of <2x2x2:7> in the bases [[1, s], [0, 1]], certified."""
    one, strassen = [[1, 0], [0, 1]], lcma.resolve("strassen")[0]
    for shear in range(first, first + count * step, step):
        scheme = change_of_basis(strassen, [[1, shear], [0, 1]], one, one)
        yield scheme, lcma.certify(scheme)


def offer(path, number, processes, finds, interval):
    """One process: it prints for each of its finds, when it is kept, the digest, whether it was new, and its latency.

    Process n of 2 p offers what process n of the first p offers, so that each find comes twice, at about the same time.
    """
    pairs = max(1, processes // 2)
    mine = list(schemes(1 + number % pairs, finds, pairs))
    with lcma.Catalog.open(path) as catalog:
        print("ready", flush=True)
        begin = float(sys.stdin.readline())
        for place, (scheme, certificate) in enumerate(mine):
            due = begin + (place + number / processes) * interval
            time.sleep(max(0.0, due - time.time()))
            fresh = catalog.add(scheme, certificate)
            print(json.dumps((scheme.digest, fresh, time.time() - due)), flush=True)


def started(path, processes, finds, interval, numbers):
    """The processes of these numbers, which begin together."""
    lcma.Catalog.open(path).close()
    command = [sys.executable, __file__, "--path", str(path), "--processes", str(processes)]
    command += ["--finds", str(finds), "--interval", str(interval), "--number"]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    runs = [subprocess.Popen([*command, str(number)], **pipes) for number in numbers]
    if any(run.stdout.readline() != "ready\n" for run in runs):
        raise RuntimeError("a process did not start")
    begin = time.time() + LEAD
    for run in runs:
        run.stdin.write(f"{begin}\n")
        run.stdin.flush()
    return runs


def loaded(path, processes, rate, seconds):
    """(latencies, digests offered, digests said to be new) of `processes` that offer `rate` finds a second in all."""
    runs = started(path, processes, int(rate * seconds / processes), processes / rate, range(processes))
    rows = [json.loads(line) for run in runs for line in run.communicate()[0].splitlines()]
    return np.array([row[2] for row in rows]), [row[0] for row in rows], [row[0] for row in rows if row[1]]


def lost_and_doubled(path, offered, fresh):
    """Return the number of offered finds that the catalogue lacks, and of those added more than once."""
    with lcma.Catalog.open(path) as catalog:
        entries = [entry.digest for entry in catalog.entries(origin="user")]
    return len(set(offered) - set(entries)), len(fresh) - len(set(fresh)) + len(entries) - len(set(entries))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--processes", type=int, default=8)
    parser.add_argument("--rate", type=float, default=200.0, help="finds a second, of all processes together")
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--bar", type=float, default=1.0, help="seconds that the 99th percentile may take")
    for name, kind in (("--path", Path), ("--number", int), ("--finds", int), ("--interval", float)):
        parser.add_argument(name, type=kind, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.number is not None:
        offer(given.path, given.number, given.processes, given.finds, given.interval)
        return 0
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "catalog.db"
        latencies, offered, fresh = loaded(path, given.processes, given.rate, given.seconds)
        lost, doubled = lost_and_doubled(path, offered, fresh)
    half, most, worst = np.percentile(latencies, (50, 99, 100))
    counts = f"{len(offered)} finds offered, {len(set(offered))} different, {len(fresh)} new"
    print(f"{counts}; {lost} lost, {doubled} doubled")
    print(f"seconds a write: median {half:.4f}, 99% {most:.4f}, worst {worst:.4f}; bar of 99%: {given.bar:g}")
    return int(bool(lost or doubled) or most > given.bar)


if __name__ == "__main__":
    sys.exit(main())
