"""The one reading of a content, the report on it, and that of one that must hold."""

from pathlib import Path

from lcma.schemes_db.formats import parse_bytes, read_file
from lcma.verify import judge


def reading_of(content, **options):
    """What a text, bytes or the file of a path hold; options are those of reading it."""
    if isinstance(content, Path):
        (reading,) = read_file(content, **options)
    else:
        (reading,) = parse_bytes(content.encode() if isinstance(content, str) else content, **options)
    return reading


def report_of(content, over=None, **options):
    """The report on a content, judged over a ring."""
    return judge(reading_of(content, **options), "file", ring=over)


def proven(content, over=None, **options):
    """The report on a content that holds."""
    report = report_of(content, over, **options)
    assert report.ok, report.headline()
    return report
