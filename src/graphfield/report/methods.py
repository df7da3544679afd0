"""The section of the page on several methods that were compared on the same rows."""

from __future__ import annotations

import base64
import math
from typing import Any

from graphfield.inference.method_comparison import MethodComparison
from graphfield.numbers import Gain
from graphfield.plots import plot_methods, png_bytes

_HEAD = [
    "Method",
    "Estimator",
    "Error below static",
    "Behind the first",
    "With one graph",
    "Movement of its graph",
    "Edges",
    "Seconds",
    "MB",
]
_DPI = 150


def methods_section(found: MethodComparison) -> dict[str, Any]:
    """Words, table and picture."""
    records = found.table[found.table["gain"].notna()].to_dict("records")
    body = [
        [
            line["method"],
            line["estimator"],
            str(Gain(line["gain"], line["standard_error"])),
            "" if line is records[0] else str(Gain(line["behind_first"], line["behind_error"])),
            "" if math.isnan(line["gain_one_graph"]) else f"{100 * line['gain_one_graph']:.1f} %",
            line["moves"],
            f"{line['n_edges']:.0f}",
            f"{line['seconds']:.2g}",
            "" if math.isnan(line["memory_mb"]) else f"{line['memory_mb']:.0f}",
        ]
        for line in records
    ]
    picture = png_bytes(plot_methods(found)[0].figure, _DPI)
    return {
        "ranking": found.ranking,
        "head": _HEAD,
        "body": body,
        "numbers": (2, 3, 4, 6, 7, 8),
        "picture": base64.b64encode(picture).decode(),
        "failed": [f"{one.name}: {one.why}" for one in found.failed],
    }
