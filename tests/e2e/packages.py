"""Packages that only tests need: script/deps --tests puts them into .venv."""
import importlib
import os
import pathlib
import sys

SKIPPED = 77
VENV_PYTHON = pathlib.Path(__file__).resolve().parent.parent.parent / ".venv" / "bin" / "python"


def need(package):
    """The package; where it is missing, the test begins anew in .venv, and without that ends as skipped."""
    try:
        return importlib.import_module(package)
    except ImportError:
        if VENV_PYTHON.exists() and pathlib.Path(sys.prefix) != VENV_PYTHON.parent.parent:
            os.execv(VENV_PYTHON, [VENV_PYTHON, *sys.argv])
        print(f"skipped: no package {package}; script/deps --tests installs it")
        sys.exit(SKIPPED)
