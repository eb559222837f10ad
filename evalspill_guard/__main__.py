"""`python -m evalspill_guard`."""

from evalspill_guard.cli import main

main()
