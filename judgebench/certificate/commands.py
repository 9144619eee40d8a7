"""`judgebench certificate` and `judgebench watch`."""

from judgebench.cli.options import Commands

commands = Commands()
