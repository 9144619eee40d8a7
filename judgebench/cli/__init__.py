"""The command line: parse, call one public function, print."""

from judgebench.cli.app import main

__all__ = ["main"]
