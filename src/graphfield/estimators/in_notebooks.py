"""A model shows itself in a notebook."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from sklearn.utils.validation import check_is_fitted

# The page stands above the estimators: it is asked for by name, when a notebook wants it.
_NOTEBOOK = "graphfield.report.notebook"


class InNotebooks:
    """What a notebook shows of a fitted model: sentences and its strongest edges, or its whole page."""

    def explore(self, Z: Any = None, *, height: int = 900, **parts: Any) -> Any:
        """The report page of this model in a cell of a notebook (``graphfield.report.explore``)."""
        check_is_fitted(self)
        return import_module(_NOTEBOOK).explore(self, Z, height=height, **parts)

    def _repr_html_(self) -> str | None:
        return self._repr_mimebundle_().get("text/html")  # without one, a notebook shows the text

    def _repr_mimebundle_(self, **_kwargs: Any) -> dict[str, str]:
        """Its text and, once it is fitted, what it found."""
        found = {"text/plain": repr(self)}
        if hasattr(self, "field_"):
            found["text/html"] = import_module(_NOTEBOOK).describe_in_html(self)
        return found
