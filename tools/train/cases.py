"""Evaluation cases: a fact, its distance, the dialogue up to the question, and the reply that is wanted.

The core family is the distribution that the bar is set on. After the fact's turn come, until the distance is reached,
small talk (.4), competing facts of the same family (.35; two in five of them asked at once) and reading matter (.25);
then the question. Keys, values and half of the phrasings are held out from training.
"""
from dataclasses import dataclass

from dialogues import Dialogues, message, turn


@dataclass
class Case:
    """Pieces (text, weight): `dialogue` ends where the reply begins, `reply` ends with <|im_end|>."""
    family: str
    distance: int
    dialogue: list
    reply: list
    facts: list

    def reply_text(self):
        return "".join(text for text, _ in self.reply[:-1])

    def relations(self):
        return ", ".join(fact.relation for fact in self.facts)


def source(seed, passages):
    return Dialogues(seed, passages, "test", bench_share=0, twin_share=0)


def plain_opening(d):
    """The system prompt of an evaluation: none mostly, never one with facts."""
    r = d.rng
    if r.random() >= .35:
        return []
    prompt = r.choice(("You are a helpful assistant.", "Answer from what you were told.",
                       "You are a careful assistant. " + d.passage(r.randrange(40, 300))))
    return message("system", (prompt, 0))


def make(d, count_tokens, distance, family="core"):
    """`family`: "core", "bench" (the kinds that benchmarks plant), "several" (two or three core facts in one message), "row"
    (the last of two to four questions that follow each other, the others answered rightly)."""
    draw = d.facts.bench_fact if family == "bench" else d.facts.core_fact
    known, facts = set(), []
    wanted = {"several": (2, 3), "row": (2, 3, 4)}.get(family, (1,))
    count = d.rng.choice(wanted)
    while len(facts) < count:
        fact = draw()
        if (fact.relation, fact.key) not in known:
            known.add((fact.relation, fact.key))
            facts.append(fact)
    pieces = plain_opening(d)
    for fact in facts:
        pieces += turn(d.facts.statement(fact), ("Noted.", 0))
    filled = 0
    while filled < distance:
        new = _between(d, draw, known)
        pieces += new
        filled += count_tokens(new)
    if family == "row":
        for fact in facts[:-1]:
            pieces += d.ask_turn(fact)
        facts = facts[-1:]
    asked = d.ask_turn(*facts)
    return Case(family, distance, pieces + asked[:3], asked[3:-1], facts)


def _between(d, draw, known):
    z = d.rng.random()
    if z < .4:
        return d.talk_turn()
    if z >= .75:
        return turn("Read this: " + d.passage(d.rng.randrange(100, 1500)), ("I have read it.", 0))
    fact = draw()
    while (fact.relation, fact.key) in known:
        fact = draw()
    known.add((fact.relation, fact.key))
    out = turn(d.facts.statement(fact), ("Noted.", 0))
    return out + d.ask_turn(fact) if d.rng.random() < .4 else out
