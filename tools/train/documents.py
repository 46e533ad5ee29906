"""Messages that hold a document and the question about it: in front of it, behind it, or both.

    document   facts inside a haystack, prose or grid (numbers in rows and columns); one to ten questions, or one that
               takes more than one look (chains.py)
    pairs      a JSON object of keys and values, or a line for each of them; one key asked for

A dialogue of them has several, each with facts of its own, often short: most of what has to be learned about a question
in front is where to look for it, and that is the same at any length. Long dialogues often are one document for most of
their room, half of the time behind its questions. Half of the frames of the test split (`*_TEST`) are never seen in
training.
"""
import json

from chains import Chains
from facts import Fact
from haystacks import Haystacks
from messages import FIND, RESTATE, ROUTINE, VALUE, size_of, turn
from vocabulary import FIELDS

PLAIN_FIRST, PLAIN_LAST = "{q}\n{d}", "{d}\n{q}"
PLAIN_SHARE = .35
CHAIN_SHARE = .06
LONG_CHARS, LONG_SHARE = 7000, .65  # dialogues from so many characters on are one long document so often
SHORT_COUNTS, LONG_COUNTS = (1, 1, 2, 3, 5, 8, 12), (4, 8, 12, 16, 24)  # facts that prose tells
FIRST = ("{q}\n\n{d}", "{q} {d}", "{q}\nRead this: {d}", "{q} Read this: {d}", "Question: {q}\n\nText: {d}",
         "Question: {q}\n{d}", "Answer this from the text below: {q}\n\n{d}", "Read the text and answer. {q}\n{d}",
         "{q} The answer is in this text:\n{d}", "{q}\n```\n{d}\n```", "{q}\n<text>\n{d}\n</text>",
         "I have a question about what follows. {q}\n---\n{d}", "Find the answer in the text. {q} {d}",
         "While you read, look for this: {q}\n{d}", "Task: {q}\nInput: {d}", "{q}\n\n{d}\n\nAnswer the question above.",
         "{q}\n{d}\nAnswer:", "My question: {q}\n\nContext:\n{d}")
LAST = ("{d}\n\n{q}", "{d} {q}", "Read this: {d}\n{q}", "Read this: {d} {q}", "Text: {d}\n\nQuestion: {q}",
        "{d}\nQuestion: {q}\nAnswer:", "<text>\n{d}\n</text>\n{q}", "```\n{d}\n```\n{q}",
        "Here is a text.\n{d}\nNow tell me: {q}", "{d}\n---\n{q}", "Read the text and answer.\n{d}\n{q}",
        "Context:\n{d}\n\nMy question: {q}", "Input: {d}\nTask: {q}",
        "There is something important hidden in this text. Find it.\n{d}\n{q}")
BOTH = ("{q}\n{d}\n{q}", "{q}\n\n{d}\n\nOnce more: {q}", "Question: {q}\n{d}\nQuestion: {q}")
FIRST_TEST = ("{q}\n\nDocument:\n{d}", "Use the report below. {q}\n\n{d}", "{q}\n###\n{d}\n###")
LAST_TEST = ("Document:\n{d}\n\n{q}", "{d}\n\nUse the report above. {q}", "###\n{d}\n###\n{q}")
EXTRACT = "Extract the value for the key from this JSON object.\n"
PAIRS_HEADS = (EXTRACT, EXTRACT, "JSON data:\n", "", "Find the key in this object.\n")
PAIRS_ASK = ('Key: "{}"', 'Key: "{}"', 'What is the value of "{}"?', 'What is the value of the key "{}"?', 'Look up "{}".',
             'Which value has the key "{}"?')


def frame(rng, place, test=False):
    """A template with {q} and {d}; `place` is "first", "last" or "both"."""
    plain, others, held_out = {"first": (PLAIN_FIRST, FIRST, FIRST_TEST), "last": (PLAIN_LAST, LAST, LAST_TEST),
                               "both": (PLAIN_FIRST + "\n{q}", BOTH, BOTH)}[place]
    if test:
        return plain if rng.random() < .5 else rng.choice(held_out)
    return plain if rng.random() < PLAIN_SHARE else rng.choice(others)


