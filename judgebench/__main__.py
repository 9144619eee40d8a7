"""`python -m judgebench` is `judgebench`."""

from judgebench.cli import main

main()
