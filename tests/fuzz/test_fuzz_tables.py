"""Hundreds of tables in random spellings, and hundreds of damaged files: equal tables or typed errors."""

from __future__ import annotations

import io
import resource
import sys
from collections import Counter

import numpy as np
import pandas as pd
import pytest

import graphfield as gf
from table_files import ENCODINGS, PACKERS, SEPARATORS, as_text, example

pytestmark = pytest.mark.fuzz
WRITTEN, DAMAGED = 500, 400
# Bytes by which the memory of the process may grow over all files.
MEMORY = 400_000_000
NAMES = ["a", "größe", "x y", "node 1", "#id", "1", "Länge (cm)", "a;b", "p,q", "t\tu", "b|c", '"q"', "É"]
WORDS = ["Köln", "a, b", "x; y", "p|q", "tab\there", 'say "no"', "none left", "München", "0x1F", "1a", "v1.5"]


def peak_memory() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def random_column(rng: np.random.Generator, n_rows: int) -> list:
    kind = rng.integers(6)
    if kind == 0:
        return rng.normal(size=n_rows).tolist()
    if kind == 1:
        return (rng.normal(size=n_rows) * 10.0 ** rng.integers(-250, 250, n_rows)).tolist()
    if kind == 2:
        return rng.integers(-(10**6), 10**6, n_rows).tolist()
    if kind == 3:
        return rng.normal(size=n_rows).round(int(rng.integers(1, 5))).tolist()
    if kind == 4:
        days = pd.Timestamp("1990-01-01") + pd.to_timedelta(rng.integers(0, 20_000, n_rows), unit="D")
        return days.strftime("%d.%m.%Y").tolist()
    return rng.choice(WORDS, n_rows).tolist()


def random_table(rng: np.random.Generator) -> pd.DataFrame:
    n_rows, n_columns = int(rng.integers(2, 40)), int(rng.integers(2, 7))
    names = rng.choice(NAMES, n_columns, replace=False)
    table = pd.DataFrame({str(name): random_column(rng, n_rows) for name in names})
    # A number beside the rest, so that a table is never text alone, of which any mark may be part
    table["number"] = rng.normal(size=n_rows)
    gaps = rng.random(table.shape) < rng.choice([0.0, 0.1])
    gaps[0] = False
    return table.mask(gaps)


def spelling(rng: np.random.Generator) -> dict[str, str]:
    return {
        "sep": str(rng.choice(SEPARATORS)),
        "decimal": str(rng.choice([".", ","])),
        "encoding": str(rng.choice(ENCODINGS)),
        "end": str(rng.choice(["\n", "\r\n"])),
    }


def dressed(rng: np.random.Generator, text: str, sep: str, n_columns: int) -> str:
    """Text with what people and spreadsheets put around a table."""
    choice = rng.integers(6)
    if choice == 0:
        return f"# exported\n#\n{text}"
    if choice == 1:
        return f"sep={sep}\n{text}"
    if choice == 2:
        return f"A title\n\n{text}"
    if choice == 3:
        return text + (sep * (n_columns - 1) + "\n") * 3 + "\n"
    return text


def test_tables_in_random_spellings_are_read_to_the_bit(tmp_path):
    start, asked, seen = peak_memory(), 0, Counter()
    for seed in range(WRITTEN):
        rng = np.random.default_rng([1, seed])
        table, how = random_table(rng), spelling(rng)
        text = as_text(table, how["sep"], how["decimal"], "utf-8", how["end"]).decode()
        text = dressed(rng, text, how["sep"], table.shape[1])
        ending = str(rng.choice(list(PACKERS)))
        path = tmp_path / f"t.csv{ending}"
        path.write_bytes(PACKERS[ending](text.encode(how["encoding"])))
        seen.update(how.values())
        try:
            read = gf.read_table(path)
        except gf.DataError as error:
            if "Say" not in str(error):
                pytest.fail(f"seed {seed}, {how}: {error}")
            asked += 1
            continue
        pd.testing.assert_frame_equal(
            read, table, check_dtype=False, check_exact=True, obj=f"the table of seed {seed}, {how}"
        )
    assert asked <= WRITTEN // 20, f"{asked} tables were asked about"
    assert {*SEPARATORS, *ENCODINGS} <= set(seen)
    assert peak_memory() - start < MEMORY


def whole_files(rng: np.random.Generator) -> dict[str, bytes]:
    """A table in every container that can be written here."""
    table = example(rng)
    files = {f"t.csv{ending}": pack(as_text(table, ";", ",")) for ending, pack in PACKERS.items()}
    files["u.csv"] = as_text(table, encoding="utf-16")
    archive = io.BytesIO()
    np.savez_compressed(
        archive, X=table[["b", "count"]].to_numpy(), X_names=["b", "count"], site=table["site"].to_numpy(str)
    )
    files["t.npz"] = archive.getvalue()
    for package, ending in (("pyarrow", "parquet"), ("pyarrow", "feather"), ("openpyxl", "xlsx")):
        try:
            __import__(package)
        except ImportError:
            continue
        file = io.BytesIO()
        writer = table.to_excel if ending == "xlsx" else getattr(table, f"to_{ending}")
        writer(file, index=False) if ending == "xlsx" else writer(file)
        files[f"t.{ending}"] = file.getvalue()
    return files


def damaged(rng: np.random.Generator, content: bytes) -> bytes:
    broken = bytearray(content)
    choice = rng.integers(4)
    if choice == 0:
        return bytes(broken[: rng.integers(1, len(broken))])
    if choice == 1:
        for place in rng.integers(0, len(broken), rng.integers(1, 20)):
            broken[place] = rng.integers(256)
        return bytes(broken)
    first, last = np.sort(rng.integers(0, len(broken), 2))
    if choice == 2:
        return bytes(broken[:first] + broken[last:])
    return bytes(broken[:last] + rng.bytes(int(rng.integers(1, 50))) + broken[first:])


@pytest.mark.filterwarnings("ignore")
def test_damaged_files_are_tables_or_typed_errors(tmp_path):
    start, outcome = peak_memory(), Counter()
    files = whole_files(np.random.default_rng(2))
    for seed in range(DAMAGED):
        rng = np.random.default_rng([3, seed])
        name = str(rng.choice(list(files)))
        path = tmp_path / name
        path.write_bytes(damaged(rng, files[name]))
        try:
            table = gf.read_table(path)
        except gf.GraphfieldError:
            outcome["error"] += 1
            continue
        except Exception as error:  # noqa: BLE001
            pytest.fail(f"seed {seed}, {name}: {type(error).__name__}: {error}")
        assert isinstance(table, pd.DataFrame)
        assert table.size
        outcome["table"] += 1
    assert outcome["error"] > DAMAGED // 3
    assert outcome["table"] > 0
    assert peak_memory() - start < MEMORY
