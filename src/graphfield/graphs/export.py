"""One graph to networkx and to files, with the names of its nodes."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pandas as pd
from numpy.typing import NDArray

from graphfield.exceptions import DataError, ParameterError, check_choice, check_package
from graphfield.folders import write_file
from graphfield.messages import Message

FORMATS = ("csv", "parquet", "graphml", "json")
# Control characters but for tab and line ends, halves of characters, and two that are none.
_NOT_IN_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")


def to_networkx(
    graph: NDArray[np.bool_],
    partial: NDArray,
    names: Sequence[str],
    attributes: Mapping[str, Any] | None = None,
    *,
    kinds: Sequence[str] | None = None,
    signless: Sequence[bool] | None = None,
) -> nx.Graph:
    """Undirected graph with every node, and ``weight`` and ``partial_correlation`` on its edges.

    ``weight`` is the size of the partial correlation: the algorithms of networkx that use weights
    want them non-negative. Nodes have their ``kind`` where there are ``kinds``, and edges ``signed``, which
    is not so for those of ``signless`` nodes, where there are any.
    """
    result = nx.Graph(**dict(attributes or {}))
    result.add_nodes_from(names)
    if kinds is not None:
        nx.set_node_attributes(result, dict(zip(names, kinds, strict=True)), "kind")
    for j, k in zip(*np.nonzero(np.triu(graph, 1)), strict=True):
        value = float(partial[j, k])
        result.add_edge(names[j], names[k], weight=abs(value), partial_correlation=value)
        if signless is not None and any(signless):
            result.edges[names[j], names[k]]["signed"] = not (signless[j] or signless[k])
    return result


def edge_frame(graph: nx.Graph) -> pd.DataFrame:
    """``source, target, weight, partial_correlation`` and what else edges carry, strongest edge first."""
    lines = [{"source": a, "target": b, **d} for a, b, d in graph.edges(data=True)]
    first = ["source", "target", "weight", "partial_correlation"]
    others = dict.fromkeys(name for line in lines for name in line if name not in first)
    frame = pd.DataFrame(lines, columns=[*first, *others])
    return frame.sort_values("weight", ascending=False, kind="stable", ignore_index=True)


def graph_text(graph: nx.Graph, format: str, *, digits: int | None = None) -> str:
    """The graph as text: ``csv`` (with so many significant digits), ``json`` (node-link) or ``graphml``."""
    check_choice("format", format, FORMATS)
    if format == "csv":
        return edge_frame(graph).to_csv(index=False, float_format=None if digits is None else f"%.{digits}g")
    if format == "json":
        return json.dumps(nx.node_link_data(graph, edges="edges"), indent=1, allow_nan=False) + "\n"
    if format == "graphml":
        _check_xml(graph)
        buffer = io.BytesIO()
        nx.write_graphml(graph, buffer)
        return buffer.getvalue().decode("utf-8")
    raise ParameterError(
        "parquet is a binary format: {file}, or choose csv.",
        file=Message("write it with write_graph", code="name-file"),
    ).about(argument="format")


def _check_xml(graph: nx.Graph) -> None:
    """Names and attributes must be characters that XML has: a file with others can be read by nobody."""
    texts = [*graph.nodes, *graph.graph, *graph.graph.values()]
    for text in (text for text in texts if isinstance(text, str)):
        found = _NOT_IN_XML.search(text)
        if found:
            raise DataError(
                f"GraphML cannot hold the character {found.group()!r} of {text!r}. Rename it, or choose the "
                "format csv or json."
            ).about(argument="format")


def write_graph(graph: nx.Graph, path: str | Path, format: str | None = None) -> Path:
    """Write one graph; the format follows the file's ending unless it is given."""
    path = Path(path)
    format = check_format(path, format)
    content = parquet_bytes(edge_frame(graph)) if format == "parquet" else graph_text(graph, format).encode()
    return write_file(path, content, overwrite=True)


def parquet_bytes(frame: pd.DataFrame) -> bytes:
    """``frame.to_parquet`` with a message that says how to get the engine."""
    check_package("pyarrow", "parquet", "A Parquet file")
    buffer = io.BytesIO()
    frame.to_parquet(buffer, index=False)
    return buffer.getvalue()


def check_format(path: Path, format: str | None = None) -> str:
    """The format of a file, by its ending unless it is given; raises where it cannot be written here."""
    format = format or path.suffix.lstrip(".").lower()
    if format not in FORMATS:
        raise ParameterError(
            f"The ending of {path.name!r} names no known format. Use one of .csv, .parquet, "
            ".graphml, .json, or pass the format."
        ).about(argument="format")
    if format == "parquet":
        check_package("pyarrow", "parquet", "A Parquet file")
    return format
