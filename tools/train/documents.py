"""Messages that hold a document and the question about it: in front of it, behind it, or both.

    document   facts inside a haystack, prose or grid (numbers in rows and columns); one to ten questions, or one that
               takes more than one look (chains.py)
    pairs      a JSON object of keys and values, or a line for each of them; one key asked for, then perhaps others
    words      nothing but words; those said most often are asked for
    tools      the user asks, tools return files, the reply answers

A dialogue of them has several, each with facts of its own, often short: most of what has to be learned about a question
in front is where to look for it, and that is the same at any length. Long dialogues often are one document for most of
their room, half of the time behind its questions. Half of the frames of the test split (`*_TEST`) are never seen in
training.
"""
import json

from chains import Chains
from facts import Fact
from haystacks import Haystacks
from messages import FIND, READ, RESTATE, ROUTINE, VALUE, message, size_of, turn
from vocabulary import FIELDS

PLAIN_FIRST, PLAIN_LAST = "{q}\n{d}", "{d}\n{q}"
PLAIN_SHARE = .3
CHAIN_SHARE = .35
LONG_CHARS, LONG_SHARE = 7000, .65  # dialogues from so many characters on are one long document so often
LONG_PAIRS_SHARE = .1  # and this share of them begins with one long object of pairs
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
# Frames put together from parts, of which no two lists are a whole phrasing of the test's.
LOOK = """Look at|See|Go by|Take|Rely on|Consult|Check|Study|Consider|Refer to|Search|Go through|Examine|Answer with
Answer by""".replace("\n", "|").split("|")
WHAT = """notes|page|file|letter|log|minutes|pages|material|passage|story|record|message|paper|memo|chapter|article|transcript
list|manual|email|data|content""".replace("\n", "|").split("|")
MARKS = ("---", "***", "===", '"""', "+++", "~~~", "<<<", "|||", "...", "-----", "====", "**", "~~", "^^^", "%%%", "@@@", "___", "::", "//")
EXTRACT = "Extract the value for the key from this JSON object.\n"
PAIRS_HEADS = (EXTRACT, EXTRACT, "JSON data:\n", "", "Find the key in this object.\n")
PAIRS_ASK = ('Key: "{}"', 'Key: "{}"', 'What is the value of "{}"?', 'What is the value of the key "{}"?', 'Look up "{}".',
             'Which value has the key "{}"?')

WORDS_ASK = ("What are the {n} most frequently appeared words in the coded text?", "What are the {n} most common words in the list?",
             "Which {n} words are said most often?", "Name the {n} most frequent words.")
NUMBERS = ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")


def _made_frame(rng, place):
    """A frame that names the document, marks where it begins or ends, or both."""
    r, gap = rng, rng.choice(("\n", "\n\n", " "))
    look, what, mark = r.choice(LOOK), r.choice(WHAT), r.choice(MARKS)
    where = r.choice(("below", "that follows", "underneath") if place == "first" else ("above", "before this"))
    told = r.choice((f"{look} the {what} {where}.", f"{look} the {what} {where}:", f"The {what} is {where}."))
    head = r.choice(("", f"{what.capitalize()}:\n", f"The {what}:\n", f"# {what.capitalize()}\n", f"[{what}]\n", mark + "\n"))
    text = head + "{d}" + (f"\n{mark}" if head.startswith(mark) or r.random() < .15 else "")
    asked = r.choice(("{q}", "{q}", told + " {q}", "{q} " + told, told + gap + "{q}"))
    return asked + gap + text if place == "first" else text + gap + asked


