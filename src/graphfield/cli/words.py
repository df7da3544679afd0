"""What is said on the screen, and advice in Python's words in those of the command line."""

from __future__ import annotations

import sys

_SHELL_WORDS = {
    "missing='drop'": "--missing drop",
    "missing='impute'": "--missing impute",
    "marginals='normal'": "--set marginals=normal",
    " (marginals='auto')": "",
    "unknown='average'": "--set unknown=average when fitting",
    "pass overwrite=True": "add --force",
    "Pass resume=True": "Add --resume",
}


def say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def for_the_shell(text: str) -> str:
    for python, shell in _SHELL_WORDS.items():
        text = text.replace(python, shell)
    return text
