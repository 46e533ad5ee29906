"""ChatML dialogues in which facts are planted and asked for again.

A dialogue is a list of pieces (text, weight), see messages.py. Shapes:

    late       many facts early, among fillers and reading matter; the questions in runs at the end (long distances)
    chat       planting, asking and small talk mixed (short and middle distances)
    haystack   a few facts inside one long reading
    table      keys and values of one JSON object
    register   many facts of one relation, each inside a reading of its own; some have values in sequence
    documents  a document and the question about it in one message (documents.py)
"""
import random
import re

from documents import Documents
from facts import FactSource
from messages import FIND, READ, RESTATE, ROUTINE, VALUE, message, size_of, turn
from vocabulary import ADJECTIVES, ANIMALS, CITIES, FILES, FOODS, NOUNS

SEVERAL = .18  # share of messages with several questions: more, and single replies stop ending where they should
ACKNOWLEDGEMENTS = ("Noted.", "I will remember that.", "Understood.", "Okay.", "Got it.")
SYSTEM_PROMPTS = ("You are a helpful assistant.", "Answer from what you were told.", "You are a careful assistant.",
                  "You are an agent that works on a code base.")


def load_passages(path):
    """The corpus as one line of printable ASCII."""
    with open(path, errors="ignore") as file:
        text = re.sub(r"\s*\n\s*", " ", file.read())
    return re.sub(r"[^\x20-\x7e]", "", text)


class Memory:
    """The facts of one dialogue: all of them, and those not asked for yet."""

    def __init__(self):
        self.known, self.fresh = {}, []

    def add(self, fact):
        """False if the dialogue has an answer for this relation and key already."""
        if (fact.relation, fact.key) in self.known:
            return False
        self.known[fact.relation, fact.key] = fact
        self.fresh.append(fact)
        return True


