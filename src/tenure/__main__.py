"""``python -m tenure``: the same program as ``tenure``."""

from tenure.cli.main import main

main()
