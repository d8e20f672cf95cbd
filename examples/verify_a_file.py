"""For the one who has a coefficient file and wants to know what it proves."""

import tempfile
from pathlib import Path

import lcma

# Strassen's algorithm as a paper would print it; any format that `lcma verify` knows would do.
TEXT = """
m1 = (a11 + a22)(b11 + b22)
m2 = (a21 + a22) b11
m3 = a11 (b12 - b22)
m4 = a22 (b21 - b11)
m5 = (a11 + a12) b22
m6 = (a21 - a11)(b11 + b12)
m7 = (a12 - a22)(b21 + b22)
c11 = m1 + m4 - m5 + m7
c12 = m3 + m5
c21 = m2 + m4
c22 = m1 - m2 + m3 + m6
"""

with tempfile.TemporaryDirectory() as folder:
    path = Path(folder) / "strassen.txt"
    path.write_text(TEXT)
    (report,) = lcma.verify_file(path, methods=("exact", "randomized"))
    print(report.headline())
    print("the same scheme as the shipped one:", report.scheme == lcma.resolve("strassen")[0])

    path.write_text(TEXT.replace("c12 = m3 + m5", "c12 = m3 - m5"))
    (report,) = lcma.verify_file(path)
    print(report.headline())
