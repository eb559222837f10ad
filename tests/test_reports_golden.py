"""Each report of the sample run, byte for byte. EVALSPILL_GOLDEN=write writes the files anew: read the diff."""

import os
from dataclasses import replace

import pytest
from reports_sample import GOLDEN, check, run

from evalspill_guard.reports import REPORTS, RUN_REPORTS


def same_as_golden(name: str, content: bytes) -> None:
    path = GOLDEN / name
    if os.environ.get("EVALSPILL_GOLDEN") == "write":
        path.write_bytes(content)
    assert content.decode().split("\n") == path.read_bytes().decode().split("\n")


@pytest.mark.parametrize("name", REPORTS)
def test_report_of_a_check_is_as_agreed(name: str) -> None:
    same_as_golden(name, REPORTS[name](run(), check()))


@pytest.mark.parametrize("name", RUN_REPORTS)
def test_report_of_the_run_is_as_agreed(name: str) -> None:
    same_as_golden(name, RUN_REPORTS[name](run()))


@pytest.mark.parametrize("name", REPORTS)
def test_an_empty_check_has_reports_too(name: str) -> None:
    empty = check(rows=(), passed=True)
    assert REPORTS[name](run(empty), empty)


@pytest.mark.parametrize("policy", ["eval", "none"])
@pytest.mark.parametrize("name", [*REPORTS, *RUN_REPORTS])
def test_text_stands_in_a_report_only_as_the_policy_allows(name: str, policy: str) -> None:
    result = replace(run(), text_policy=policy)
    content = (REPORTS[name](result, check()) if name in REPORTS else RUN_REPORTS[name](result)).decode()
    assert "The answer is 54" not in content
    assert "Here is one for the class" not in content
    if policy == "none":
        assert "sells pens" not in content
    elif name != "too-short-to-score.csv":
        assert "sells pens" in content
