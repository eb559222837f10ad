"""report.json holds the figures under the promised names."""

import json

from reports_sample import check, incomplete, run

from evalspill_guard.reports.json_report import report_json
from evalspill_guard.reports.table import FOUND_COLUMNS


def test_the_counts_add_up() -> None:
    [one] = json.loads(report_json(run()))["checks"]
    assert (
        one["rows"] == one["scored"] + one["whole"] + one["too_short"] + one["boilerplate_only"] + one["no_text"] == 9
    )
    assert one["scored"] == one["dirty"] + one["clean"] == 5
    assert (one["flagged"], one["accepted"], one["unchecked"], one["passed"]) == (4, 1, 3, False)


def test_rows_found_have_the_columns_of_the_csv_with_values_of_their_kind() -> None:
    [one] = json.loads(report_json(run()))["checks"]
    first = one["found"][0]
    assert tuple(first) == FOUND_COLUMNS
    assert (first["row"], first["containment"], first["flagged"], first["id"]) == (1, 0.9666, True, "qa-1")
    assert (one["found"][2]["containment"], one["found"][2]["coverage"]) == (None, 1.0)


def test_inputs_are_listed_with_sizes_and_digests() -> None:
    [one] = json.loads(report_json(run()))["checks"]
    file = {
        "path": "data/train/part-0001.jsonl.gz", "digest": "0" * 32,
        "bytes": 123_456_789, "records": 1_000_000, "empty": 12, "bad": 0,
    }  # fmt: skip
    assert one["train"] == {"files": [file], "records": 1_000_000, "empty": 12, "bad": 0, "bytes": 123_456_789}
    assert [file["bytes"] for file in one["eval"]["files"]] == [2_048, 512]


def test_problems_make_the_run_incomplete() -> None:
    report = json.loads(report_json(incomplete(check())))
    assert (report["complete"], report["exit_code"], report["checks"][0]["complete"]) == (False, 3, False)
    problem = {"path": "data/train/<x>.jsonl", "line": 7, "what": "not UTF-8 at byte 12: convert the file"}
    assert report["problems"] == [problem]


def test_the_file_is_ascii_and_the_same_every_time() -> None:
    assert report_json(run()).isascii()
    assert report_json(run()) == report_json(run())
