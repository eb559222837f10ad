"""The page of faults is that of the harness (make reliability does them all and writes it); the quick ones are done here."""

from __future__ import annotations

import re

import pytest
from faults import Fault, outcome
from faults_list import DOC, FAULTS, QUICK


def test_the_page_tells_of_every_fault() -> None:
    told = re.findall(r"^\| (.+?) \| (\d+) \| \d+ \| (yes|no) \|$", DOC.read_text(), re.MULTILINE)
    assert told == [(fault.name, str(fault.code), "yes") for fault in FAULTS]


@pytest.mark.parametrize("fault", QUICK, ids=[fault.name for fault in QUICK])
def test_a_fault_ends_as_it_should_and_leaves_nothing(fault: Fault) -> None:
    done = outcome(fault)
    assert (done.run.code, done.wrong) == (fault.code, "")
