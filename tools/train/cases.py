"""Evaluation cases: facts, their distance, the dialogue up to the question, and the reply that is wanted.

    core      one fact; the distribution that the bar is set on. After the fact's turn come, until the distance is reached,
              small talk (.4), competing facts of the same family (.35; two in five of them asked at once) and reading
              matter (.25); then the question
    bench     the same with the kinds of facts that recall benchmarks plant
    several   two or three facts, asked for in one message; ten: ten of them
    row       the last of two to four questions that follow each other, the others answered rightly
    first     one message: the question, then a document of so many tokens with the fact anywhere in it and competing facts
    document  the same with the question behind the document
    many, each, hop, names   the same with a question that takes more than one look (chains.py)

Keys, values and half of the phrasings (and of the ways to put a question to a document) are held out from training.
"""
from dataclasses import dataclass

from dialogues import Dialogues, Memory
from documents import frame
from facts import Fact
from messages import VALUE, message, turn


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


CHAINS = ("many", "each", "hop", "names")
FAMILIES = ("core", "bench", "several", "ten", "row", "first", "document", *CHAINS)
COUNTS = {"several": (2, 3), "ten": (10,), "row": (2, 3, 4)}  # of facts that are asked for; of others one
PLACES = {"first": "first", "document": "last"}  # where a question to a document stands


def make(d, count_tokens, distance, family="core"):
    draw = d.facts.bench_fact if family == "bench" else d.facts.core_fact
    if family in CHAINS:
        return _chain(d, draw, count_tokens, distance, family)
    known, facts = set(), []
    count = d.rng.choice(COUNTS.get(family, (1,)))
    while len(facts) < count:
        facts.append(_new(draw, known))
    pieces = plain_opening(d)
    if family in PLACES:
        text = frame(d.rng, PLACES[family], test=True).format(
            q=d.facts.question(facts[0]), d=_document(d, draw, known, [d.facts.statement(facts[0])], count_tokens, distance))
        asked = d.answered(text, facts)
        return Case(family, distance, pieces + asked[:3], asked[3:-1], facts)
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


def _new(draw, known):
    """A fact of a relation and key that `known` has not, and then has."""
    fact = draw()
    while (fact.relation, fact.key) in known:
        fact = draw()
    known.add((fact.relation, fact.key))
    return fact


def _chain(d, draw, count_tokens, distance, family):
    memory = Memory()
    chain = getattr(d.documents.chains, family)(memory)
    document = _document(d, draw, set(memory.known), chain.lines, count_tokens, distance)
    asked = turn(frame(d.rng, "last", test=True).format(q=chain.question, d=document), *chain.reply)
    values = [Fact(family, "", text.strip()) for text, weight in chain.reply if weight == VALUE]
    return Case(family, distance, plain_opening(d) + asked[:3], asked[3:-1], values)


def _document(d, draw, known, told, count_tokens, distance):
    """Reading matter and competing facts, and anywhere between them, in their order, what is told."""
    lines, filled = [], 0
    while filled < distance:
        is_fact = d.rng.random() < .3
        lines.append(d.facts.statement(_new(draw, known)) if is_fact else d.passage(d.rng.randrange(100, 600)))
        filled += count_tokens([(lines[-1], 0)])
    places = sorted((d.rng.randrange(len(lines) + 1) for _ in told), reverse=True)
    for place, text in zip(places, reversed(told)):
        lines.insert(place, text)
    return "\n".join(lines)


def _between(d, draw, known):
    z = d.rng.random()
    if z < .4:
        return d.talk_turn()
    if z >= .75:
        return turn("Read this: " + d.passage(d.rng.randrange(100, 1500)), ("I have read it.", 0))
    fact = _new(draw, known)
    out = turn(d.facts.statement(fact), ("Noted.", 0))
    return out + d.ask_turn(fact) if d.rng.random() < .4 else out