class Documents:
    """Draws from the facts, the passages and the generator of a Dialogues."""

    def __init__(self, dialogues):
        self.d, self.rng, self.facts = dialogues, dialogues.rng, dialogues.facts
        self.haystacks = Haystacks(self.rng, self.facts.words, dialogues.passage)
        self.chains = Chains(self.facts)

    # --- texts ---
    def prose(self, memory, n_chars, counts=SHORT_COUNTS, told=()):
        """Lines of a haystack with facts between them; often half of the facts are of one relation.

        As many facts as one of `counts` says; the lines `told` stand between them too, in their order.
        """
        r, line = self.rng, self.haystacks.source()
        lines, size = [], 0
        while size < n_chars:
            lines.append(line())
            size += len(lines[-1]) + 1
        alike, first = r.random() < .4, None
        for i in range(r.choice(counts)):
            fact = self.facts.fact_like(first) if alike and first and i % 2 else self.d.new_fact(memory)
            if alike and first and i % 2 and not memory.add(fact):
                continue
            first = first or (fact if fact.kind == "keyed" else None)
            lines.insert(r.randrange(len(lines) + 1), self.facts.statement(fact))
        places = sorted((r.randrange(len(lines) + 1) for _ in told), reverse=True)
        for place, text in zip(places, reversed(told)):
            lines.insert(place, text)
        gap, per_line = r.choice((" ", "\n", "\n\n")), r.choice((1, 1, 4, 15))
        return gap.join(" ".join(lines[i:i + per_line]) for i in range(0, len(lines), per_line))

    def grid(self, memory, n_chars):
        """Facts as rows and columns."""
        r, w = self.rng, self.facts.words
        draw, columns = r.choice((
            (w.thing, {"price": w.small, "weight": w.small, "code": w.digits, "owner": w.full_name, "deadline": w.date}),
            (w.full_name, {"phone number": w.digits, "badge id": w.hexa, "birthday": w.date, "account number": w.digits}),
            (w.proper, {"population": w.digits, "port": w.digits, "version": w.version, "capital": w.proper}),
            (w.word, {field: r.choice((w.small, w.digits)) for field in r.sample(FIELDS, 5)})))
        columns = {name: columns[name] for name in r.sample(list(columns), r.choice((1, 2, 2, 3, 4)))}
        rows, size = [], 0
        while size < n_chars or len(rows) < 2:
            key = draw()
            cells = {name: Fact(name, key, value()) for name, value in columns.items()}
            if all([memory.add(fact) for fact in cells.values()]):
                rows.append((key.removeprefix("the "), {name: fact.value for name, fact in cells.items()}))
                size += len(str(rows[-1]))
        return self._laid_out(rows, list(columns))

    def _laid_out(self, rows, names):
        z = self.rng.random()
        if z < .3:
            lines = ["| name | " + " | ".join(names) + " |", "|---" * (len(names) + 1) + "|"]
            return "\n".join(lines + ["| " + " | ".join((key, *cells.values())) + " |" for key, cells in rows])
        if z < .5:
            return "\n".join([",".join(("name", *names))] + [",".join((key, *cells.values())) for key, cells in rows])
        if z < .75:
            return "\n".join(f"{key}: " + ", ".join(f"{n} {v}" for n, v in cells.items()) for key, cells in rows)
        if z < .9:
            return "\n".join(f"{key} | " + " | ".join(f"{n} = {v}" for n, v in cells.items()) for key, cells in rows)
        return "[" + ",\n ".join(json.dumps({"name": key, **cells}) for key, cells in rows) + "]"

    # --- messages ---
    def _place(self, is_long=False):
        return self.rng.choices(("first", "last", "both"), (.55, .41, .04) if is_long else (.66, .3, .04))[0]

    def question_count(self, is_long=False):
        return self.rng.choices((1, 2, 3, 5, 10), (.6, .1, .1, .06, .14) if is_long else (.66, .12, .11, .05, .06))[0]

    def _questions(self, facts):
        asked = [self.facts.question(fact) for fact in facts]
        z = self.rng.random()
        if len(asked) > 1 and z < .25:
            return "\n".join(f"{i + 1}. {text}" for i, text in enumerate(asked))
        return ("\n" if z < .5 else " ").join(asked)

    def document_turn(self, memory, n_chars, is_long=False):
        """A document with a question or several, answered; afterwards a plain question or two about the rest."""
        r = self.rng
        before, place = len(memory.fresh), self._place(is_long)
        chain = self.chains.draw(memory) if r.random() < CHAIN_SHARE else None
        if chain or r.random() >= .17:
            text = self.prose(memory, n_chars, LONG_COUNTS if is_long else SHORT_COUNTS, chain.lines if chain else ())
        else:
            text = self.grid(memory, n_chars)
        rest = memory.fresh[before:]
        del memory.fresh[before:]
        r.shuffle(rest)
        if chain:
            out = turn(frame(r, place).format(q=chain.question, d=text), *chain.reply)
        else:
            count = min(self.question_count(is_long), len(rest))
            asked, rest = rest[:count], rest[count:]
            out = self.d.answered(frame(r, place).format(q=self._questions(asked), d=text), asked,
                                  FIND if place == "first" else RESTATE)
        memory.fresh += rest
        for fact in rest[:r.choice((0, 0, 0, 1, 2))]:
            memory.fresh.remove(fact)
            out += self.d.ask_turn(fact)
        return out

    def long_dialogue(self, n_chars, memory):
        """One document for most of the room; then what else it told is asked for, one or many to a message."""
        r = self.rng
        out = self.d.opening(memory)
        out += self.document_turn(memory, int(n_chars * r.uniform(.45, .8)), is_long=True)
        size = size_of(out)
        while size < n_chars and memory.fresh:
            count = r.choice((1, 1, 1, 1, 2, 3, 10))
            asked, memory.fresh = memory.fresh[:count], memory.fresh[count:]
            new = self.d.ask_turn(*asked)
            out += new
            size += size_of(new)
        return out

    def pairs_turn(self, n_chars):
        """Keys and values of a JSON object and one key, asked for in the same message."""
        r, words = self.rng, self.facts.words
        draw, chars_per_row = r.choice(((lambda: words.hexa(8), 46), (words.word, 30), (words.uuid, 190),
                                        (words.repetitive, 40)))
        rows = {draw(): draw() for _ in range(max(2, n_chars // chars_per_row))}
        key = r.choice(list(rows))
        if r.random() < .25:
            return self._lines_turn(rows, key)
        text = r.choice((",\n ", ", ", ",\n")).join(f'"{k}": "{v}"' for k, v in rows.items())
        text = r.choice(PAIRS_HEADS) + "{" + text + "}"
        question = r.choice(PAIRS_ASK).format(key)
        return turn(frame(r, self._place()).format(q=question, d=text),
                           (f'"{key}": "', RESTATE), (rows[key], VALUE), ('"', ROUTINE))

    def _lines_turn(self, rows, key):
        """The same pairs as sentences."""
        what = "special magic uuid" if key.count("-") == 4 else "special magic number"
        text = "\n".join(f"One of the {what}s for {k} is: {v}." for k, v in rows.items())
        place, question = self._place(), f"What is the {what} for {key} in the text?"
        return turn(frame(self.rng, place).format(q=question, d=text),
                    (f"The {what} of {key} is", FIND if place == "first" else RESTATE), (" " + rows[key], VALUE),
                    (".", RESTATE))

    def length(self, most):
        """Short ones are many: as often from 100 to 200 characters as from 2000 to 4000."""
        return int(100 * (max(150, most) / 100) ** self.rng.random())

    def dialogue(self, n_chars, memory):
        r = self.rng
        if n_chars > LONG_CHARS and r.random() < LONG_SHARE:
            return self.long_dialogue(n_chars, memory)
        out = self.d.opening(memory)
        size = size_of(out)
        while size < n_chars:
            z, most = r.random(), max(300, int((n_chars - size) * .9))
            if z < .72:
                new = self.document_turn(memory, self.length(most))
            elif z < .84:
                new = self.pairs_turn(self.length(most))
            elif z < .92 and memory.fresh:
                new = self.d.ask_turn(memory.fresh.pop(r.randrange(len(memory.fresh))))
            else:
                new = r.choice((self.d.talk_turn, lambda: self.d.plant_turn(memory)))()
            out += new
            size += size_of(new)
        return out
