"""Files and folders are there as they were or as they shall be, whatever happens to their writer."""

from __future__ import annotations

import errno
import json
import os
import re
import subprocess
import sys
import threading
import time
from contextlib import contextmanager, suppress
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import graphfield as gf
from conftest import SMALL, small_data
from graphfield.cli import main
from graphfield.folders import check_folder, moves, open_file, write_file, write_folder
from graphfield.folders.leftovers import NEW, OLD, beside
from graphfield.graphs.export import write_graph
from graphfield.report import write_report
from graphfield.training.checkpoint import CheckpointFolder

OLD_FILES = {"a.txt": b"old", "b.txt": b"old too"}
NEW_FILES = {"a.txt": b"new", "b.txt": b"new too"}
posix = pytest.mark.skipif(os.name != "posix", reason="permissions, links and forks as on Unix")


@pytest.fixture
def no_exchange(monkeypatch):
    """A file system on which two folders cannot change places in one move."""
    monkeypatch.setattr(moves, "_exchange_call", lambda: None)


@pytest.fixture(scope="module")
def model():
    X, Z = small_data(60, 5)
    return gf.GraphicalLasso(penalty=0.1).fit(X, Z[["age"]])


@contextmanager
def full_disk(most: int = 20):
    """No file may grow beyond a few bytes, which the kernel says in the way it says that a disk is full."""
    resource = pytest.importorskip("resource")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (most, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def name_left(target: Path, kind: str = NEW, pid: int | None = None, host: str | None = None) -> Path:
    """Where a writer with this number, which is not at it any more, had put something."""
    with beside(target, kind) as path:
        label, _, writer = path.name.partition(f".graphfield-{kind}-")
    parts = writer.split("-")
    told = f"{host or parts[0]}-{pid or parts[1]}-{parts[2]}"
    return path.with_name(f"{label}.graphfield-{kind}-{told}")


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


# -- kills -----------------------------------------------------------------------------------------

EVERY_KILL = """
import json, os, sys
from pathlib import Path
from kills import files_under, in_fork
from graphfield.folders import restore, write_file, write_folder

os.fsync = lambda handle: None
OLD, NEW = {"a.txt": b"old", "b.txt": b"old too"}, {"a.txt": b"new", "b.txt": b"new too"}
root, report = Path(sys.argv[1]), {}

def file_at(path, content):
    write_file(path, content["a.txt"], overwrite=True)

def folder_at(path, content):
    write_folder(path, content, overwrite=True)

def read(path):
    restore(path)
    return {f.name: f.read_bytes() for f in path.iterdir()} if path.is_dir() else {"a.txt": path.read_bytes()}

def whole(content, path):
    return content if path.is_dir() else {"a.txt": content["a.txt"]}

for write, exchange in ((file_at, True), (folder_at, True), (folder_at, False)):
    number = 0
    while True:
        number += 1
        path = root / f"{write.__name__}-{exchange}-{number}" / "target"
        path.parent.mkdir()
        write(path, OLD)
        ended = in_fork(lambda: write(path, NEW), root, number, exchange=exchange)
        if ended.kind == "done":
            break
        assert ended.kind == "killed", ended
        there = read(path)
        assert there in (whole(OLD, path), whole(NEW, path)), there
        again = in_fork(lambda: write(path, NEW), root, exchange=exchange)
        assert again.kind == "done", again
        assert read(path) == whole(NEW, path)
        assert [p.name for p in path.parent.iterdir()] == ["target"], files_under(path.parent)
    report[f"{write.__name__}-{exchange}"] = number - 1
print(json.dumps(report))
"""


@posix
def test_a_kill_at_any_operation_leaves_the_old_or_the_new(tmp_path):
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(Path(__file__).parent), *sys.path])}
    done = subprocess.run(
        [sys.executable, "-c", EVERY_KILL, str(tmp_path)],
        env=env,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    kills = json.loads(done.stdout)
    assert kills["file_at-True"] >= 3
    assert kills["folder_at-True"] >= 8
    assert kills["folder_at-False"] > kills["folder_at-True"]


def test_a_model_killed_between_two_moves_is_found_again(model, tmp_path, no_exchange):
    path = model.save(tmp_path / "model")
    path.rename(name_left(path, OLD))
    with pytest.raises(gf.OutputError, match="already exists"):
        model.save(path)
    path.rename(name_left(path, OLD))
    assert gf.load(path).penalty_ == model.penalty_
    assert [p.name for p in tmp_path.iterdir()] == ["model"]


def test_a_checkpoint_killed_in_its_first_write_is_one_that_begins(tmp_path):
    (tmp_path / "c").mkdir()
    left = name_left(tmp_path / "c" / "fit.json")
    left.write_bytes(b'{"form')
    CheckpointFolder(tmp_path / "c", "problem", 7, resume=True)  # says nothing: nothing is there
    left.write_bytes(b'{"form')  # as after a kill between the two last operations
    assert CheckpointFolder(tmp_path / "c", "problem", 8, resume=True).seed == 7
    assert [p.name for p in (tmp_path / "c").iterdir()] == ["fit.json"]
    (tmp_path / "d").mkdir()
    name_left(tmp_path / "d" / "fit.json", host="0" * 8).write_bytes(b"")  # perhaps still being written
    assert CheckpointFolder(tmp_path / "d", "problem", 9, resume=False).seed == 9


def test_what_the_next_writer_clears_and_what_not(tmp_path):
    target = write_folder(tmp_path / "model", OLD_FILES, overwrite=False)
    other = {"host": "0" * 8}
    gone = [name_left(target), name_left(target, OLD), name_left(target, **other)]
    kept = [
        name_left(target, pid=os.getppid()),
        name_left(target, **other),
        name_left(tmp_path / "model2"),
        tmp_path / ".model.tmp",
        tmp_path / ".model.graphfield-new-thesis",
    ]
    for path in [*gone, *kept]:
        path.mkdir()
        (path / "a.txt").write_bytes(b"half")
    os.utime(gone[2], (0, time.time() - 90_000))
    with beside(target) as part:
        part.mkdir()
        write_folder(target, NEW_FILES, overwrite=True)
        assert part.exists(), "another thread is still writing it"
    assert {p.name for p in tmp_path.iterdir()} == {"model", *(p.name for p in kept)}
    assert contents(target) == NEW_FILES


@pytest.mark.parametrize("exchange", [True, False])
def test_writers_at_once_do_not_destroy_each_other(tmp_path, monkeypatch, exchange):
    monkeypatch.setattr(os, "fsync", lambda _: None)
    if not exchange:
        monkeypatch.setattr(moves, "_exchange_call", lambda: None)
    target, failed = tmp_path / "model", []

    def write(number: int) -> None:
        try:
            for turn in range(15):
                content = f"{number} {turn}".encode()
                write_folder(target, {"a": content, "b": content}, overwrite=True)
        except Exception as error:  # noqa: BLE001 - of a thread, to be shown below
            failed.append(error)

    threads = [threading.Thread(target=write, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []
    found = contents(target)
    assert set(found) == {"a", "b"}
    assert found["a"] == found["b"]
    assert [p.name for p in tmp_path.iterdir()] == ["model"]


# -- full disks and other errors -------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore::graphfield.ThresholdWarning")
def test_a_full_disk_keeps_the_earlier_page(model, tmp_path):
    page = write_report(model, tmp_path / "report.html")
    before = page.read_bytes()
    with full_disk(5_000), pytest.raises(gf.OutputError, match="Cannot write"):
        write_report(model, page, overwrite=True, title="never seen")
    assert page.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["report.html"]


@pytest.mark.parametrize("ending", ["csv", "json", "graphml"])
def test_a_full_disk_leaves_no_part_of_a_graph(model, tmp_path, ending):
    graph = model.to_networkx({"age": 40}, threshold=None)
    with full_disk(), pytest.raises(gf.OutputError, match="Cannot write"):
        write_graph(graph, tmp_path / f"graph.{ending}")
    assert list(tmp_path.iterdir()) == []


# NumPy 1.26 does not close its archive when a write fails, and Python complains when it forgets it.
@pytest.mark.filterwarnings("ignore:.*ZipFile:pytest.PytestUnraisableExceptionWarning")
def test_a_full_disk_keeps_earlier_samples_and_models(model, tmp_path, capsys):
    out, folder = tmp_path / "sim.npz", model.save(tmp_path / "model")
    assert main(["simulate", "G1", "--n", "20", "--out", str(out)]) == 0
    with full_disk(5_000):
        code = main(["simulate", "G1", "--n", "30", "--out", str(out), "--force"])
    assert code == 2
    assert "Cannot write" in capsys.readouterr().err
    with full_disk(), pytest.raises(gf.OutputError, match="Cannot write"):
        model.save(folder, overwrite=True)
    with np.load(out) as stored:
        assert len(stored["X"]) == 20
    assert gf.load(folder).penalty_ == model.penalty_
    assert sorted(p.name for p in tmp_path.iterdir()) == ["model", "sim.npz"]


def test_an_error_or_interrupt_while_writing_keeps_the_old(tmp_path, monkeypatch, no_exchange):
    target = write_folder(tmp_path / "model", OLD_FILES, overwrite=False)
    rename, calls = os.rename, []

    def interrupted(source, destination):
        calls.append(source)
        if len(calls) == 3:  # the new one into the free place
            raise KeyboardInterrupt
        rename(source, destination)

    monkeypatch.setattr(os, "rename", interrupted)
    with pytest.raises(KeyboardInterrupt):
        write_folder(target, NEW_FILES, overwrite=True)
    assert contents(target) == OLD_FILES
    with suppress(ZeroDivisionError), open_file(target / "a.txt", overwrite=True) as file:
        file.write(b"half")
        _ = 1 / 0
    assert contents(target) == OLD_FILES
    assert [p.name for p in tmp_path.iterdir()] == ["model"]


def test_what_appears_meanwhile_is_not_replaced(tmp_path):
    def write() -> None:
        with open_file(tmp_path / "a.txt", overwrite=False) as file:
            file.write(b"new")
            (tmp_path / "a.txt").write_bytes(b"precious")

    with pytest.raises(gf.OutputError, match="another program"):
        write()
    assert contents(tmp_path) == {"a.txt": b"precious"}


def test_what_appears_meanwhile_is_no_folder_to_replace(tmp_path):
    class Files(dict):
        def items(self):
            write_folder(tmp_path / "model", OLD_FILES, overwrite=False)
            return super().items()

    with pytest.raises(gf.OutputError, match="another program"):
        write_folder(tmp_path / "model", Files(NEW_FILES), overwrite=False)
    assert contents(tmp_path / "model") == OLD_FILES
    assert [p.name for p in tmp_path.iterdir()] == ["model"]


@pytest.mark.parametrize("number", [errno.ENOSYS, errno.EINVAL])
def test_a_kernel_or_file_system_without_exchange(tmp_path, monkeypatch, number):
    def refuse(first, second):
        moves.ctypes.set_errno(number)
        return -1

    monkeypatch.setattr(moves, "_exchange_call", lambda: refuse)
    target = write_folder(tmp_path / "model", OLD_FILES, overwrite=False)
    write_folder(target, NEW_FILES, overwrite=True)
    assert contents(target) == NEW_FILES
    assert [p.name for p in tmp_path.iterdir()] == ["model"]


# -- places and permissions ------------------------------------------------------------------------


@posix
def test_links_are_followed_and_stay(tmp_path):
    (tmp_path / "real").mkdir()
    write_folder(tmp_path / "real" / "model", OLD_FILES, overwrite=False)
    (tmp_path / "model").symlink_to("real/model")
    (tmp_path / "graph.csv").symlink_to("real/graph.csv")
    write_folder(tmp_path / "model", NEW_FILES, overwrite=True)
    write_file(tmp_path / "graph.csv", b"new", overwrite=True)
    assert (tmp_path / "model").is_symlink()
    assert (tmp_path / "graph.csv").is_symlink()
    assert contents(tmp_path / "real" / "model") == NEW_FILES
    assert sorted(p.name for p in (tmp_path / "real").iterdir()) == ["graph.csv", "model"]
    assert len(list(tmp_path.iterdir())) == 3


@posix
def test_the_umask_is_respected_and_permissions_are_kept(tmp_path):
    def modes() -> list[str]:
        return [oct(path.stat().st_mode & 0o777) for path in (folder, folder / "a.txt", file)]

    folder, file = tmp_path / "model", tmp_path / "graph.csv"
    before = os.umask(0o027)
    try:
        write_folder(folder, OLD_FILES, overwrite=False)
        write_file(file, b"old", overwrite=False)
        assert modes() == ["0o750", "0o640", "0o640"]
        folder.chmod(0o700)
        file.chmod(0o600)
        write_folder(folder, NEW_FILES, overwrite=True)
        write_file(file, b"new", overwrite=True)
        assert modes() == ["0o700", "0o640", "0o600"]
    finally:
        os.umask(before)


@posix
@pytest.mark.skipif(hasattr(os, "geteuid") and os.geteuid() == 0, reason="root may write anywhere")
def test_what_is_protected_is_refused_before_the_work(model, tmp_path):
    (tmp_path / "shut").mkdir()
    folder = model.save(tmp_path / "shut" / "model")
    folder.chmod(0o555)
    with pytest.raises(gf.OutputError, match="Permission denied"):
        check_folder(folder, overwrite=True)
    folder.chmod(0o755)
    (tmp_path / "shut").chmod(0o555)
    try:
        for path in (folder, tmp_path / "shut" / "new"):
            with pytest.raises(gf.OutputError, match="Permission denied"):
                check_folder(path, overwrite=True)
        assert gf.load(folder).penalty_ == model.penalty_
    finally:
        (tmp_path / "shut").chmod(0o755)


@posix
def test_a_pipe_is_written_to_and_not_replaced(tmp_path):
    pipe, heard = tmp_path / "pipe", []
    os.mkfifo(pipe)
    listener = threading.Thread(target=lambda: heard.append(pipe.read_bytes()), daemon=True)
    listener.start()
    write_file(pipe, b"graph", overwrite=True)
    listener.join(timeout=5)
    assert heard == [b"graph"]
    assert pipe.is_fifo()


@pytest.mark.parametrize("name", ["x" * 250, "ä" * 120, "a b\n.csv"])
def test_odd_names(tmp_path, name):
    path = tmp_path / name
    left = name_left(path)
    left.write_bytes(b"half")
    write_file(path, b"new", overwrite=False)
    assert contents(tmp_path) == {name: b"new"}


def test_places_that_are_none(model, tmp_path, monkeypatch):
    with pytest.raises(gf.OutputError, match="is a folder"):
        write_file(tmp_path, b"", overwrite=True)
    for name in ("x" * 300, "file/model"):
        (tmp_path / "file").write_text("precious")
        with pytest.raises(gf.OutputError, match="Cannot write"):
            model.save(tmp_path / name)
    model.save(tmp_path / "model")
    monkeypatch.chdir(tmp_path / "model")
    with pytest.raises(gf.OutputError, match="runs in"):
        model.save(".", overwrite=True)
    assert gf.load(tmp_path / "model").penalty_ == model.penalty_


def test_nothing_else_writes_to_the_disk():
    """Whoever opens a file for writing by other means brings back partial files after a kill."""
    other_means = re.compile(
        r"\.write_text\(|\.write_bytes\(|os\.(replace|rename)\(|mk[sd]temp|NamedTemporaryFile|shutil\.(move|copy)"
        r"|open\([^()]*[\"'][wxa]b?[\"']|savefig\((path|out)|save_file\(|to_(csv|parquet)\((path|out|folder)"
    )
    source = Path(gf.__file__).parent
    files = [path for path in source.rglob("*.py") if path.parent != source / "folders"]
    found = [path.name for path in files if other_means.search(path.read_text(encoding="utf-8"))]
    assert files
    assert found == []


def test_the_folder_that_a_result_is_to_lie_in_must_be_there(model, tmp_path, capsys):
    """One rule for all commands, heard of before their work; a folder itself is made."""
    table = tmp_path / "t.csv"
    pd.concat(small_data(60), axis=1).to_csv(table, index=False)
    saved, none = str(model.save(tmp_path / "m")), tmp_path / "nosuch" / "dir"
    fit = ["fit", str(table), "--covariates", "age,site", "--model", "linear", "--no-verdict", "--out"]
    commands = {
        "page.html": ["report", saved, "--out"],
        "graph.csv": ["graph", saved, "--out"],
        "g1.npz": ["simulate", "G1", "--n", "20", "--out"],
        "evidence.json": ["evidence", str(table), "--covariates", "age", "--out"],
        "model": fit,
        "demo": ["demo", "--out"],
        "bench": ["bench", "--quick", "--out"],
        "results": ["reproduce", "table1", "--out"],
    }
    for name, command in commands.items():
        assert main([*command, str(none / name)]) == 2, command
        told = capsys.readouterr().err
        assert f"Cannot write {none / name}: there is no folder {none}. Make it first" in told, told
    assert not none.parent.exists()
    assert main(["report", str(none)]) == 2
    assert f"{none} is not a graphfield model" in capsys.readouterr().err
    assert main([*fit, str(tmp_path / "new")]) == 0
    with pytest.raises(gf.OutputError, match="there is no folder"):
        model.save(none / "model")
    with pytest.raises(gf.OutputError, match="there is no folder"):
        gf.DNNCGM(**SMALL).fit(*small_data(60), checkpoint=none / "checkpoint")
