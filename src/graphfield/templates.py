"""Templates, the only places with HTML. Whatever is put into them is escaped there."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined


def render(package: str, name: str, **values: Any) -> str:
    """Fill in ``NAME.html.jinja`` from the folder ``page`` of a package; a name that it lacks is an error."""
    return _environment(package).get_template(f"{name}.html.jinja").render(values)


@cache
def _environment(package: str) -> Environment:
    found = Environment(
        loader=PackageLoader(package, "page"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )

    def source(name: str) -> str:
        """A style sheet or script as it is: it is no template, whatever brackets it has."""
        return (files(package) / "page" / name).read_text(encoding="utf-8")

    found.globals["source"] = source
    return found
