"""Tables for people: the same lines as Markdown, as a page and in the shell."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from graphfield.folders import write_file
from graphfield.templates import render

_COLUMN = 15


@dataclass(frozen=True)
class Line:
    """A printed line: label, one text per column, and whether it opens a method or belongs to one."""

    label: str
    cells: list[str]
    kind: str  # "ours", "published", "difference" or "heading"


@dataclass(frozen=True)
class Section:
    """One table of a sheet."""

    title: str
    columns: list[str]
    lines: list[Line]


@dataclass(frozen=True)
class Sheet:
    """Tables with the command that makes them, notes above and a line below; perhaps a picture (PNG)."""

    name: str
    title: str
    command: str
    notes: list[str]
    sections: list[Section]
    footer: str
    picture: bytes | None = None

    def markdown(self) -> str:
        parts = [f"# {self.title}", "", f"`{self.command}`", ""]
        parts += [f"- {note}".replace("- *:", "- `*`:") for note in self.notes] + [""]
        parts += [f"![{self.title}]({self.name}.png)", ""] if self.picture else []
        for section in self.sections:
            parts += [f"## {section.title}", "", f"| | {' | '.join(section.columns)} |"]
            parts.append("| --- |" + " --- |" * len(section.columns))
            for line in section.lines:
                label = {"ours": line.label, "heading": f"**{line.label}**"}.get(line.kind, f"_{line.label}_")
                parts.append(f"| {label} | {' | '.join(line.cells)} |")
            parts.append("")
        return "\n".join([*parts, self.footer, ""])

    def html(self) -> str:
        """One self-contained page."""
        picture = base64.b64encode(self.picture or b"").decode()
        return render("graphfield.experiments", "table", sheet=self, picture=picture)

    def shell_lines(self) -> Iterator[str]:
        yield f"\n{self.title}"
        for section in self.sections:
            labels = [x.label if x.kind in ("ours", "heading") else f"    {x.label}" for x in section.lines]
            width = max(len(label) for label in [*labels, section.title])
            column = max([_COLUMN, *(len(title) + 2 for title in section.columns)])
            rows = [(section.title, section.columns)]
            rows += zip(labels, [line.cells for line in section.lines], strict=True)
            yield ""
            for label, cells in rows:
                yield (f"{label:{width}s}" + "".join(f"{cell:>{column}s}" for cell in cells)).rstrip()
        yield ""

    def write(self, out: Path) -> None:
        """``OUT/NAME.md`` and ``.html``, and ``.png`` where there is a picture."""
        files = {"md": self.markdown().encode(), "html": self.html().encode()}
        for ending, content in (files | ({"png": self.picture} if self.picture else {})).items():
            write_file(out / f"{self.name}.{ending}", content, overwrite=True)
