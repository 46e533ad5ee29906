"""Haystacks: what documents consist of besides the facts.

Each kind gives lines that state nothing that is asked for. The sentences of `ebb bench` are none of them, so that they stay
unseen; of the kinds, novel, noise and numbers are as others' benchmarks have them.
"""
from vocabulary import ADJECTIVES, ANIMALS, CITIES, FOODS, MONTHS, NOUNS

VERBS = """opened closed carried found lost moved cleaned sold bought drew lifted counted passed hid covered filled
emptied marked followed noticed""".split()
WHEN = """yesterday|at noon|in the evening|two days later|every morning|once more|after dinner|in silence|with a laugh|for no
reason|at last|before breakfast|in a hurry|all the same""".replace("\n", " ").split("|")
LEVELS = ("INFO", "DEBUG", "WARN", "ERROR", "info", "debug")
EVENTS = ("started", "finished", "is waiting", "was retried", "took {n} ms", "read {n} rows", "sent {n} bytes", "is idle")


class Haystacks:
    """Draws lines; `passage(n_chars)` gives reading matter, `words` is the vocabulary of the split."""

    def __init__(self, rng, words, passage):
        self.rng, self.words, self.passage = rng, words, passage
        self.kinds = (self.novel, self.novel, self.novel, self.tale, self.tale, self.noise, self.readings, self.log,
                      self.remarks, self.code)

    def source(self):
        """A function that gives the next line of one haystack: of one kind, or of two in turn."""
        r = self.rng
        first = r.choice(self.kinds)()
        if r.random() < .75:
            return first
        second = r.choice(self.kinds)()
        return lambda: (first if r.random() < .6 else second)()

    def novel(self):
        length = self.rng.choice((80, 200, 500))
        return lambda: self.passage(self.rng.randrange(length // 2, length * 2))

    def _tale_sentence(self):
        r = self.rng
        who = r.choice((lambda: f"The {r.choice(ADJECTIVES)} {r.choice(ANIMALS)}", lambda: f"A {r.choice(ANIMALS)}",
                        lambda: f"Somebody from {r.choice(CITIES)}", lambda: "They", lambda: "Nobody"))()
        what = r.choice((f"the {r.choice(NOUNS)}", f"a {r.choice(ADJECTIVES)} {r.choice(NOUNS)}",
                         f"some {r.choice(FOODS)}"))
        return f"{who} {r.choice(VERBS)} {what} {r.choice(WHEN)}."

    def tale(self):
        return self._tale_sentence

    def noise(self):
        """A handful of sentences, over and over, as in the passkey test."""
        few = [self._tale_sentence() if self.rng.random() < .6 else f"The {n} is {j}."
               for n, j in zip(self.rng.choices(NOUNS, k=6), self.rng.choices(ADJECTIVES, k=6))]
        few, i = few[:self.rng.randrange(2, 7)], [0]

        def line():
            i[0] += 1
            return few[i[0] % len(few)]
        return line

    def readings(self):
        """Measured numbers, line by line."""
        r, minute, place = self.rng, [self.rng.randrange(600)], self.words.proper()
        unit = r.choice(("degrees", "mm", "V", "km/h", "percent"))
        form = r.choice(("{t} {p} {a} {u}", "{t},{a},{b}", "At {t}, sensor {i} reads {a} {u}.", "{p} {i}: {a} | {b}",
                         "On {m} {i} the gauge showed {a} {u}.", "| {t} | {a} | {b} |"))

        def line():
            minute[0] = (minute[0] + r.randrange(1, 20)) % 1440
            return form.format(t=f"{minute[0] // 60:02d}:{minute[0] % 60:02d}", p=place, i=r.randrange(1, 29), u=unit,
                               a=f"{r.uniform(0, 99):.1f}", b=r.randrange(1000), m=r.choice(MONTHS))
        return line

    def log(self):
        r, second = self.rng, [self.rng.randrange(80000)]
        day = f"{r.randrange(2000, 2030)}-{r.randrange(1, 13):02d}-{r.randrange(1, 29):02d}"

        def line():
            second[0] = (second[0] + r.randrange(1, 90)) % 86400
            s, event = second[0], r.choice(EVENTS).format(n=r.randrange(1, 9000))
            return (f"{day} {s // 3600:02d}:{s // 60 % 60:02d}:{s % 60:02d} {r.choice(LEVELS)} "
                    f"{self.words.word()}-{r.randrange(1, 20)} {event}")
        return line

    def remarks(self):
        """Sentences that name what facts are about, and tell nothing of it."""
        r, w = self.rng, self.words
        draw = lambda: r.choice((w.thing, w.full_name, w.proper, w.service))()
        return lambda: r.choice(("They spoke of {} for a while.", "Nothing was heard of {} that day.",
                                 "He thought of {} again.", "Who had ever seen {}?", "A story about {} went around.",
                                 "She would not hear of {}.")).format(draw())

    def code(self):
        r, w = self.rng, self.words
        return lambda: r.choice((f"def {w.word()}({w.word()}):", f"    return {w.word()}({r.randrange(100)})",
                                 f"    {w.word()} = {w.word()} + {r.randrange(100)}", f"# {self._tale_sentence()}",
                                 f"    if {w.word()} < {r.randrange(100)}:", f"import {w.word()}"))
