"""Text tables as people have them: the same bits from every spelling, and questions where there are two."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import graphfield as gf
from graphfield.data import room, sources
from graphfield.data.reading import ReadOptions
from graphfield.data.tables import read_file
from graphfield.data.text_tables import EXACT
from table_files import ENCODINGS, PACKERS, SEPARATORS, as_text, example


def write(folder: Path, content: bytes | str, name: str = "t.csv") -> Path:
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


@pytest.mark.parametrize("encoding", ENCODINGS)
@pytest.mark.parametrize("sep", SEPARATORS)
@pytest.mark.parametrize("decimal", [".", ","])
def test_every_spelling_gives_the_same_bits(tmp_path, sep, decimal, encoding):
    table = example(np.random.default_rng(0))
    path = write(tmp_path, as_text(table, sep, decimal, encoding, end="\r\n"))
    pd.testing.assert_frame_equal(gf.read_table(path), table, check_exact=True)


@pytest.mark.parametrize("ending", PACKERS)
def test_packed_text(tmp_path, ending):
    table = example(np.random.default_rng(1))
    path = write(tmp_path, PACKERS[ending](as_text(table, ";", ",")), f"t.csv{ending}")
    read = read_file(path, ReadOptions())
    pd.testing.assert_frame_equal(read.frame, table, check_exact=True)
    assert read.reading.words() == "semicolons, decimal commas"


def test_numbers_are_read_to_the_last_bit(tmp_path):
    rng = np.random.default_rng(2)
    numbers = rng.normal(size=3000) * 10.0 ** rng.integers(-300, 300, 3000)
    path = write(tmp_path, "a,b\n" + "".join(f"{value!r},1\n" for value in numbers.tolist()))
    np.testing.assert_array_equal(gf.read_table(path)["a"], numbers)
    version = tuple(int(part) for part in pd.__version__.split(".")[:2])
    assert (EXACT == {}) == (version >= (3, 1)), "from 3.1 on pandas is exact and warns of being told so"


@pytest.mark.parametrize(
    ("text", "frame", "words"),
    [
        ("a b\n1.5 3\n 2.5  4\n", {"a": [1.5, 2.5], "b": [3, 4]}, "spaces"),
        ('a,b\n"1,5",2\n"3,4",4\n', {"a": [1.5, 3.4], "b": [2, 4]}, "decimal commas"),
        ("sep=;\na;b\n1,5;2\n", {"a": [1.5], "b": [2]}, "1 line above the header"),
        ("# x\n# y, z\na;b\n1,5;2\n", {"a": [1.5], "b": [2]}, "2 lines above the header"),
        ("#a;b\n1,5;2\n", {"#a": [1.5], "b": [2]}, "semicolons, decimal commas"),
        ("Export 2020\n\na;b\n1,5;2\n3;4\n", {"a": [1.5, 3], "b": [2, 4]}, "2 lines above"),
        ("Export;;\na;b;\n1;2;\n;;\n;;\n", {"a": [1.0], "b": [2.0]}, "2 empty rows at the end"),
        ("a;b\n1;2;\n3;4;\n", {"a": [1, 3], "b": [2, 4]}, "semicolons"),
        (",a\n0,1.5\n1,2.5\n", {"Unnamed: 0": [0, 1], "a": [1.5, 2.5]}, ""),
        ('"a","b"\n"r1",1,2\n"r2",3,4\n', {"Unnamed: 0": ["r1", "r2"], "a": [1, 3], "b": [2, 4]}, ""),
        ("a, b\n1, x\n2, y\n", {"a": [1, 2], "b": ["x", "y"]}, ""),
        ("a,b\n1,#N/A\n2,3\n", {"a": [1, 2], "b": [np.nan, 3]}, ""),
        ("name\nleft hand\nright foot\n", {"name": ["left hand", "right foot"]}, ""),
        (
            "a;b\n1,5;x\n2,5;y\noops;z\n",
            {"a": ["1.5", "2.5", "oops"], "b": ["x", "y", "z"]},
            "decimal commas",
        ),
        ("a\r1\r2\r", {"a": [1, 2]}, ""),
    ],
)
def test_what_spreadsheets_and_people_write(tmp_path, text, frame, words):
    read = read_file(write(tmp_path, text), ReadOptions())
    pd.testing.assert_frame_equal(read.frame, pd.DataFrame(frame), check_dtype=False)
    assert words in read.reading.words()
    assert bool(words) == bool(read.reading.words())


def test_a_decimal_comma_far_below_still_counts(tmp_path):
    path = write(tmp_path, "a;b\n" + "1;2\n" * 1000 + "1,5;2\n")
    assert gf.read_table(path)["a"].iloc[-1] == 1.5


QUESTIONS = {
    "comma of a thousand": ("a;b\n1,234;2\n3,456;4\n", "decimal=',' or thousands=','"),
    "point of a thousand": ("a;b\n1.234;2\n3.456;4\n", "decimal='.' or thousands='.'"),
    "quoted thousands": ('a,b\n"1,234",2\n"3,456",4\n', "decimal=',' or thousands=','"),
    "thousands and decimals": ('a,b\n"1,234.5",2\n"3,456.5",4\n', "line 2.*thousands=','"),
    "points beside commas": ("a;b\n1.234;2,5\n3.456;4\n", "column 'a' holds '1.234' in line 2"),
    "two notations": ("a;b\n1,5;2.5\n1,6;2.75\n", "column 'a' holds '1,5' in line 2"),
    "late second notation": ("a;b\n" + "1;2.5\n" * 500 + "1,5;2\n1,6;3\n", "line 502"),
    "spaces in thousands": ("a;b\n1 234,5;2\n2 345,5;2\n", "decimal=',', thousands=' '"),
    "commas twice": ("a,b\n1,5,2,5\n3,1,4,1\n", "line 1 has 2 cells, line 2 has 4.*decimal marks too"),
    "half commas": ("a,b\n1,5,2\n3,1,4\n", "line 1 has 2 cells, line 2 has 3"),
    "one column of commas": ("a\n1,5\n3,1\n", "line 1 has 1 cell, line 2 has 2"),
    "two separators": ("a;b|c\n1;2|3\n4;5|6\n", "sep=';' or sep='|'"),
    "a name too few": ("a;b\n1;2;3\n5;5;6\n", "line 1 has 2 cells, line 2 has 3"),
    "no header": ("0.5,1.5\n1,2\n3,4\n", "has no header"),
    "a column without name": ("a;;b\n1;2;3\n4;5;6\n", "column 2 has no name"),
    "a long line": ("a,b\n" + "1,2\n" * 40 + "1,2,3\n", "line 42 has 3 cells"),
    "an open quote": ('a,b\n1,"2\n1,3\n', "cannot be read as csv"),
}


@pytest.mark.parametrize("question", QUESTIONS)
def test_what_can_be_read_in_two_ways_is_asked_about(tmp_path, question):
    text, message = QUESTIONS[question]
    with pytest.raises(gf.DataError, match=message):
        gf.read_table(write(tmp_path, text))


@pytest.mark.parametrize(
    ("text", "options", "numbers"),
    [
        ("a;b\n1,234;2\n3,456;4\n", {"decimal": ","}, [1.234, 3.456]),
        ("a;b\n1,234;2\n3,456;4\n", {"thousands": ","}, [1234, 3456]),
        ("a;b\n1.234,5;2\n3.456;4\n", {"thousands": "."}, [1234.5, 3456]),
        ("a;b\n1 234,5;2\n2\u00a0345;2\n", {"thousands": " ", "decimal": ","}, [1234.5, 2345]),
        ("a;b\n1'234.5;2\n2'345;2\n", {"thousands": "'"}, [1234.5, 2345]),
        ("a\n1,5\n3,1\n", {"sep": ";"}, [1.5, 3.1]),
        ("a;b|c\n1;2|3\n4;5|6\n", {"sep": "semicolon"}, [1, 4]),
        ("a;b\n1;ü\n2;é\n".encode("utf-16"), {"encoding": "utf-16"}, [1, 2]),
        ("a;b\n1;ё\n2;ж\n".encode("koi8-r"), {"encoding": "koi8-r"}, [1, 2]),
    ],
)
def test_the_options_decide(tmp_path, text, options, numbers):
    frame = gf.read_table(write(tmp_path, text), **options)
    assert frame["a"].tolist() == numbers


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        ("a,b\n1.5,2\n2.5,3\n", {"decimal": ","}, "column 'a' holds '1.5' in line 2"),
        ("a;b\n1,5;2\n2,5;3\n", {"decimal": "."}, "column 'a' holds '1,5' in line 2"),
        ("a;b\n1,5;2\n2,5;3\n", {"sep": ","}, "by ';' with decimal commas .* Give sep=';' and decimal=','"),
        ("a;b;c\n1,5;2,5;3\n2,5;3,5;4\n", {"sep": ","}, "looks separated by ';' with decimal commas"),
        ("a\tb\n1,5\t2,5\n2,5\t3,5\n", {"sep": ","}, "with decimal commas"),
        ("a,b\n1.5,2\n", {"sep": ";"}, "looks separated by ',' .columns 'a', 'b'.. Give sep=',' instead"),
        ("a;b\nx;y\nv;w\n", {"sep": "|"}, "one column called 'a;b'"),
        ("a;b\n1.5;2\n2.25;3\n", {"thousands": "."}, "column 'a' holds '1.5' in line 2"),
        ("a;b\n1;2\n".encode("utf-16"), {"encoding": "latin-1"}, "UTF-16 by its first bytes"),
        ("a;b\n1;é\n".encode("latin-1"), {"encoding": "utf-8"}, "cannot be read as text in utf-8"),
    ],
)
def test_an_option_that_the_file_contradicts_is_an_error(tmp_path, text, options, message):
    with pytest.raises(gf.DataError, match=message):
        gf.read_table(write(tmp_path, text), **options)


@pytest.mark.parametrize(
    "options",
    [
        {"sep": "xx"},
        {"decimal": ";"},
        {"thousands": "x"},
        {"decimal": ",", "thousands": ","},
        {"encoding": "no-such"},
        {"encoding": "base64"},
        {"sheet": "one"},
    ],
)
def test_options_that_make_no_sense(tmp_path, options):
    path = write(tmp_path, "a,b\n1,2\n")
    with pytest.raises(gf.ParameterError, match=next(iter(options))):
        gf.read_table(path, **options)
    with pytest.raises(gf.ParameterError):
        gf.from_table(pd.DataFrame({"a": [1], "b": [2]}), covariates="a", **options)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"a,b\n1,2\n3,\x81\n", "Say what it is"),
        ("a,b\n1,é\n".encode() + b"2,\xe9\n", "UTF-8 only in part"),
        ("a,b\n1,é\n2,é".encode()[:-1], "ends within a letter"),
        ("a,b\n1,2\n".encode("utf-16")[:-1], "cannot be read as text in utf-16"),
        (b"a,b\n1,\x00\n", "it is no text"),
    ],
)
def test_bytes_that_are_no_text(tmp_path, content, message):
    with pytest.raises(gf.DataError, match=message):
        gf.read_table(write(tmp_path, content))


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("t.csv", gzip.compress(b"a,b\n1,2\n", mtime=0), "packed with gzip"),
        ("t.csv.gz", b"a,b\n1,2\n", "not packed with gzip"),
        ("t.csv.gz", gzip.compress(b"a,b\n1,2\n" * 99, mtime=0)[:-9], "damaged or cut off"),
        ("t.csv.zip", PACKERS[".zip"](b"a,b\n1,2\n")[:-4], "damaged or cut off"),
        ("t.parquet.gz", gzip.compress(b"PAR1", mtime=0), "not read packed"),
        ("t.csv", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "old Excel file"),
    ],
)
def test_names_that_say_something_else(tmp_path, name, content, message):
    with pytest.raises(gf.DataError, match=message):
        gf.read_table(write(tmp_path, content, name))


def test_little_that_unpacks_to_much_is_refused(tmp_path, monkeypatch):
    path = write(tmp_path, gzip.compress(b"a,b\n" + b"1,2\n" * 500_000, mtime=0), "t.csv.gz")
    assert len(gf.read_table(path)) == 500_000
    monkeypatch.setattr(sources, "_UNPACKED_BYTES", 1_000_000)
    with pytest.raises(gf.DataError, match="unpacks to more than"):
        gf.read_table(path)
    monkeypatch.setattr(sources, "_UNPACKED_BYTES", 100_000_000)
    monkeypatch.setattr(sources, "free_memory", lambda: 10_000)
    with pytest.raises(gf.DataError, match=r"unpacks to more than 10\.0 kB"):
        gf.read_table(path)


def test_lines_with_too_few_or_too_many_cells_are_named(tmp_path):
    path = write(tmp_path, "a,b,c\n1,2,3\n4,5\n\n7,,\n9\n" + "1,2,3\n" * 40)
    words = r"2 lines \(3, 6\) have fewer cells than the header, which has 3: the last columns .* missing"
    with pytest.warns(gf.DataWarning, match=words) as said:
        table = gf.read_table(path)
    assert said[0].filename == __file__
    assert table.isna().sum().tolist() == [0, 2, 3]
    assert not gf.read_table(write(tmp_path, "a,b,c\n1,2,3\n4,5,\n,,\n,\n")).empty
    with pytest.raises(gf.DataError, match="line 3 has 4 cells, but the header has 3"):
        gf.read_table(write(tmp_path, "a,b,c\n1,2,3\n4,5,6,7\n"))


def test_free_memory_is_what_the_narrowest_limit_leaves(tmp_path, monkeypatch):
    assert 0 < room.free_memory() < 2**63
    limit = tmp_path / "memory.max"
    monkeypatch.setattr(room, "_LIMITS", (limit,))
    monkeypatch.setattr(room, "_pages_of_process", lambda _: 10**6)
    limit.write_text("5000000\n")
    assert room.free_memory() <= 4_000_000
    limit.write_text("max\n")
    assert room.free_memory() > 4_000_000


def test_whole_numbers_too_long_for_a_number_stay_what_they_are(tmp_path):
    long = "9" * 400
    frame = gf.read_table(write(tmp_path, f"a,b\n{long},1\n3,2\n"))
    assert frame["a"].tolist() == [long, "3"]
    assert gf.read_table(write(tmp_path, "a,b\n1e400,1\n3,2\n"))["a"].tolist() == [np.inf, 3.0]


def test_a_pandas_that_fails_at_long_whole_numbers_gives_the_same(tmp_path, monkeypatch):
    path = write(tmp_path, f"a,b\n{'9' * 400},1.5\n3,2\n")
    known, read_csv = gf.read_table(path), pd.read_csv

    def fails(*args, **options):
        if not options["dtype"]:
            raise OverflowError("int too large to convert to float")
        return read_csv(*args, **options)

    monkeypatch.setattr(pd, "read_csv", fails)
    pd.testing.assert_frame_equal(gf.read_table(path), known)


@pytest.mark.parametrize("digits", [20, 400])
def test_long_whole_numbers_as_nodes_and_covariates_are_typed_errors(tmp_path, digits):
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.normal(size=(40, 4)), columns=["a", "b", "c", "z"]).astype(object)
    table.loc[5, "a"] = table.loc[7, "z"] = "9" * digits
    path = tmp_path / "t.csv"
    table.to_csv(path, index=False)
    data = gf.from_table(path, covariates="z", nodes=["a", "b", "c"])
    gf.check_data(data.X, data.Z)
    try:
        gf.RegGMM().fit(data.X, data.Z)
    except gf.DataError:
        return
    assert digits == 20, "a number of 20 digits can be computed with"


def test_parts_of_a_long_file_that_do_not_agree_are_text(tmp_path):
    rows = "1,2\n" * 80_000 + "x,2\n" * 80_000
    frame = gf.read_table(write(tmp_path, "a,b\n" + rows))
    assert set(map(type, frame["a"])) == {str}
    assert set(frame["a"]) == {"1", "x"}


def test_what_looks_like_numbers_but_is_none(tmp_path):
    """Answers 1,2 beside numbers with points: categories, or left out."""
    rows = "".join(f'{i}.5,{i},"{1 + i % 2},{3 + i % 3}"\n' for i in range(20))
    path = write(tmp_path, f"a,b,answers\n{rows}")
    with pytest.raises(gf.DataError, match=r"column 'answers' holds '1,3' in line 2.*categories or drop"):
        gf.from_table(path, covariates="b")
    data = gf.from_table(path, covariates=["b", "answers"], categories=["answers"])
    assert sorted(set(data.Z["answers"])) == ["1,3", "1,4", "1,5", "2,3", "2,4", "2,5"]
    assert gf.from_table(path, covariates="b", drop="answ*").unused == ["answers"]


def test_a_file_that_may_not_be_read(tmp_path, monkeypatch):
    path = write(tmp_path, "a,b\n1,2\n")

    def refuse(self):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(sources.Source, "open", refuse)
    with pytest.raises(gf.DataError, match="cannot be read: Permission denied"):
        gf.read_table(path)