def frame(rng, place, test=False):
    """A template with {q} and {d}; `place` is "first", "last" or "both"."""
    plain, others, held_out = {"first": (PLAIN_FIRST, FIRST, FIRST_TEST), "last": (PLAIN_LAST, LAST, LAST_TEST),
                               "both": (PLAIN_FIRST + "\n{q}", BOTH, BOTH)}[place]
    if test:
        return plain if rng.random() < .5 else rng.choice(held_out)
    if rng.random() < PLAIN_SHARE:
        return plain
    return _made_frame(rng, place) if place != "both" and rng.random() < .7 else rng.choice(others)


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
        return self.rng.choices((1, 2, 3, 5, 10), (.6, .1, .1, .06, .14) if is_long else (.62, .12, .1, .06, .1))[0]

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
        """Keys and values of a JSON object and one key, asked for in the same message; others of them afterwards."""
        r, words = self.rng, self.facts.words
        draw, chars_per_row = r.choice(((lambda: words.hexa(8), 46), (words.word, 30), (words.uuid, 95),
                                        (words.repetitive, 40)))
        rows = {draw(): draw() for _ in range(max(2, n_chars // chars_per_row))}
        keys = r.sample(list(rows), min(len(rows), r.choice((1, 1, 2, 4))))
        if r.random() < .25:
            return self._lines_turn(rows, keys[0])
        text = r.choice((",\n ", ", ", ",\n")).join(f'"{k}": "{v}"' for k, v in rows.items())
        text = r.choice(PAIRS_HEADS) + "{" + text + "}"
        out = []
        for i, key in enumerate(keys):
            question = r.choice(PAIRS_ASK).format(key)
            out += turn(question if i else frame(r, self._place()).format(q=question, d=text),
                        (f'"{key}": "', RESTATE), (rows[key], VALUE), ('"', ROUTINE))
        return out

    def _lines_turn(self, rows, key):
        """The same pairs as sentences."""
        what = "special magic uuid" if key.count("-") == 4 else "special magic number"
        text = "\n".join(f"One of the {what}s for {k} is: {v}." for k, v in rows.items())
        place, question = self._place(), f"What is the {what} for {key} in the text?"
        return turn(frame(self.rng, place).format(q=question, d=text),
                    (f"The {what} of {key} is", FIND if place == "first" else RESTATE), (" " + rows[key], VALUE),
                    (".", RESTATE))

    def words_turn(self, n_chars):
        """A heap of words, the most frequent of which are asked for: the likelier first, or all alike and told as they come."""
        r, words = self.rng, self.facts.words
        count, n_words = r.choice((1, 2, 3, 3, 5, 10)), n_chars // 7
        if r.random() < .5:
            falls = r.uniform(1.5, 2.5)
            shares = [k ** -falls for k in range(1, r.choice((15, 30, 50)) + 1)]
        else:
            shares = [10] * count + [1] * max(3, n_words // r.choice((3, 6)) - count)
        heap = {words.word(): share * n_words / sum(shares) for share in shares}
        said = [word for word, times in heap.items() for _ in range(max(1, round(times)))]
        r.shuffle(said)
        most = sorted(heap, key=lambda word: (-round(heap[word]), said.index(word)))[:count]
        is_list = r.random() < .5
        text = " ".join(f"{i + 1}. {word}" for i, word in enumerate(said)) if is_list else " ".join(said)
        question = r.choice(WORDS_ASK).format(n=r.choice((count, NUMBERS[count - 1])))
        reply = [(f"The {NUMBERS[count - 1]} most frequent are", RESTATE)]
        for i, word in enumerate(most):
            reply += [(" " + word, VALUE), ("," if i + 1 < count else ".", RESTATE)]
        return turn(frame(r, self._place()).format(q=question, d=text), *reply)

    def _file(self, memory, n_chars):
        """What a tool returned: settings, a document with facts, or lines that tell nothing."""
        r, z = self.rng, self.rng.random()
        if z < .35:
            return self.d.settings_file(memory).strip("`\n")
        if z < .6:
            return self.prose(memory, n_chars)
        line, out = self.haystacks.source(), []
        while sum(map(len, out)) < n_chars:
            out.append(line())
        return "\n".join(out * r.choice((1, 1, 3)))

    def tools_turn(self, memory, n_chars):
        """The user asks, tools are called and return files, then the reply answers; what else they told may be asked later."""
        r, before, count = self.rng, len(memory.fresh), self.rng.choice((1, 1, 2, 3, 5, 8))
        texts = []
        while len(texts) < count or len(memory.fresh) == before:
            texts.append(self._file(memory, n_chars // count))
        r.shuffle(texts)
        rest = memory.fresh[before:]
        del memory.fresh[before:]
        r.shuffle(rest)
        asked, rest = rest[:1 if r.random() < .8 else 2], rest[2:]
        question = self._questions(asked)
        task = r.choice(("Read the files.", "Look at the files first.", "Use the tools.", "Read what there is.", "Go on."))
        is_first, as_user = r.random() < .7, r.random() < .3
        out = message("user", (r.choice((f"{question} {task}", f"{task} {question}", question)) if is_first else task, READ))
        if not is_first:
            texts[-1] += "\n" + question
        for i, text in enumerate(texts):
            call = r.choice(("", '<tool_call>\n{"name": "read_file", "arguments": {"path": "' + self.facts.words.word() +
                             '.txt"}}\n</tool_call>'))
            out += message("assistant", (call, READ))
            text = f"<tool_response>\n{text}\n</tool_response>" if as_user or r.random() < .1 else text
            result = ("user" if as_user else "tool", text)
            out += message(result[0], (text, READ)) if i + 1 < len(texts) else self.d.answered(text, asked, FIND, result[0])
        memory.fresh += rest
        return out

    def length(self, most):
        """Short ones are many: as often from 100 to 200 characters as from 2000 to 4000."""
        return int(100 * (max(150, most) / 100) ** self.rng.random())

    def dialogue(self, n_chars, memory):
        r = self.rng
        if n_chars > LONG_CHARS and r.random() < LONG_SHARE:
            return self.long_dialogue(n_chars, memory)
        out = self.d.opening(memory)
        if n_chars > LONG_CHARS and r.random() < LONG_PAIRS_SHARE:
            out += self.pairs_turn(int(n_chars * r.uniform(.4, .8)))
        size = size_of(out)
        while size < n_chars:
            z, most = r.random(), max(300, int((n_chars - size) * .9))
            if z < .7:
                new = self.document_turn(memory, self.length(most))
            elif z < .81:
                new = self.pairs_turn(self.length(most))
            elif z < .84:
                new = self.words_turn(self.length(most))
            elif z < .88:
                new = self.tools_turn(memory, self.length(most))
            elif z < .94 and memory.fresh:
                new = self.d.ask_turn(memory.fresh.pop(r.randrange(len(memory.fresh))))
            else:
                new = r.choice((self.d.talk_turn, lambda: self.d.plant_turn(memory)))()
            out += new
            size += size_of(new)
        return out
