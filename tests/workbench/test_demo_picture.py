"""The picture of `lcma demo`; the whole command is tested with the others of the command line."""

from xml.etree import ElementTree

from lcma.workbench.demo_picture import draw


def test_a_bar_a_contender_with_hostile_names():
    text = draw([("title <&>", {"numpy": 1.0, "<b>": 1.25}), ("second", {"x": 0.5})])
    root = ElementTree.fromstring(text)
    bars = [one for one in root.iter("{http://www.w3.org/2000/svg}rect") if one.get("x")]
    assert [round(float(bar.get("width")) / float(bars[0].get("width")), 2) for bar in bars] == [1, 1.25, 0.5]
    assert "&lt;b&gt;" in text
