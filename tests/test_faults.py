"""The page of faults is that of the harness; make reliability does them and writes it."""

from __future__ import annotations

import re

from faults import DOC
from faults_list import FAULTS


def test_the_page_tells_of_every_fault() -> None:
    told = re.findall(r"^\| (.+?) \| \d+ \| (yes|no) \|$", DOC.read_text(), re.MULTILINE)
    assert told == [(fault.name, "yes") for fault in FAULTS]
