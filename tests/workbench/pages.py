"""Pages as tests read them: HTML strictly, and the tables of Markdown."""

from html.parser import HTMLParser

VOID = {"meta", "link", "input", "br", "img", "hr"}


class Page(HTMLParser):
    """A strict reader: every element is closed in order, attributes and ids occur once."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.open, self.ids, self.links, self.tags, self.text, self.labels = [], [], [], [], "", set()
        self.feed(text)
        self.close()
        assert not self.open

    @classmethod
    def at(cls, path):
        return cls(path.read_text("utf-8"))

    def handle_starttag(self, tag, attrs):
        names = [name for name, _ in attrs]
        assert len(names) == len(set(names)), (tag, names)
        values = dict(attrs)
        # A title inside a picture is not the page's.
        self.tags.append(("tip" if tag == "title" and self.open[-1] in ("rect", "a") else tag, values))
        self.ids += [values["id"]] if "id" in values else []
        self.labels |= {values["for"]} if "for" in values else set()
        self.links += [values[name] for name in ("href", "src") if name in values]
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data

    def of(self, tag):
        return [values for name, values in self.tags if name == tag]


def table(page, columns):
    """The rows of a Markdown page's tables of so many columns, heads among them."""
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in page.splitlines() if line.startswith("| ")]
    return [row for row in rows if len(row) == columns and row[0] != "---"]
