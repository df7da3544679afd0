"""The templates in ``page/``, the only place with HTML. Whatever is put into them is escaped there."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined


def render(name: str, **values: Any) -> str:
    """Fill a template in; a name that it needs and does not get is an error."""
    return _environment().get_template(f"{name}.html.jinja").render(values)


@cache
def _environment() -> Environment:
    found = Environment(
        loader=PackageLoader("graphfield.report", "page"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    found.globals["source"] = _source
    return found


def _source(name: str) -> str:
    """A style sheet or script as it is: it is no template, whatever brackets it has."""
    return (files("graphfield.report") / "page" / name).read_text(encoding="utf-8")
