"""Made-up prose for measuring: Zipf-distributed words, sentences, some records in other scripts. Always the same."""

from __future__ import annotations

import random
from bisect import bisect
from collections.abc import Iterator
from itertools import accumulate

COMMON = """
the of and to a in is that for it as was with on be at by i this had not are but from or have an they which one
you were all her she there would their we him been has when who will no more if out so up said what its about
than into them can only other time new some could these two may first then do any like my now over such our man
me even most made after also did many off before must well back through years much where your way down should
because long each just state those people too mr how little good world make very year still see own work men day
get here old life both between being under three never know same last another while us might great go come since
against right came take used himself few house use place during without again home around small however found
thought went say part general once high upon school every don't it's that's question answer number water side
""".split()
ONSETS = """
b bl br c ch cl cr d dr f fl fr g gl gr h j k l m n p pl pr qu r s sc sh sk sl sp st str t th tr v w
""".split()
NUCLEI = ["a", "e", "i", "o", "u", "ai", "ea", "ee", "ie", "oa", "oo", "ou"]
CODAS = ["", "", "", "l", "m", "n", "nd", "nt", "r", "rd", "rn", "s", "st", "t", "ck", "ng", "x"]
ENDINGS = ["", "", "", "s", "ed", "ing", "er", "ly", "ness", "ment", "able"]
ACCENTS = str.maketrans("aeioucnsz", "áèíöüçñšž")
CYRILLIC = str.maketrans("abcdefghijklmnopqrstuvwxyz", "абцдефгхижклмнопярстуввхыз")
HAN = [chr(code) for code in range(0x4E00, 0x4E00 + 3_000)]
WORDS = 40_000
_ZIPF = 1.13  # gives 5.9 characters a word with its space and marks, as English prose has


def vocabulary(rng: random.Random, size: int = WORDS) -> list[str]:
    """Common English words, then words of one to four syllables, the shorter ones more often in front."""
    found = dict.fromkeys(COMMON)
    while len(found) < size:
        syllables = 1 + min(3, int(rng.random() * (1 + 3 * len(found) / size)))
        stem = "".join(rng.choice(ONSETS) + rng.choice(NUCLEI) + rng.choice(CODAS) for _ in range(syllables))
        found[stem + rng.choice(ENDINGS)] = None
    return list(found)


class Prose:
    """A writer of sentences over one vocabulary."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.words = vocabulary(rng)
        self.shares = list(accumulate((rank + 2.7) ** -_ZIPF for rank in range(len(self.words))))

    def _some(self, count: int) -> list[str]:
        top = self.shares[-1]
        return [self.words[bisect(self.shares, self.rng.random() * top)] for _ in range(count)]

    def sentence(self, words: int) -> str:
        """So many words, with a comma, a number or a bracket here and there."""
        some, chance = self._some(words), self.rng.random()
        if chance < 0.5:
            some[words // 2] += ","
        elif chance < 0.6:
            some[words // 2] = str(self.rng.randrange(3_000))
        elif chance < 0.7:
            some[-1] = f"({some[-1]})"
        text = " ".join(some)
        return text[0].upper() + text[1:] + ("?" if chance > 0.9 else ".")

    def paragraph(self, length: int) -> str:
        """Sentences of 6 to 28 words, about so many characters in all."""
        sentences: list[str] = []
        while length > 0:
            sentences.append(self.sentence(self.rng.randint(6, 28)))
            length -= len(sentences[-1]) + 1
        return " ".join(sentences)

    def chinese(self, length: int) -> str:
        """Clauses of 5 to 16 characters, a few of them far more common than the rest."""
        clauses: list[str] = []
        while length > 0:
            count = self.rng.randint(5, 16)
            clauses.append("".join(HAN[int(len(HAN) * self.rng.random() ** 3)] for _ in range(count)))
            length -= count + 1
        return "，".join(clauses) + "。"

    def foreign(self, length: int, kind: int) -> str:
        """A paragraph that is not ASCII: accented Latin, Cyrillic or Chinese."""
        if kind == 2:
            return self.chinese(length // 3)
        if kind == 1:
            return self.paragraph(length // 2).lower().translate(CYRILLIC)
        return self.paragraph(length).translate(ACCENTS)


def records(prose: Prose) -> Iterator[dict[str, object]]:
    """Training records without end: about 1 kB each, every tenth not ASCII."""
    number = 0
    while True:
        length = prose.rng.randint(600, 1_250)
        text = prose.foreign(length, number // 10 % 3) if number % 10 == 9 else prose.paragraph(length)
        meta = {"lang": "xx" if number % 10 == 9 else "en", "score": prose.rng.random()}
        yield {"id": f"doc-{number:08d}", "text": text, "source": f"crawl/{number % 97:02d}", "meta": meta}
        number += 1


def questions(prose: Prose, count: int) -> Iterator[str]:
    """Eval rows of 20 to 60 words."""
    for _ in range(count):
        yield prose.sentence(prose.rng.randint(20, 60)).replace(".", "?")


def plant(text: str, question: str, way: int, rng: random.Random) -> str:
    """The question as a whole record, quoted inside the text, or quoted with one word changed."""
    if way == 0:
        return question
    words = question.split(" ")
    if way == 2:
        words[rng.randrange(len(words))] = "something"
    middle = text.find(" ", len(text) // 2)
    return f"{text[:middle]} {' '.join(words)} {text[middle:]}"
