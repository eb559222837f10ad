"""evalspill.yaml -> frozen dataclasses. All mistakes are reported at once, each with its key path and line."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any, Literal

from evalspill_guard.errors import ConfigError, UsageError
from evalspill_guard.kinds import (
    Kind,
    choice,
    delimiter,
    either,
    files,
    flag,
    group,
    path,
    paths,
    percentage,
    positive,
    scalar,
    share,
    strings,
    whole,
    word,
)
from evalspill_guard.model import MAX_RECORD, Reading
from evalspill_guard.remote import shown_pattern
from evalspill_guard.scoring import BoilerplateRule, FlagRule, Gate
from evalspill_guard.yamlfile import Items, Mapping, Mistakes, Node, Scalar, read

BASELINE = "evalspill-baseline.jsonl"
NAMES = ("evalspill.yaml", "evalspill.yml")


@dataclass(frozen=True, slots=True)
class Source:
    """Files and how they are read."""

    files: tuple[str, ...]
    reading: Reading
    min_files: int = 1
    min_records: int = 1
    max_empty: Fraction = Fraction(1, 2)


@dataclass(frozen=True, slots=True)
class EvalSource(Source):
    """An eval set; its fields are named, or chosen from the head, or missing (which the run refuses)."""

    auto_fields: bool = False
    fields_missing: bool = False


@dataclass(frozen=True, slots=True)
class Check:
    """One eval set against the training data, with every default resolved."""

    name: str
    train: Source
    eval: EvalSource
    n: int | None = None
    boilerplate: BoilerplateRule | None = BoilerplateRule(10, Fraction(1, 20))
    ignore: tuple[str, ...] = ()
    short_rows: int | None = 5
    flag_at: FlagRule = FlagRule()
    fail_over: Gate = Gate()
    max_unchecked: Fraction = Fraction(1, 2)

    def settings(self) -> dict[str, object]:
        """The check in the words of evalspill.yaml: pasted back it gives the same figures."""
        rule = self.boilerplate
        return {
            "name": self.name,
            "train": _source_settings(self.train),
            "eval": _source_settings(self.eval),
            "n": "auto" if self.n is None else self.n,
            "boilerplate": "off" if rule is None else {"records": rule.records, "rows": _written(rule.rows)},
            **({"ignore": list(self.ignore)} if self.ignore else {}),
            "short_rows": "off" if self.short_rows is None else self.short_rows,
            "flag_at": _flag_settings(self.flag_at),
            "fail_over": self.fail_over.count if self.fail_over.share is None else _written(self.fail_over.share),
            "max_unchecked": _written(self.max_unchecked),
        }


@dataclass(frozen=True, slots=True)
class Reports:
    """Where the reports go, whose text may appear in them, whether clean files are written, and whether the training
    records that hold flagged rows are listed."""

    dir: str = "evalspill-reports"
    text: Literal["full", "eval", "none"] = "full"
    clean: bool = True
    training: bool = False


@dataclass(frozen=True, slots=True)
class Config:
    """A config file; paths are relative to `base`."""

    path: Path
    base: Path
    checks: tuple[Check, ...]
    reports: Reports = Reports()
    baseline: str = BASELINE
    baseline_named: bool = False
    on_bad_record: Literal["fail", "skip"] = "fail"
    max_bad: Fraction = Fraction(1, 100)
    other_reports: tuple[str, ...] = ()  # report folders of other runs, which hold no data either


def _written(value: Fraction | int) -> object:
    if isinstance(value, int):
        return value
    percent = value * 100
    return f"{percent.numerator}%" if percent.denominator == 1 else f"{_decimal(percent)}%"


def _decimal(value: Fraction) -> str:
    digits = 0
    while (value * 10**digits).denominator != 1 and digits < 30:
        digits += 1
    return f"{int(value * 10**digits) / 10**digits:.{digits}f}" if digits < 15 else str(float(value))


def _flag_settings(rule: FlagRule) -> object:
    if rule.any:
        return "any"
    shares = {"coverage": rule.coverage, "containment": rule.containment}
    named: dict[str, object] = {key: _written(share) for key, share in shares.items() if share is not None}
    return named | ({"longest": rule.longest} if rule.longest is not None else {})


def _source_settings(source: Source) -> dict[str, object]:
    reading = source.reading
    named = {
        "fields": list(reading.fields) if reading.fields is not None else None,
        "id": reading.id, "records": reading.records, "split": reading.split,
        "delimiter": reading.delimiter, "header": reading.header,
        "max_record": reading.max_record if reading.max_record != MAX_RECORD else None,
        "max_empty": _written(source.max_empty) if source.max_empty != Fraction(1, 2) else None,
        "min_files": source.min_files if source.min_files != 1 else None,
        "min_records": source.min_records if source.min_records != 1 else None,
    }  # fmt: skip
    return {"files": list(map(shown_pattern, source.files))} | {
        key: value for key, value in named.items() if value is not None
    }


_SOURCE: dict[str, Kind] = {
    "files": files, "fields": paths, "records": path, "split": choice("line", "paragraph"), "delimiter": delimiter,
    "header": flag, "max_record": positive, "min_files": whole, "min_records": whole, "max_empty": share,
}  # fmt: skip
_auto = choice("auto")
_off = choice("off")


def _eval_fields(node: Node, key: str, mistakes: Mistakes) -> Any:
    if isinstance(node, Scalar) and node.text == "auto":
        return "auto"
    return paths(node, key, mistakes)


_EVAL: dict[str, Kind] = {**_SOURCE, "fields": Kind(_eval_fields, paths.schema), "id": path}
_BOILERPLATE = group({"records": whole, "rows": either("a number of rows, or a share such as 5%", whole, share)})
_FLAG_AT = group({"coverage": share, "longest": positive, "containment": share}, least=1)
_SETTINGS: dict[str, Kind] = {
    "train": group(_SOURCE),
    "eval": group(_EVAL),
    "n": either("auto, or a whole number, 1 or more", _auto, positive),
    "boilerplate": either("off, or {records: 10, rows: 5%}", _off, _BOILERPLATE),
    "ignore": strings,
    "short_rows": either("off, or a whole number, 1 or more", _off, positive),
    "flag_at": either("any, or {coverage: 0.5, longest: 40}", choice("any"), _FLAG_AT),
    "fail_over": either("a number of rows, or a share such as 0.5%", whole, percentage),
    "max_unchecked": share,
}
_check_name = scalar(
    "a name of a-z, 0-9 and -", "[a-z0-9-]+", ("str", "int"), str, {"type": "string", "pattern": "^[a-z0-9-]+$"}
)
_CHECK: dict[str, Kind] = {"name": _check_name, **_SETTINGS}
_TOP: dict[str, Kind] = {
    "version": positive,
    "reports": group({"dir": word, "text": choice("full", "eval", "none"), "clean": flag, "training": flag}),
    "baseline": word,
    "on_bad_record": choice("fail", "skip"),
    "max_bad": share,
}


def _read_checks(node: Node, key: str, mistakes: Mistakes) -> list[tuple[Node, str, dict[str, Any]]]:
    if not isinstance(node, Items) or not node.items:
        mistakes.add(node, key, "must be a list of checks, at least one")
        return []
    return [(item, f"{key}[{n}]", group(_CHECK)(item, f"{key}[{n}]", mistakes)) for n, item in enumerate(node.items)]


_checks = Kind(_read_checks, {"type": "array", "minItems": 1, "items": group(_CHECK).schema})


def json_schema() -> dict[str, Any]:
    """The JSON Schema (draft 7) of evalspill.yaml, made from the tables by which it is read."""
    schema = group({**_TOP, **_SETTINGS, "checks": _checks}).schema
    schema["properties"]["version"] = {"const": 1}
    return {"$schema": "http://json-schema.org/draft-07/schema#", "title": "evalspill.yaml", **schema,
            "required": ["version"]}  # fmt: skip


def find(directory: Path) -> Path:
    """The config in a folder."""
    there = [directory / name for name in NAMES if (directory / name).exists()]
    if not there:
        raise UsageError("no evalspill.yaml here: run `evalspill-guard init`, or name one with --config")
    if len(there) > 1:
        raise UsageError("both evalspill.yaml and evalspill.yml are here: remove one, or name one with --config")
    return there[0]


def load(path: Path) -> Config:
    """Read a config file; raises ConfigError with every mistake, UsageError where there is no such file."""
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError:
        raise UsageError(f"{path}: not UTF-8") from None
    except OSError as error:
        raise UsageError(f"{path}: could not be read: {error.strerror}") from None
    return parse(text, path)


def parse(text: str, path: Path) -> Config:
    """The config that a text holds; raises ConfigError with every mistake."""
    mistakes = Mistakes()
    root = read(text, mistakes)
    if root is not None and not isinstance(root, Mapping):
        mistakes.add(root, "", "must be a mapping: version, train, eval or checks")
    config = _config(root, path, mistakes) if isinstance(root, Mapping) else None
    if mistakes.found or config is None:
        raise ConfigError(str(path), mistakes.found)
    return config


def _config(root: Mapping, path: Path, mistakes: Mistakes) -> Config | None:
    long = "checks" in root.keys
    keys = (
        {**_TOP, "train": _SETTINGS["train"], "checks": _checks} if long else {**_TOP, **_SETTINGS, "checks": _checks}
    )
    top = group(keys)(root, "", mistakes)
    if top.get("version") != 1:
        line = root.keys.get("version", 1)
        if "version" not in root.keys or top.get("version") is not None:
            mistakes.add(line, "version", "version: 1 is required")
    if long:
        given = top.get("checks") or []
    else:
        given = [(root, "", {"name": "default", **{k: v for k, v in top.items() if k in _SETTINGS}})]
    checks = [_check(node, key, values, top.get("train"), mistakes) for node, key, values in given]
    names = [check.name for check in checks]
    for number, name in enumerate(names):
        if name in names[:number]:
            mistakes.add(given[number][0], f"checks[{number}].name", f"another check is called {name}")
    if mistakes.found:
        return None
    reports = Reports(**(top.get("reports") or {}))
    named = {key: top[key] for key in ("baseline", "on_bad_record", "max_bad") if key in top}
    return Config(path, path.absolute().parent, tuple(checks), reports, baseline_named="baseline" in top, **named)


def _check(node: Node, key: str, values: dict[str, Any], train: dict[str, Any] | None, mistakes: Mistakes) -> Check:
    prefix = f"{key}." if key else ""
    if "name" not in values:
        mistakes.add(node, f"{prefix}name", "a check needs a name")
    source, eval_source = values.get("train", train), values.get("eval")
    for what, there in (("train", source), ("eval", eval_source)):
        if there is None:
            mistakes.add(node, f"{prefix}{what}", f"a check needs {what} data: {what}: {{files: ...}}")
        elif "files" not in there:
            mistakes.add(node, f"{prefix}{what}.files", "name the files")
    given = {k: v for k, v in values.items() if k in ("ignore", "max_unchecked") and v is not None}
    check = Check(values.get("name") or "", Source((), Reading()), _eval(eval_source or {}), **given)
    return replace(check, train=_source(Source, source or {}), **_resolved(values))


def _resolved(values: dict[str, Any]) -> dict[str, Any]:
    resolved: dict[str, Any] = {}
    if isinstance(values.get("n"), int):
        resolved["n"] = values["n"]
    if "short_rows" in values:
        resolved["short_rows"] = None if values["short_rows"] == "off" else values["short_rows"]
    if isinstance(values.get("boilerplate"), dict):
        given = values["boilerplate"]
        resolved["boilerplate"] = BoilerplateRule(given.get("records", 10), given.get("rows", Fraction(1, 20)))
    elif values.get("boilerplate") == "off":
        resolved["boilerplate"] = None
    if isinstance(values.get("flag_at"), dict):
        resolved["flag_at"] = FlagRule(**{"coverage": None, "longest": None, **values["flag_at"]})
    elif values.get("flag_at") == "any":
        resolved["flag_at"] = FlagRule(any=True)
    limit = values.get("fail_over")
    if limit is not None:
        resolved["fail_over"] = Gate(limit, None) if isinstance(limit, int) else Gate(None, limit)
    return resolved


def _source(kind: type[Source], values: dict[str, Any], **more: Any) -> Any:
    reading_keys = ("records", "split", "delimiter", "header", "max_record", "id", "fields")
    reading = Reading(**{k: values[k] for k in reading_keys if values.get(k) is not None})
    rest = {k: values[k] for k in ("min_files", "min_records", "max_empty") if values.get(k) is not None}
    return kind(values.get("files") or (), reading, **rest, **more)


def _eval(values: dict[str, Any]) -> EvalSource:
    named = values.get("fields")
    plain = {k: v for k, v in values.items() if not (k == "fields" and v == "auto")}
    source: EvalSource = _source(EvalSource, plain, auto_fields=named == "auto", fields_missing=named is None)
    return source
