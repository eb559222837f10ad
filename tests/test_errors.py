"""What an error says: the place first, then what to do."""

import pytest

from evalspill_guard.errors import ConfigError, ExitCode, Mistake, Unreadable, worst


def test_a_config_error_lists_its_mistakes_by_line() -> None:
    error = ConfigError("a/evalspill.yaml", [Mistake(7, "eval.n", "too large"), Mistake(2, "version", "must be 1")])
    assert str(error) == "a/evalspill.yaml:2: version: must be 1\na/evalspill.yaml:7: eval.n: too large"
    assert (error.path, [mistake.line for mistake in error.mistakes]) == ("a/evalspill.yaml", [2, 7])


@pytest.mark.parametrize(("line", "said"), [(None, "cut off"), (3, "line 3: cut off")])
def test_what_could_not_be_read_says_the_line_where_there_is_one(line: int | None, said: str) -> None:
    error = Unreadable("cut off", line)
    assert (str(error), error.what, error.line, error.code) == (said, "cut off", line, ExitCode.INCOMPLETE)


def test_the_worst_code_wins() -> None:
    order = [ExitCode.INTERNAL, ExitCode.USAGE, ExitCode.INCOMPLETE, ExitCode.FAILED, ExitCode.PASSED]
    assert [worst(order[place:]) for place in range(5)] == order
    assert [worst(reversed(order[place:])) for place in range(5)] == order
    assert worst([]) == ExitCode.PASSED
