"""make html: one page has all of the manual, and each of its links leads somewhere in it."""

import html.parser
import pathlib
import re
import subprocess
import sys

import pytest

pytestmark = [pytest.mark.once, pytest.mark.xdist_group("manual")]  # the page is made once
TOP = pathlib.Path(__file__).resolve().parents[2]
EMPTY = {"meta", "link", "img", "br", "hr", "col", "input", "wbr"}


class Reader(html.parser.HTMLParser):
    """The ids, the links and the headings; elements have to be closed in order."""

    def __init__(self):
        super().__init__()
        self.ids, self.links, self.open, self.title = [], [], [], ""

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        if "id" in attrs:
            self.ids.append(attrs["id"])
        if tag == "a" and "href" in attrs:
            self.links.append(attrs["href"])
        if tag not in EMPTY:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert tag in EMPTY or self.open.pop() == tag


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    path = tmp_path_factory.mktemp("manual") / "manual.html"
    subprocess.run([sys.executable, TOP / "conf" / "manual.py", path], check=True)
    return path.read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def reader(made):
    found = Reader()
    found.feed(made)
    assert found.open == []
    return found


def test_each_page_is_in_it_once(reader):
    for page in [*TOP.glob("docs/**/*.md"), TOP / "README.md", *TOP.glob("docs/man/*.[0-9]")]:
        name = str(page.relative_to(TOP))
        if not name.startswith("docs/results/") and name != "docs/man/pagewise.conf.5":  # its pages are there
            slug = re.sub(r"[^a-z0-9]+", "-", re.sub(r"^docs/(?!README)|\.md$", "", name).lower())
            assert reader.ids.count(slug) == 1, name


def test_each_link_leads_to_a_place_of_the_page_or_to_the_web(reader):
    ids = set(reader.ids)
    assert len(reader.links) > 500
    for link in reader.links:
        assert link[1:] in ids if link.startswith("#") else re.match(r"https?://|mailto:", link), link


def test_it_needs_no_other_file(made):
    assert not re.search(r"<(?:script|link|iframe)\b|src=\"(?!data:)", made)


def test_index_has_each_key_field_metric_and_message(made):
    index = made[made.index('<section id="index">'):]
    assert made.count('<section id="index">') == 1
    kinds = dict(re.findall(r"<h2>([^<]*)</h2>\n<ul>\n(.*?)</ul>", index, re.S))
    assert list(kinds) == ["Keys", "Fields of the access log", "Metrics", "Messages"]
    names = {kind: re.findall(r"<code>(.*?)</code>", text) for kind, text in kinds.items()}
    for kind, found in names.items():
        assert found == sorted(set(found), key=str.lower), kind
    keys = set()
    for page in TOP.glob("docs/reference/conf-*.md"):
        keys |= set(re.findall(r"^## `(\w+)`$", page.read_text(encoding="utf-8"), re.M))
    assert set(names["Keys"]) == keys and "send_path" in keys
    assert {"disk_wait_us", "tls_client", "target"} <= set(names["Fields of the access log"])
    metrics = (TOP / "docs/reference/metrics.md").read_text(encoding="utf-8")
    assert set(names["Metrics"]) == set(re.findall(r"^\| `((?:pagewise|process)_\w+)[`{]", metrics, re.M))
    assert len(names["Metrics"]) > 40 and len(names["Messages"]) > 5
