"""Do all links within the built site lead somewhere? python docs/check_links.py build/docs

Sphinx checks those that pages name as documents; this one checks what readers get: every link, picture and
script of every HTML file, anchors included. Addresses of other sites are counted, not
asked: no network is needed.
"""

from __future__ import annotations

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit


class Page(HTMLParser):
    """The links of a page and the anchors that others may name."""

    def __init__(self, file: Path) -> None:
        super().__init__()
        self.links: list[str] = []
        self.anchors: set[str] = set()
        self.feed(file.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:  # noqa: ARG002
        found = dict(attrs)
        self.links += [found[name] for name in ("href", "src") if found.get(name)]
        self.anchors |= {found[name] for name in ("id", "name") if found.get(name)}


def dead_links(site: Path) -> tuple[list[str], int, int]:
    """Links that lead nowhere, how many were followed, and how many lead to other sites."""
    files = [file for file in site.rglob("*.html") if "_static" not in file.parts]  # templates of the theme
    pages = {file.resolve(): Page(file) for file in sorted(files)}
    dead, followed, elsewhere = [], 0, 0
    for file, page in pages.items():
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                elsewhere += parts.scheme in ("http", "https")
                continue
            followed += 1
            target = (file.parent / unquote(parts.path)).resolve() if parts.path else file
            known = pages[target].anchors if target in pages else set()
            anchor = unquote(parts.fragment)
            lost = anchor and target.suffix == ".html" and anchor not in known and anchor != "top"
            if not target.exists() or (lost and not _is_drawn(target)):
                dead.append(f"{file.relative_to(site.resolve())}: {link}")
    return dead, followed, elsewhere


def _is_drawn(page: Path) -> bool:
    """A report page makes its sections in the browser."""
    return page.parent.name == "live"


def main() -> None:
    site = Path(sys.argv[1])
    dead, followed, elsewhere = dead_links(site)
    print("\n".join(dead), end="\n" if dead else "")
    print(f"{followed:,} links within the site, {len(dead)} of them dead; {elsewhere:,} to other sites.")
    sys.exit(bool(dead) or not followed)


if __name__ == "__main__":
    main()