class Dialogues:
    """An endless source of dialogues of one split; the same seed gives the same dialogues."""

    def __init__(self, seed, passages, split="train", bench_share=.4, twin_share=.3):
        self.rng, self.passages = random.Random(seed), passages
        self.facts = FactSource(self.rng, split)
        self.bench_share, self.twin_share = bench_share, twin_share
        self.documents = Documents(self)

    # --- parts ---
    def passage(self, n_chars):
        i = self.rng.randrange(max(1, len(self.passages) - n_chars))
        text = self.passages[i:i + n_chars]
        return text[text.find(" ") + 1:text.rfind(" ")]

    def new_fact(self, memory):
        """Draws a fact that `memory` has no answer for, and adds it; often a near twin of one that is known."""
        r = self.rng
        while True:
            fact = None
            if memory.known and r.random() < self.twin_share:
                fact = self.facts.twin(r.choice(list(memory.known.values())))
            if fact is None:
                fact = self.facts.bench_fact() if r.random() < self.bench_share else self.facts.core_fact()
            if memory.add(fact):
                return fact

    def small_talk(self):
        """(user, reply) without any fact."""
        r = self.rng
        n, n2, c = r.choice(NOUNS), r.choice(NOUNS), r.choice(CITIES)
        f, f2, a, b = r.choice(FOODS), r.choice(FOODS), r.choice(ANIMALS), r.choice(ANIMALS)
        j, j2 = r.choice(ADJECTIVES), r.choice(ADJECTIVES)
        return r.choice((
            (f"What is a {n}?", f"A {n} is a {j} thing that people keep near a {n2}."),
            (f"Tell me about the city of {c}.", f"{c} is a {j} city with a {j2} {n} and many {n2}s."),
            (f"How do I cook {f}?", f"Cook the {f} with {f2} and serve it {j}."),
            (f"Where does the {a} live?", f"The {a} lives near a {j} {n} and eats {f}."),
            (f"Can you describe a {j} {n}?", f"A {j} {n} looks {j2} and stands next to a {n2}."),
            (f"Give me a tip about {f} and {f2}.", f"Mix the {f} with {f2}, then wait for the {n}."),
            (f"What do you think of {c} in winter?", f"{c} is {j} and {j2} in winter, but people like the {f}."),
            (f"Is the {a} larger than the {b}?", f"The {a} and the {b} are both {j} animals."),
            ("Hello!", "Hello! How can I help you?"), ("Thank you.", "You are welcome."),
            ("How are you?", "I am fine, thank you.")))

    def settings_file(self, memory):
        """A fenced file of several settings, each one a fact."""
        r = self.rng
        file = r.choice(FILES) if r.random() < .5 else self.facts.words.word() + r.choice((".py", ".json", ".yaml"))
        form = r.choice(("{} = {}", "{}: {}", '"{}": {},', "  {}: {}"))
        lines = []
        for _ in range(r.choice((1, 2, 3, 5, 8))):
            fact = self.facts.setting_in(file)
            if memory.add(fact):
                lines.append(form.format(fact.key[1], fact.value))
        if r.random() < .4:
            lines.append(f"def {self.facts.words.word()}():\n    return {self.facts.words.small()}")
        return "```\n# " + file + "\n" + "\n".join(lines) + "\n```"

    def planting(self, memory):
        """Text that states one to eight new facts: bare, between passages, in a file."""
        r = self.rng
        if r.random() < .08:
            text = self.settings_file(memory)
        else:
            count = r.choice((1, 1, 1, 2, 3, 5))
            text = (" " if r.random() < .7 else "\n").join(self.facts.statement(self.new_fact(memory))
                                                         for _ in range(count))
        if r.random() < .2:
            text = self.passage(r.randrange(60, 400)) + " " + text
            text += " " + self.passage(r.randrange(60, 400)) if r.random() < .5 else ""
        return text

    # --- turns ---
    def plant_turn(self, memory):
        """As a user's message, or as what a tool returned."""
        text, z = self.planting(memory), self.rng.random()
        reply = (self.rng.choice(ACKNOWLEDGEMENTS), ROUTINE)
        if z < .05:
            return turn(text, reply, role="tool")
        return turn(f"<tool_response>\n{text}\n</tool_response>" if z < .1 else text, reply)

    def ask_turn(self, *facts):
        """One question, or several in one message answered in order."""
        return self.answered(" ".join(self.facts.question(fact) for fact in facts), facts)

    def answered(self, text, facts, weight=RESTATE, role="user"):
        """A message that asks for these facts (or the last before the reply), and the reply that gives them in order.

        `weight` is that of what it restates of the first question.
        """
        reply = []
        for i, fact in enumerate(facts):
            before, value, after = self.facts.answer(fact)
            reply += [(" " + before if i else before, FIND if i else weight), (value, VALUE), (after, RESTATE)]
        return turn(text, *reply, role=role)

    def questions_at_once(self):
        return self.rng.choice((2, 2, 2, 3, 3, 3, 4, 6, 10)) if self.rng.random() < SEVERAL else 1

    def talk_turn(self):
        user, reply = self.small_talk()
        return turn(user, (reply, .2))

    def read_turn(self, most):
        return turn("Read this: " + self.passage(self.rng.randrange(100, most)), ("I have read it.", ROUTINE))

    def opening(self, memory):
        """A system prompt in a third of the dialogues; it may state facts."""
        r = self.rng
        if r.random() >= .35:
            return []
        text, z = r.choice(SYSTEM_PROMPTS), r.random()
        if z < .35:
            text += " " + self.passage(r.randrange(40, 300))
        elif z < .7:
            text += " " + " ".join(self.facts.statement(self.new_fact(memory)) for _ in range(r.choice((1, 2, 4))))
        return message("system", (text, READ))

    # --- shapes ---
    def late(self, n_chars):
        r, memory = self.rng, Memory()
        dense = .3 + .7 * r.random()
        share = r.uniform(.35, .55) if dense > .5 else r.uniform(.55, .8)
        plant_rate, most = .15 + .7 * dense, r.choice((300, 300, 800, 1500))
        out = self.opening(memory)
        size = size_of(out)
        while size < share * n_chars or not memory.fresh:
            z = r.random()
            if z < plant_rate or not memory.known:
                new = self.plant_turn(memory)
            elif z < plant_rate + .1 and len(memory.fresh) > 3:
                new = self.ask_turn(memory.fresh.pop(r.choice((-1, -1, r.randrange(len(memory.fresh))))))
            else:
                new = self.talk_turn() if r.random() < .7 else self.read_turn(most)
            out += new
            size += size_of(new)
        r.shuffle(memory.fresh)
        while size < n_chars and memory.fresh:
            z = r.random()
            if z < .8:
                count = self.questions_at_once()
                new = self.ask_turn(*(memory.fresh.pop(0) for _ in range(min(count, len(memory.fresh)))))
            elif z < .9:
                new = self.plant_turn(memory)
            else:
                new = self.talk_turn() if r.random() < .7 else self.read_turn(600)
            out += new
            size += size_of(new)
        return out

    def chat(self, n_chars):
        """Asks mostly for facts not asked for yet (an earlier answer would be the nearer copy), often the oldest."""
        r, memory = self.rng, Memory()
        out, dense, most = self.opening(memory), r.random(), 2500 if r.random() < .5 else 700
        size = size_of(out)
        while size < n_chars:
            z = r.random()
            if not memory.known or z < .12 + .25 * dense:
                new = self.plant_turn(memory)
            elif z < .8 and memory.fresh and r.random() < .85:
                oldest, count = r.random() < .5, min(self.questions_at_once(), len(memory.fresh))
                new = self.ask_turn(*(memory.fresh.pop(0 if oldest else r.randrange(len(memory.fresh)))
                                      for _ in range(count)))
            elif z < .8 and (memory.fresh or r.random() < .4):
                new = self.ask_turn(r.choice(list(memory.known.values())))
            elif z < .9:
                new = self.talk_turn()
            else:
                new = self.read_turn(most)
            out += new
            size += size_of(new)
        return out

    def haystack(self, n_chars):
        r, memory = self.rng, Memory()
        out = self.opening(memory)
        count, body, parts = r.choice((2, 4, 8, 16)), int(n_chars * r.uniform(.5, .85)), []
        for _ in range(count):
            parts.append(self.passage(max(80, int(body / count * r.uniform(.3, 1.7)))))
            parts.append(self.facts.statement(self.new_fact(memory)))
        parts.append(self.passage(max(80, body // count)))
        out += turn("\n".join(parts), ("I have read it.", ROUTINE))
        r.shuffle(memory.fresh)
        for fact in memory.fresh:
            if size_of(out) >= n_chars:
                break
            out += self.ask_turn(fact)
        return out

    def register(self, n_chars):
        """Only the key tells the facts apart: what is said about them, and often most of the value, is the same."""
        r, memory = self.rng, Memory()
        first = self.facts.keyed_fact()
        out, size, step, value = self.opening(memory), 0, r.randrange(1, 30), r.randrange(1000, 900000)
        in_sequence, same_form, most = r.random() < .3, r.random() < .5, r.choice((150, 400, 1000))
        template = self.facts.statement_form(first) if same_form else None
        while size < r.uniform(.5, .75) * n_chars or not memory.fresh:
            fact = self.facts.fact_like(first, str(value) if in_sequence else None)
            value += step
            if not memory.add(fact):
                continue
            text = self.facts.statement(fact, template)
            before, after = self.passage(r.randrange(60, most)), self.passage(r.randrange(60, most))
            new = turn(f"Read this: {before} {text} {after}", ("I have read it.", ROUTINE))
            out += new
            size += size_of(new)
        r.shuffle(memory.fresh)
        while size < n_chars and memory.fresh:
            new = self.ask_turn(memory.fresh.pop())
            out += new
            size += size_of(new)
        return out

    def table(self, n_chars):
        r, words = self.rng, self.facts.words
        draw, chars_per_row = r.choice(((lambda: words.hexa(8), 46), (words.word, 30), (words.uuid, 190),
                                        (words.repetitive, 40)))
        rows = {draw(): draw() for _ in range(max(2, int(n_chars * r.uniform(.3, .7) / chars_per_row)))}
        out = turn("Extract the value for the key from this JSON object.\n{" +
                   ",\n ".join(f'"{k}": "{v}"' for k, v in rows.items()) + "}", ("I have read it.", ROUTINE))
        size, keys = size_of(out), list(rows)
        r.shuffle(keys)
        for key in keys:
            if size >= n_chars:
                break
            new = turn(f'Key: "{key}"', (f'"{key}": "', RESTATE), (rows[key], VALUE), ('"', ROUTINE))
            out += new
            size += size_of(new)
        return out

    def document_dialogue(self, n_chars):
        return self.documents.dialogue(n_chars, Memory())

    def dialogue(self, n_chars):
        shares = {self.document_dialogue: (.42, .42), self.late: (.15, .27), self.chat: (.24, .11),
                  self.register: (.09, .1), self.haystack: (.05, .05), self.table: (.05, .05)}
        is_long = n_chars > 5000
        return self.rng.choices(list(shares), [share[is_long] for share in shares.values()])[0](n_chars)
