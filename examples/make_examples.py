"""Write the compressed training files of this folder from the tables in texts/ and the eval sets.

Run it after a table was changed. The same tables give the same bytes; `{{qa-003}}` in a table stands for the text of
that eval row, `{{qa-008|4 bags->6 bags}}` for an edited copy of it, `{{template}}` for the shared instruction.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
import lzma
import re
from collections.abc import Iterator
from itertools import count, cycle
from pathlib import Path

import zstandard

HERE = Path(__file__).parent
TEXTS = HERE / "texts"
TRAIN = HERE / "data" / "train"
SYSTEM = "You are Brightleaf's support assistant. Be brief, kind and exact."
NAMES = (
    "Amara",
    "Björn",
    "Chiara",
    "Deniz",
    "Elif",
    "Fionn",
    "Greta",
    "Hugo",
    "Ilse",
    "Jamal",
    "Kateřina",
    "Luís",
    "Maëlle",
    "Nikolai",
    "Olu",
    "Priya",
    "Rosa",
)
CITIES = ("Porto", "Graz", "Kraków", "Cork", "Ghent", "Turin", "Aarhus", "Lille", "Tallinn", "Bergen", "Sheffield")
DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday")
MACHINES = ("Fern Mini", "Fern Duo", "Alder One")
PLANT = re.compile(r"\{\{((?:qa|rp)-\d+|template)((?:\|[^}]*)?)\}\}")

Slots = dict[str, str]


def eval_texts() -> dict[str, str]:
    """The eval rows by id, and the instruction that many refund cases begin with."""
    questions = map(json.loads, (HERE / "evals/support_qa.jsonl").read_text("utf-8").splitlines())
    texts = {row["qid"]: row["question"] for row in questions}
    with (HERE / "evals/refund_policy.csv").open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            instruction, _, case = row["prompt"].rpartition("\n")
            texts[row["case_id"]] = case
            texts.setdefault("template", instruction)
    return texts


def planted(text: str, rows: dict[str, str]) -> str:
    """The text with each marker replaced by the eval row it names, edited as it says."""

    def row(marker: re.Match[str]) -> str:
        found = rows[marker[1]]
        for edit in filter(None, marker[2].split("|")):
            old, new = edit.split("->")
            if old not in found:
                raise ValueError(f"{marker[1]} does not hold what the edit replaces")
            found = found.replace(old, new)
        return found

    return PLANT.sub(row, text)


def slots() -> Iterator[Slots]:
    """Names, towns, days and order numbers, a new mixture for each ticket."""
    turns = zip(cycle(NAMES), cycle(CITIES), cycle(DAYS), cycle(MACHINES), count(48_213, 37), strict=False)
    for name, city, day, machine, order in turns:
        yield {"name": name, "city": city, "day": day, "machine": machine, "order": f"BL-{order}"}


def filled(text: str, values: Slots, rows: dict[str, str]) -> str:
    text = planted(text, rows)
    return re.sub(r"\{(\w+)\}", lambda slot: values[slot[1]], text)


def topics() -> Iterator[tuple[str, list[str], list[str]]]:
    """Each block of tickets.txt: its name, what customers wrote, what the team answered."""
    for block in (TEXTS / "tickets.txt").read_text("utf-8").strip().split("\n\n"):
        name, *lines = block.split("\n")
        yield name[2:], [x[2:] for x in lines if x[0] == "U"], [x[2:] for x in lines if x[0] == "A"]


def ticket(number: int, topic: str, asked: str, answered: str) -> bytes:
    roles = zip(("system", "user", "assistant"), (SYSTEM, asked, answered), strict=True)
    messages = [{"role": role, "content": content} for role, content in roles]
    record = {"ticket": f"T-{number}", "topic": topic, "messages": messages}
    return json.dumps(record, ensure_ascii=False).encode() + b"\n"


def tickets(rows: dict[str, str]) -> bytes:
    """One chat a question; a topic's answers take turns."""
    values, numbers, records = slots(), count(10_231), []
    for topic, questions, answers in topics():
        for question, answer in zip(questions, cycle(answers), strict=False):
            mixture = next(values)
            texts = (filled(question, mixture, rows), filled(answer, mixture, rows))
            records.append(ticket(next(numbers), topic, *texts))
    return b"".join(records)


def macros(rows: dict[str, str]) -> bytes:
    """The saved answers, as the help desk exports them."""
    output = io.StringIO()
    with (TEXTS / "macros.csv").open(encoding="utf-8", newline="") as file:
        csv.writer(output, lineterminator="\n").writerows([planted(x, rows) for x in row] for row in csv.reader(file))
    return output.getvalue().encode()


def articles(rows: dict[str, str]) -> bytes:
    """The public help pages."""
    lines = map(json.loads, (TEXTS / "kb_articles.jsonl").read_text("utf-8").splitlines())
    pages = ({**page, "body": planted(page["body"], rows)} for page in lines)
    return b"".join(json.dumps(page, ensure_ascii=False).encode() + b"\n" for page in pages)


def main() -> None:
    rows = eval_texts()
    (TRAIN / "tickets.jsonl.gz").write_bytes(gzip.compress(tickets(rows), 9, mtime=0))
    (TRAIN / "macros.csv.zst").write_bytes(zstandard.compress(macros(rows), 19))
    (TRAIN / "kb_articles.jsonl.xz").write_bytes(lzma.compress(articles(rows)))


if __name__ == "__main__":
    main()
