"""Questions whose answer takes more than one look: several values of one key, and what leads through another fact.

    many     "One of the codes of K is V." several times; all of them are asked for
    each     "What are the codes of K, L and M?": one value of each
    hop      "Where does the owner of K live?": the reply names the owner first, and then where he lives
    names    "VAR A = 17. VAR B = VAR A.": which variables have the value 17
"""
from dataclasses import dataclass

from facts import FORMS, Fact
from messages import FIND, RESTATE, VALUE

MANY_STATE = ("One of the {r}s for {k} is: {v}.", "One of the {r}s of {k} is {v}.", "Another {r} of {k} is {v}.",
              "{v} is one of the {r}s of {k}.", "{k} has {v} among its {r}s.")
MANY_ASK = ("What are all the {r}s for {k} in the text?", "What are all the {r}s for {k} in the text?",
            "What are the {r}s of {k}?", "Name all the {r}s of {k}.", "Which {r}s does {k} have?",
            "List every {r} of {k}.")
EACH_ASK = ("What are all the {r}s for {k} in the text?", "What are the {r}s of {k}?", "Tell me the {r}s of {k}.",
            "Name the {r}s of {k}.")
FIRST_HOPS = ("owner", "manager", "doctor", "auditor", "project lead")
HOP_ASK = ("What is the {b} of the {a} of {k}?", "What is the {b} of {p} {a}?", "Which {b} does the {a} of {k} have?",
           "Tell me the {b} of the {a} of {k}.")
NAMES_ASK = ("Find all variables that are assigned the value {v} in the text.", "Which variables have the value {v}?",
             "Name all variables with the value {v}.")


@dataclass
class Chain:
    """`lines` are told anywhere in a document, in their order; `reply` is pieces (text, weight)."""
    lines: list
    question: str
    reply: list


class Chains:
    """Draws from the facts of a Dialogues; `memory` keeps a key from having two answers."""

    def __init__(self, facts):
        self.facts, self.rng, self.words = facts, facts.rng, facts.words

    def draw(self, memory):
        return self.rng.choices((self.many, self.each, self.hop, self.names), (.45, .12, .18, .25))[0](memory)

    def _named(self, before, values, find):
        """A reply that lists values: to find the next one, or that there is none, is what is hard."""
        reply = [(before, find)]
        for i, value in enumerate(values):
            reply += [(" " + value, VALUE), ("," if i + 1 < len(values) else ".", FIND)]
        return reply

    def _first(self, memory):
        """A new keyed fact, a third of the time of the kind that others' benchmarks ask several of."""
        facts = self.facts
        while True:
            special = self.rng.random() < .35 and "special magic number" in facts.core
            first = facts.fact_like(Fact("special magic number", "", "")) if special else facts.keyed_fact()
            if memory.add(first):
                memory.fresh.remove(first)
                return first

    def each(self, memory):
        """Keys of one relation in one question; facts of other keys of that relation may stand beside them."""
        r, facts = self.rng, self.facts
        asked, count = [self._first(memory)], r.choice((2, 3, 4, 4, 5))
        while len(asked) < count:
            fact = facts.fact_like(asked[0])
            if memory.add(fact):
                memory.fresh.remove(fact)
                asked.append(fact)
        form = facts.statement_form(asked[0]) if r.random() < .6 else None
        keys = [fact.key for fact in asked]
        question = r.choice(EACH_ASK).format(r=asked[0].relation, k=", ".join(keys[:-1]) + " and " + keys[-1])
        reply = []
        for i, fact in enumerate(asked):
            before, value, after = facts.answer(fact)
            reply += [(" " + before if i else before, FIND), (value, VALUE), (after, RESTATE)]
        lines = [facts.statement(fact, form) for fact in asked]
        r.shuffle(lines)
        return Chain(lines, question, reply)

    def many(self, memory):
        r, facts = self.rng, self.facts
        first = self._first(memory)
        values, same = [first.value], r.random() < .6
        for _ in range(r.choice((1, 2, 3, 3, 4))):
            value = facts.fact_like(first).value
            if value not in values:
                values.append(value)
        form, part = r.choice(MANY_STATE[:3]), dict(r=first.relation, k=first.key)
        lines = [(form if same else r.choice(MANY_STATE)).format(v=value, **part) for value in values]
        return Chain(lines, r.choice(MANY_ASK).format(**part),
                     self._named(f"The {first.relation}s of {first.key} are", values, RESTATE))

    def hop(self, memory):
        """A person by a first fact, and what a second tells of the person."""
        r, facts = self.rng, self.facts
        of_persons = [name for name, (key, _) in facts.core.items() if key == self.words.person]
        while True:
            relation = r.choice(FIRST_HOPS)
            table = facts.core if relation in facts.core else facts.bench
            first = Fact(relation, table[relation][0](), self.words.full_name())
            relation = r.choice(["home city"] * 3 + of_persons)
            second = Fact(relation, first.value, facts.core[relation][1]())
            if memory.add(first) and memory.add(second):
                break
        memory.fresh = [fact for fact in memory.fresh if fact not in (first, second)]
        lines = [facts.statement(fact) for fact in (first, second)]
        if r.random() < .4:
            lines.reverse()
        own = FORMS.get(second.relation, ((), ()))[1]
        if own and r.random() < .5:
            question = r.choice(own).format(k=f"the {first.relation} of {first.key}", r=second.relation)
        else:
            question = r.choice(HOP_ASK).format(a=first.relation, b=second.relation, k=first.key, p=first.key + "'s")
        reply = []
        for i, fact in enumerate((first, second)):
            before, value, after = facts.answer(fact)
            reply += [(" " + before if i else before, FIND), (value, VALUE), (after, RESTATE)]
        return Chain(lines, question, reply)

    def names(self, _memory):
        r, value = self.rng, self.words.digits()
        chain = list(dict.fromkeys(self.words.word().upper() for _ in range(r.choice((2, 3, 4, 5)))))
        lines = [f"VAR {name} = {'VAR ' + chain[i - 1] if i else value}." for i, name in enumerate(chain)]
        return Chain(lines, r.choice(NAMES_ASK).format(v=value), self._named(value + ":", chain, FIND))
