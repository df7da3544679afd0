"""The command line. Exit code 0 on success, 2 on bad input (one line on stderr), 1 on failure."""

from __future__ import annotations

import contextlib
import io
import sys
import warnings
from collections.abc import Sequence
from typing import Any

from graphfield.cli.parser import BAD_INPUT, make_parser
from graphfield.cli.processes import check_command, process_number
from graphfield.cli.words import render_for_shell
from graphfield.exceptions import (
    DataWarning,
    ExtrapolationWarning,
    FewRowsWarning,
    GraphfieldError,
    ThresholdWarning,
    TrainingError,
    TrainingWarning,
)
from graphfield.messages import message_of

FAILURE, INTERRUPTED = 1, 130
_FOR_PEOPLE = (DataWarning, ExtrapolationWarning, FewRowsWarning, ThresholdWarning, TrainingWarning)


def main(argv: Sequence[str] | None = None) -> int:
    """Entry point of the ``graphfield`` command."""
    arguments = make_parser().parse_args(argv)
    notes: list[str] = []
    if process_number() > 0:
        sys.stdout = io.StringIO()  # to the end of this process

    def keep(message: Warning | str, category: type[Warning], *_: Any, **__: Any) -> None:
        if issubclass(category, _FOR_PEOPLE):  # those of other packages are for those who program with them
            notes.append(message_of(message) if isinstance(message, Warning) else message)

    with warnings.catch_warnings():
        warnings.showwarning = keep
        for category in _FOR_PEOPLE:
            warnings.simplefilter("always", category)
        try:
            check_command(arguments)
            code: int = arguments.run(arguments) or 0
            sys.stdout.flush()
        except TrainingError as error:
            return _complain(render_for_shell(error.message, arguments), FAILURE)
        except GraphfieldError as error:
            if process_number() > 0:  # it is the same in all of them
                return BAD_INPUT
            return _complain(render_for_shell(error.message, arguments), BAD_INPUT)
        except MemoryError as error:
            return _complain(f"not enough memory: {error}", FAILURE)
        except BrokenPipeError:
            sys.stderr.close()  # the reader of our output has gone; nobody is left to tell
            return 0
        except OSError as error:
            return _complain(f"{_what_failed(error)}: {error.strerror or error}", FAILURE)
        except KeyboardInterrupt:
            return _complain("interrupted", INTERRUPTED)
    for note in dict.fromkeys(notes):  # an error stands alone; notes are for results
        if process_number() == 0:
            _complain(f"note: {render_for_shell(note, arguments)}", 0)
    return code


def _what_failed(error: OSError) -> str:
    """The file that an error names; one without a name is about what we print."""
    if error.filename is not None:
        return f"cannot use {error.filename}"
    with contextlib.suppress(OSError):
        sys.stdout.close()  # else Python tries again at its end, and complains in its own words
    return "cannot write to the standard output"


def _complain(message: str, code: int) -> int:
    who = f"graphfield, process {process_number()}" if process_number() else "graphfield"
    sys.stderr.write(f"{who}: {' '.join(message.split())}\n")
    return code
