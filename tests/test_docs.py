"""The check of the site finds what leads nowhere."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.fixture
def dead_links(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "docs"))
    from check_links import dead_links

    yield dead_links
    sys.modules.pop("check_links")


def test_dead_links_are_found(dead_links, tmp_path):
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "b.html").write_text(
        '<h1 id="here">b</h1><a href="../a.html">a</a>', encoding="utf-8"
    )
    links = [
        "sub/b.html",
        "sub/b.html#here",
        "#top",
        "",
        "https://example.org/none",
        "mailto:nobody@example.org",
    ]
    lost = ["sub/c.html", "sub/b.html#there", "picture.png", "#nowhere"]
    text = "".join(f'<a href="{link}">x</a>' for link in links + lost)
    (tmp_path / "a.html").write_text(text, encoding="utf-8")
    dead, followed, elsewhere = dead_links(tmp_path)
    assert dead == [f"a.html: {link}" for link in lost]
    assert (followed, elsewhere) == (8, 1)
