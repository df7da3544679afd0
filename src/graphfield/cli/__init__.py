"""The command line. Exit code 0 on success, 2 on bad input (one line on stderr), 1 on failure."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Sequence
from typing import Any

from graphfield.cli.parser import BAD_INPUT, make_parser
from graphfield.cli.words import for_the_shell
from graphfield.exceptions import (
    DataWarning,
    ExtrapolationWarning,
    GraphfieldError,
    NoGapWarning,
    TrainingError,
    TrainingWarning,
)

FAILURE, INTERRUPTED = 1, 130


def main(argv: Sequence[str] | None = None) -> int:
    """Entry point of the ``graphfield`` command."""
    arguments = make_parser().parse_args(argv)
    notes: list[str] = []

    def keep(message: Warning | str, *_: Any, **__: Any) -> None:
        notes.append(str(message))

    with warnings.catch_warnings():
        warnings.showwarning = keep
        for category in (DataWarning, ExtrapolationWarning, NoGapWarning, TrainingWarning):
            warnings.simplefilter("always", category)
        try:
            code: int = arguments.run(arguments) or 0
        except TrainingError as error:
            return _complain(error, FAILURE)
        except GraphfieldError as error:
            return _complain(error, BAD_INPUT)
        except MemoryError as error:
            return _complain(f"not enough memory: {error}", FAILURE)
        except BrokenPipeError:
            sys.stderr.close()  # the reader of our output has gone; nobody is left to tell
            return 0
        except KeyboardInterrupt:
            return _complain("interrupted", INTERRUPTED)
    for note in dict.fromkeys(notes):  # an error stands alone; notes are for results
        _complain(f"note: {note}", 0)
    return code


def _complain(message: object, code: int) -> int:
    sys.stderr.write(f"graphfield: {for_the_shell(' '.join(str(message).split()))}\n")
    return code
