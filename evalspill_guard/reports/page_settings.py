"""The settings of a check as an evalspill.yaml that gives the same report again."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from math import ceil

import yaml

from evalspill_guard.model import CheckResult, RunResult
from evalspill_guard.sink import visible

_DEFAULT_MAX_BAD = Fraction(1, 100)
_WIDTH = 100


def settings_yaml(result: RunResult, check: CheckResult) -> str:
    """A whole config of this one check; it goes where the config of this run stands, since its paths start there."""
    reports = {"text": result.text_policy, "clean": result.clean}
    return as_yaml({"version": 1, "checks": [check.settings], "reports": reports, **_bad_records(check)})


def as_yaml(settings: Mapping[str, object]) -> str:
    """The settings as YAML that can be copied; in ASCII where a character in them would not be seen."""
    plain = _plain(settings)
    text = _dump(plain, allow_unicode=True)
    return text if visible(text) == text else _dump(plain, allow_unicode=False)


def _dump(plain: object, allow_unicode: bool) -> str:
    text: str = yaml.safe_dump(
        plain, sort_keys=False, default_flow_style=None, width=_WIDTH, allow_unicode=allow_unicode
    )
    return text


def _bad_records(check: CheckResult) -> dict[str, object]:
    """A complete check that read bad records was told to skip them, and to allow as many as there were."""
    shares = [Fraction(file.bad, file.records) for file in check.train if file.bad and file.records]
    if not check.complete or not shares:
        return {}
    most = max(shares)
    allowed = {} if most <= _DEFAULT_MAX_BAD else {"max_bad": f"{ceil(most * 100)}%"}
    return {"on_bad_record": "skip", **allowed}


def _plain(value: object) -> object:
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value if value is None or isinstance(value, str | int | float) else str(value)
