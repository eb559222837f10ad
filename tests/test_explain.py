"""explain: one eval row, why it is or is not flagged, and that nobody sees it in a job log."""

from pathlib import Path

import pytest
import world

from evalspill_guard.cli import run_command

WHOLE, QUOTED, GREETING, SHORT, TINY = 1, 2, 3, 4, 5  # rows of the eval set


def _words(first: int, count: int) -> str:
    return " ".join(f"w{number}x" for number in range(first, first + count))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Eval rows of 30 words: one whole in training, one with 15 of its words, one not; and two that are too short."""
    rows = [_words(100 * number, 30) for number in range(1, 21)]
    rows[SHORT - 1], rows[TINY - 1] = _words(400, 6), "yes"
    world.jsonl(tmp_path / "evals/qa.jsonl", [{"question": row, "qid": f"q{n}"} for n, row in enumerate(rows, 1)])
    texts = ["nothing here", rows[0], f"he said {_words(200, 15)} and left", f"so {rows[SHORT - 1]} it is"]
    world.jsonl(tmp_path / "train.jsonl", [{"text": text} for text in texts])
    world.config(tmp_path, "  id: qid\nn: 13\n", evals="evals/qa.jsonl")
    monkeypatch.chdir(tmp_path)
    return tmp_path


class Explain:
    """Runs explain; the code, its figures by name, and all that it printed."""

    def __init__(self, capfd: pytest.CaptureFixture[str]) -> None:
        self.capfd = capfd

    def __call__(self, row: object, *more: str) -> tuple[int, dict[str, str], str]:
        place = f"evals/qa.jsonl#{row}" if isinstance(row, int) else str(row)
        code = run_command(["explain", place, *more])
        said = "".join(self.capfd.readouterr())
        pairs = [line.strip().split("  ", 1) for line in said.splitlines() if line.startswith("  ")]
        return code, {pair[0]: pair[1].strip() for pair in pairs if len(pair) == 2}, said


@pytest.fixture
def explain(capfd: pytest.CaptureFixture[str], folder: Path) -> Explain:
    return Explain(capfd)


def test_a_row_that_stands_whole_in_training(explain: Explain) -> None:
    code, told, _ = explain(WHOLE)
    assert code == 0
    assert (told["row"], told["id"], told["words"]) == ("evals/qa.jsonl#1, line 1", "q1", "30 (spaced)")
    assert (told["N"], told["runs"]) == ("13: fixed in the config", "18 of 18 found in training")
    assert (told["containment"], told["coverage"]) == ("1.0000", "1.0000 (30 of 30 words)")
    assert told["longest"] == "30 words, the whole row in one record"
    assert told["found in"] == "train.jsonl:2 (records that hold the row: 1)"
    assert told["flagged"] == "yes: it stands whole in a training record, which is always flagged"


def test_a_quoted_row_shows_the_passage_in_both_texts_and_the_key_that_flags_it(explain: Explain) -> None:
    code, told, said = explain(QUOTED)
    assert code == 0
    assert told["runs"] == "3 of 18 found in training"
    assert told["flagged"] == "yes: it reaches coverage 0.5 of flag_at"
    assert f"    [[{_words(200, 15)}]] {_words(215, 15)}\n" in said
    assert f"training text at train.jsonl:3:\n    he said [[{_words(200, 15)}]] and left\n" in said


@pytest.mark.parametrize(
    ("flag_at", "said"),
    [
        ("{coverage: 0.9, longest: 40}", "no: it is below coverage 0.9 and longest 40 of flag_at"),
        ("{coverage: 0.9, longest: 15}", "yes: it reaches longest 15 of flag_at"),
        ("{containment: 0.1, longest: 15}", "yes: it reaches longest 15 and containment 0.1 of flag_at"),
        ("any", "yes: flag_at is any, and one run is enough"),
    ],
)
def test_the_keys_of_flag_at_that_decide_are_named(flag_at: str, said: str, folder: Path, explain: Explain) -> None:
    world.config(folder, f"n: 13\nflag_at: {flag_at}\n", evals="evals/qa.jsonl")
    assert explain(QUOTED)[1]["flagged"] == said


def test_a_row_of_which_nothing_is_found_says_so(explain: Explain) -> None:
    code, told, said = explain(GREETING)
    assert code == 0
    assert (told["runs"], told["found in"]) == ("0 of 18 found in training", "no training record")
    assert told["flagged"] == "no: nothing that counts was found"
    assert "[[" not in said


def test_short_rows_say_how_they_were_looked_for(explain: Explain) -> None:
    _, short, _ = explain(SHORT)
    assert short["searched for"] == "as a whole, anywhere in a record (fewer than 8 words: too short to score)"
    assert (short["found in"], short["flagged"][:3]) == ("train.jsonl:4 (records that hold the row: 1)", "yes")
    _, tiny, _ = explain(TINY)
    assert tiny["searched for"].startswith("not at all: fewer than 8 words")
    assert (tiny["found in"], tiny["flagged"]) == (
        "unknown: it was not looked for", "no, and not clean: it was not checked"
    )  # fmt: skip


def test_n_says_how_it_was_reached(folder: Path, explain: Explain) -> None:
    world.config(folder, evals="evals/qa.jsonl")
    assert explain(QUOTED)[1]["N"] == "8: the 5th percentile of the lengths of the 20 rows of its class, from 8 to 13"


def test_what_the_filter_set_aside_is_counted(folder: Path, explain: Explain) -> None:
    world.config(folder, "n: 13\nignore: [notice.txt]\n", evals="evals/qa.jsonl")
    (folder / "notice.txt").write_text(_words(200, 14))
    _, told, _ = explain(QUOTED)
    assert told["boilerplate filter"] == "set 2 of 18 runs aside; containment without it: 0.1666"
    assert told["runs"] == "1 of 16 found in training"
    assert explain(GREETING)[1]["boilerplate filter"] == "set nothing aside"
    world.config(folder, "n: 13\nboilerplate: off\n", evals="evals/qa.jsonl")
    assert explain(QUOTED)[1]["boilerplate filter"] == "off"


def test_the_first_ten_places_are_listed_and_all_are_counted(folder: Path, explain: Explain) -> None:
    texts = [f"{number} {_words(200 + number, 14)} end" for number in range(14)]
    world.jsonl(folder / "train.jsonl", [{"text": text} for text in texts])
    found = explain(QUOTED)[1]["found in"]
    places = ", ".join(f"train.jsonl:{line}" for line in range(1, 11))
    assert found == f"{places} (records that hold its most frequent run: 2)"


def test_whether_the_baseline_accepts_it_and_why(folder: Path, explain: Explain) -> None:
    assert explain(QUOTED)[1]["accepted"] == "no: there is no baseline"
    accept = ["baseline", "create", "--reason", "a public saying", "--row", "evals/qa.jsonl#2"]
    assert run_command(accept) == 0
    assert explain(QUOTED)[1]["accepted"] == "yes, up to 15 words: a public saying"
    assert explain(WHOLE)[1]["accepted"] == "no: the baseline does not hold it"
    world.jsonl(folder / "train.jsonl", [{"text": _words(200, 20)}])
    assert explain(QUOTED)[1]["accepted"] == (
        "no more: its longest passage was accepted up to 15 words, and has 20"
    )  # fmt: skip
    world.jsonl(folder / "train.jsonl", [{"text": "nothing"}])
    assert explain(QUOTED)[1]["accepted"] == "its entry is stale: the row is not flagged"


def test_an_expired_entry_is_named(folder: Path, explain: Explain, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1000000000")
    assert run_command(["baseline", "create", "--reason", "x", "--expires", "2001-12-31"]) == 0
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1100000000")
    assert explain(QUOTED)[1]["accepted"] == "no more: its entry expired on 2001-12-31"


def test_a_row_is_explained_once_for_each_check_that_holds_it(folder: Path, explain: Explain) -> None:
    source = "eval: {files: evals/*.jsonl, fields: [question]}"
    (folder / "evalspill.yaml").write_text(
        f"version: 1\ntrain: {{files: train.jsonl}}\nchecks:\n  - {{name: a, {source}, n: 13}}\n"
        f"  - {{name: b, {source}, n: 20}}\n  - {{name: c, eval: {{files: other.jsonl, fields: [question]}}}}\n"
    )
    code, _, said = explain(QUOTED)  # c has no eval file, which does not matter here
    assert code == 0
    assert [line for line in said.splitlines() if line.startswith("check")] == ["check a", "check b"]


@pytest.mark.parametrize("place", ["evals/qa.jsonl:2", "./evals/qa.jsonl#2", "{folder}/evals/qa.jsonl:2"])
def test_a_row_is_named_by_line_or_by_any_path_that_leads_there(place: str, folder: Path, explain: Explain) -> None:
    code, told, _ = explain(place.format(folder=folder))
    assert (code, told["row"]) == (0, "evals/qa.jsonl#2, line 2")


@pytest.mark.parametrize(
    ("place", "advice"),
    [
        ("evals/qu.jsonl#2", "did you mean evals/qa.jsonl?"),
        ("old/qa.jsonl#2", "did you mean evals/qa.jsonl?"),
        ("evals/qa.jsonl#21", "has 20 rows: there is no row 21; the nearest is evals/qa.jsonl#20"),
        ("evals/qa.jsonl#0", "the nearest is evals/qa.jsonl#1"),
        ("evals/qa.jsonl:25", "the nearest are evals/qa.jsonl:19 and evals/qa.jsonl:20"),
        ("evals/qa.jsonl", "name a row as FILE#ROW (rows count from 1) or FILE:LINE"),
        ("train.jsonl#1", "is no eval file of this config"),
    ],
)
def test_what_is_not_there_is_wrong_use_with_the_nearest_name(place: str, advice: str, explain: Explain) -> None:
    code, _, said = explain(place)
    assert code == 2
    assert advice in said


def test_a_line_on_which_several_rows_begin_asks_for_a_row(folder: Path, explain: Explain) -> None:
    rows = ", ".join(f'{{"question": "{_words(100 * n, 20)}"}}' for n in range(3))
    (folder / "evals/qa.json").write_text(f"[{rows}]")
    world.config(folder, evals="evals/qa.json")
    code, _, said = explain("evals/qa.json:1")
    assert (code, "3 rows begin on line 1 of evals/qa.json: evals/qa.json#1 to #3" in said) == (2, True)
    assert explain("evals/qa.json#2")[0] == 0


def test_in_ci_it_is_refused_before_anything_is_read_unless_asked_for(
    explain: Explain, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CI", "true")
    code, _, said = explain(QUOTED)
    assert (code, "w200x" in said, "--in-ci" in said) == (2, False, True)
    code, _, said = explain(QUOTED, "--in-ci")
    assert (code, "w200x" in said) == (0, True)


@pytest.mark.parametrize("policy", ["eval", "none"])
def test_training_text_is_shown_only_where_reports_may_hold_it(policy: str, folder: Path, explain: Explain) -> None:
    world.config(folder, f"reports: {{text: {policy}}}\n", evals="evals/qa.jsonl")
    code, told, said = explain(QUOTED)
    assert (code, "he said" in said, "w200x" in said) == (0, False, True)
    assert told["found in"].startswith("train.jsonl:3")


def test_an_incomplete_scan_is_said_and_is_exit_three(folder: Path, explain: Explain) -> None:
    world.config(folder, train="[train.jsonl, none.jsonl]", evals="evals/qa.jsonl")
    code, told, said = explain(QUOTED)
    assert (code, told["note"]) == (3, "the scan is not complete: more may be found")
    assert "problem: none.jsonl" in said


def test_control_characters_of_a_row_are_shown_as_escapes(folder: Path, explain: Explain) -> None:
    world.jsonl(folder / "evals/qa.jsonl", [{"question": f"\x1b[31m{_words(1, 9)}\n::error::x"}])
    _, _, said = explain(1)
    assert ("\x1b" in said, "\n::error" in said) == (False, False)
    assert "\\x1b[31mw1x" in said


def test_no_report_is_written(folder: Path, explain: Explain) -> None:
    assert explain(QUOTED)[0] == 0
    assert not (folder / "evalspill-reports").exists()
