"""Facts: what is planted, how it is said, how it is asked for and what the right reply is.

A fact is (relation, key, value), said by templates in which

    {r} relation    {k} {K} key, and with a capital    {p} {P} "key's", and with a capital    {v} value

Three families of facts:

    core     relations between open keys and open values, and settings in files: the distribution the bar is set on
    bench    the kinds that recall benchmarks plant: hyphenated passwords, capitals, amounts, code phrases, dates and
             years, limits of services
    bare     facts without a key ("The passkey is 7391."), one of each relation to a dialogue

Half of the phrasings of the test split (`*_TEST`) are never seen in training.
"""
from dataclasses import dataclass

from vocabulary import ANIMALS, COLORS, FIELDS, FILES, FOODS, NOUNS, Vocabulary

STATE = """The {r} of {k} is {v}.
Please remember that the {r} of {k} is {v}.
{K}: the {r} is {v}.
Note: {p} {r} is {v}.
For {k}, the {r} is {v}.
{v} is the {r} of {k}.
I should mention that the {r} of {k} is {v}.
{P} {r} is {v}.
As for {k}, the {r} is {v}.
Keep in mind that {p} {r} is {v}.
Remember this {r}: {v}. It is for {k}.
It turns out that the {r} of {k} is {v}.
{K} has {v} as its {r}.
We decided that {p} {r} is {v}.
I was told that {p} {r} is {v}.
About {k}: its {r} is {v}.
Set the {r} of {k} to {v}.""".split("\n")
STATE_TEST = """By the way, the {r} of {k} is {v}.
Just so you know, {p} {r} is {v}.
Write this down: the {r} of {k} is {v}.""".split("\n")
ASK = """What is the {r} of {k}?
What is {p} {r}?
Tell me the {r} of {k}.
Do you remember the {r} of {k}?
Earlier I told you the {r} of {k}. What is it?
Give me {p} {r}.
I need the {r} of {k}.
Which {r} did I mention for {k}?
The {r} of {k}?
Please tell me the {r} of {k}.
One more question: what is {p} {r}?
Now, what is the {r} of {k}?
Could you repeat the {r} of {k}?
So what was {p} {r} again?
I forgot the {r} of {k}. What was it?
Quick check: the {r} of {k}?
Help me: what is the {r} of {k}?
What did you note as {p} {r}?
Say {p} {r}.
Let me hear the {r} of {k}.
Of all that I said, what was {p} {r}?
Can you tell me the {r} of {k}?
Do you know {p} {r}?
I would like to know the {r} of {k}.
Let me know {p} {r}.
Could you look up the {r} of {k}?
What is {p} {r}, please?
What do you have as the {r} of {k}?
Which {r} belongs to {k}?
About {k}: which {r} was it?
For {k}, what is the {r}?
What {r} does {k} have?""".split("\n")
# Questions put together from parts, so that no list of phrasings is all that the model knows; none is one of the test's.
ORDER = """State|Repeat|Spell out|Provide|Return|Write|Print|Show|Find|Name|Report|Quote|Read out|Pass me|Bring up|Look up|Fetch
Get me|Output|Reveal|Share|Recount|Mention|Type|Send me|Retrieve|Enter|Dictate|Give""".replace("\n", "|").split("|")
POLITE = """Could you {o}|Would you {o}|Please {o}|You should {o}|I want you to {o}|Will you {o}|Be so kind and {o}|Try to {o}
Now {o}|Next, {o}|Kindly {o}|It is time to {o}|I am asking you to {o}|Go on and {o}""".replace("\n", "|").split("|")
WONDER = """What is|Which one is|What was|Say what is|I ask what is|Who knows what is|Do you see what is|Tell them what is
How do you write|What do we have for|Any idea what is|What would be|And what is|Did you note|Have you got""".replace("\n", "|").split("|")
ASKED_FOR = ("the {r} of {k}", "the {r} of {k}", "{p} {r}", "{p} {r}", "the {r} for {k}", "the {r} that belongs to {k}",
             "the {r} {k} has", "the {r} given for {k}", "the value of {p} {r}", "the exact {r} of {k}")
TAIL = ("", "", "", "", " again", " now", ", please", " for me", " from above", " as noted", " that I gave you",
        " we talked about", " in full", " exactly as it was", " once more")
MADE_SHARE = .5
ASK_TEST = """Can you recall the {r} of {k}?
Remind me: what is the {r} of {k}?
What did I say is {p} {r}?""".split("\n")

# What may stand before a statement or a question in training, so that no single way to begin is all the model knows: one
# of each list, or of one list only. None of the words that begin the test's phrasings is among them.
LEAD_WORDS = """Also And Well Right So Oh Okay Listen Again Finally Now First Next Then Here Look Actually Hi Hey Sure
Good Yes Fine Sorry Hello Anyway Besides Alright""".split()
LEAD_STATE = """as we agreed|you should know|for the record|to be clear|before it slips my mind|in case you need it|one
more thing|a short message|from my notes|as far as I know|as you may have heard|this matters|a new fact|here is a
detail|between us|to repeat it|they told me this|from the list|listen to this|another thing|news for you|some
information|put this in your notes|store this|save this|I found out|we need this later|do not lose this|this came in
today|according to the list|what matters here""".replace("\n", " ").split("|")
LEAD_ASK = """a question|I wonder|tell me|one thing|if you still know it|answer this|from what I told you|think back|look
it up|next question|back to before|according to your notes|I need to know|let us check|please answer|help me out|for the
report|my turn to ask|something else|as you noted|check this|quickly|a last thing""".replace("\n", " ").split("|")
LEAD_SHARE = .3

# Phrasings of one relation only: (statements, questions).
FORMS = {
    "home city": (["{K} lives in {v}.", "{K} moved to {v}.", "The home of {k} is in {v}."],
                  ["Where does {k} live?", "In which city does {k} live?"]),
    "pet": (["{K} has a {v} as a pet.", "The pet of {k} is a {v}."],
            ["What pet does {k} have?", "Which animal is the pet of {k}?"]),
    "favorite food": (["{K} likes {v} most of all.", "{K} loves to eat {v}."],
                      ["What does {k} like to eat?", "What food does {k} like most?"]),
    "owner": (["{K} belongs to {v}.", "{v} owns {k}."], ["Who owns {k}?", "Who does {k} belong to?"]),
    "code": (["To open {k}, use {v}.", "{K} has the code {v}."], ["Which code opens {k}?", "How do I open {k}?"]),
    "capital": (["{v} is the capital city of {k}."], ["Which city is the capital of {k}?"]),
    "price": (["{K} costs {v} dollars."], ["How much does {k} cost?"]),
    "deadline": (["{K} is due on {v}."], ["When is {k} due?"]),
    "birthday": (["{K} was born on {v}."], ["When was {k} born?"]),
    "doctor": (["{K} sees {v}, the doctor."], ["Who is the doctor of {k}?"]),
    "manager": (["{v} manages {k}."], ["Who manages {k}?"]),
    "location": (["{K} is in {v}."], ["Where is {k}?"]),
    "port": (["{K} listens on port {v}."], ["Which port does {k} listen on?"]),
    "passkey": (["The pass key for {k} is {v}. Remember it. {v} is the pass key."],
                ["What is the pass key for {k}?"]),
    "special magic number": (["One of the special magic numbers for {k} is: {v}.",
                              "The special magic number for {k} is: {v}."],
                             ["What is the special magic number for {k} in the text?",
                              "What is the special magic number for {k}?"]),
    # bench family
    "founding year": (["{K} was founded in {v}.", "In {v}, {k} was founded."],
                      ["In which year was {k} founded?", "When was {k} founded?"]),
    "code phrase": (["The code phrase for {k} is {v}.", "To reach {k}, say {v}."],
                    ["What is the code phrase for {k}?", "Which code phrase belongs to {k}?"]),
    "launch date": (["{K} launches on {v}.", "The launch of {k} is planned for {v}."], ["When does {k} launch?"]),
    "budget": (["{K} has a budget of {v}.", "A budget of {v} was approved for {k}."],
               ["How large is the budget of {k}?", "What budget does {k} have?"]),
    "retry limit": (["{K} retries {v} times at most.", "{K} gives up after {v} retries; that is the retry limit."],
                    ["How many times does {k} retry?", "What is the retry limit for {k}?"]),
    "service id": (["{K} has the service id {v}.", "{K} is registered with id {v}; that is the service id."],
                   ["Which service id does {k} have?"]),
    "capital city": (["The capital of {k} is called {v}.", "{K} has its capital city at {v}.",
                      "In {k}, the capital city is {v}."], ["What is the capital of {k}?", "Name the capital of {k}."]),
}

BARE_STATE = """The {r} is {v}.
Please remember: the {r} is {v}.
Note that the {r} is {v}.
Remember that the {r} is {v}.
{R}: {v}
The {r} is {v}. Remember it.
The {r} is {v}. Remember it. {v} is the {r}.
I set the {r} to {v}.
Our {r} is {v}.""".split("\n")
BARE_STATE_TEST = ["By the way, the {r} is {v}.", "Just so you know, the {r} is {v}."]
BARE_ASK = """What is the {r}?
Tell me the {r}.
What was the {r}?
Which {r} did I mention?
What is the {r} that I told you earlier?
Do you remember the {r}?
Please tell me the {r}.
I forgot the {r}. What was it?
Quick check: the {r}?
Could you repeat the {r}?""".split("\n")
BARE_ASK_TEST = ["Can you recall the {r}?", "Remind me: what is the {r}?"]

FILE_STATE = ("{file}: {field} = {v}", "In {file}, {field} is {v}.", "I set {field} to {v} in {file}.",
              "```\n# {file}\n{field} = {v}\n```")
FILE_ASK = ("What is {field} in {file}?", "What did I set {field} to in {file}?",
            "Which value does {field} have in {file}?")


@dataclass(frozen=True)
class Fact:
    """`kind` is "file" (key is (file, field)), "bare" (key is "") or "keyed"."""
    relation: str
    key: object
    value: str
    kind: str = "keyed"


def core_relations(v: Vocabulary):
    """relation -> (draws a key, draws a value)"""
    r, person, thing, place = v.rng, v.person, v.thing, v.place
    return {
        "code": (thing, v.code), "password": (lambda: r.choice((thing, place, person))(), v.code),
        "secret number": (lambda: r.choice((person, place, thing))(), v.digits),
        "passkey": (lambda: r.choice((place, v.proper))(), v.digits),
        "codeword": (lambda: r.choice((person, thing, v.proper))(), v.word),
        "owner": (thing, person), "color": (thing, lambda: r.choice(COLORS)), "price": (thing, v.small),
        "location": (thing, place), "weight": (thing, v.small), "home city": (person, place),
        "pet": (person, lambda: r.choice(ANIMALS)), "favorite food": (person, lambda: r.choice(FOODS)),
        "favorite color": (person, lambda: r.choice(COLORS)), "phone number": (person, v.digits),
        "birthday": (person, v.date), "doctor": (person, person), "badge id": (person, v.hexa),
        "deadline": (thing, v.date), "account number": (person, v.digits), "capital": (v.proper, v.proper),
        "mayor": (place, person), "population": (place, v.digits),
        "version": (lambda: r.choice((v.proper, thing))(), v.version), "port": (v.proper, v.digits),
        "commit": (lambda: r.choice((v.proper, thing))(), v.hexa),
        "manager": (lambda: r.choice((thing, v.proper))(), person),
    }


def bench_relations(v: Vocabulary):
    r = v.rng
    any_key = lambda: r.choice((v.thing, v.place, v.person, v.service, v.proper))()
    system = lambda: r.choice((v.service, v.thing, v.proper))()
    return {
        "password": (any_key, v.password), "access code": (any_key, v.password), "code phrase": (any_key, v.phrase),
        "capital city": (v.proper, v.proper), "budget": (system, v.amount), "fee": (any_key, v.amount),
        "total": (v.thing, v.amount), "launch date": (system, v.any_date), "review date": (system, v.any_date),
        "founding year": (lambda: r.choice((v.service, v.place, v.proper))(), v.year),
        "retry limit": (system, v.small), "timeout": (system, v.small), "service id": (v.service, v.digits),
        "port": (v.service, v.digits), "auditor": (system, v.person), "project lead": (system, v.full_name),
        "serial number": (v.thing, v.repetitive), "token": (system, v.repetitive),
        "account number": (any_key, v.repetitive),
    }


def bare_relations(v: Vocabulary):
    """relation -> draws a value; half of them are qualified by a noun, "the garage code"."""
    plain = {
        "passkey": v.digits, "pass key": v.digits, "password": v.password, "secret number": v.digits,
        "code phrase": v.phrase, "code word": v.word, "secret word": v.word, "access code": v.code, "budget": v.amount,
        "amount": v.amount, "retry limit": v.small, "launch date": v.any_date, "deadline": v.any_date,
        "founding year": v.year, "project lead": v.full_name, "auditor": v.full_name, "service id": v.digits,
        "port number": v.digits, "session token": v.hexa, "capital": v.proper, "magic number": v.digits,
    }
    short = {"code": v.code, "password": v.password, "number": v.digits, "key": v.hexa, "date": v.any_date,
             "fee": v.amount, "limit": v.small, "name": v.proper}
    return plain, short


def capitalised(text):
    return text[:1].upper() + text[1:]


def fill(template, fact, lead=""):
    """The template in words; `lead` ("Well, from my notes: ") makes its first letter small where it is its own."""
    key, big = fact.key if fact.kind == "keyed" else "", (lambda x: x) if lead else capitalised
    if lead and template[0].isalpha() and not template.startswith("I "):
        template = template[0].lower() + template[1:]
    return lead + big(template.format(r=fact.relation, R=big(fact.relation), k=key, K=big(key), v=fact.value,
                                      p=key + "'s", P=big(key) + "'s"))


class FactSource:
    """Draws facts of one split and puts them into words."""

    def __init__(self, rng, split):
        self.rng, self.words, self.test = rng, Vocabulary(rng, split), split == "test"
        self.core, self.bench = core_relations(self.words), bench_relations(self.words)
        self.core_names, self.bench_names = list(self.core), list(self.bench)
        if not self.test:  # a needle of others' benchmarks; the relations whose values look like keys are the hardest
            w = self.words
            self.core["special magic number"] = (lambda: rng.choice((w.word, w.thing, w.person))(), w.digits)
            self.core_names += ["special magic number", "capital", "manager", "owner", "doctor", "mayor", "codeword"]
        self.bare_plain, self.bare_short = bare_relations(self.words)

    # --- drawing ---
    def core_fact(self):
        r, w = self.rng, self.words
        if r.random() < .15:
            key = (r.choice(FILES), w.field())
            return Fact("config", key, self._setting(), "file")
        return self._keyed(self.core, r.choice(self.core_names))

    def _setting(self):
        r, w = self.rng, self.words
        return r.choice((w.small, w.small, w.digits, lambda: f'"{w.word()}"', lambda: r.choice(("true", "false"))))()

    def _keyed(self, table, relation):
        draw_key, draw_value = table[relation]
        key, value = draw_key(), draw_value()
        while value == key:
            value = draw_value()
        return Fact(relation, key, value)

    def bench_fact(self):
        """A keyed fact of the bench family, a bare one, or a setting in capitals (MAX_RETRIES)."""
        z = self.rng.random()
        if z < .22:
            return self._bare()
        if z < .37:
            return self.setting_in(self._file())
        return self._keyed(self.bench, self.rng.choice(self.bench_names))

    def keyed_fact(self):
        """A keyed fact of the core or the bench family."""
        table = self.core if self.rng.random() < .5 else self.bench
        return self._keyed(table, self.rng.choice(list(table)))

    def fact_like(self, fact, value=None):
        """Another fact of the relation of a keyed one."""
        table = self.core if fact.relation in self.core else self.bench
        other = self._keyed(table, fact.relation)
        return Fact(other.relation, other.key, value) if value else other

    def setting_in(self, file):
        field = self.words.field()
        return Fact("config", (file, field.upper() if self.rng.random() < .5 else field), self._setting(), "file")

    def _file(self):
        r = self.rng
        return r.choice(FILES) if r.random() < .5 else self.words.word() + r.choice((".py", ".json", ".yaml", ".toml"))

    def _bare(self):
        r = self.rng
        if r.random() < .5:
            relation = r.choice(list(self.bare_plain))
            return Fact(relation, "", self.bare_plain[relation](), "bare")
        relation = r.choice(list(self.bare_short))
        return Fact(f"{r.choice(NOUNS)} {relation}", "", self.bare_short[relation](), "bare")

    def twin(self, fact):
        """A fact easily taken for `fact`: its key varied, or its key with another relation. None if none is found."""
        if fact.kind == "bare":
            return None
        if fact.kind == "file":
            file, field = fact.key
            key = (self._file(), field) if self.rng.random() < .5 else (file, self._near_field(field))
            return Fact("config", key, self._setting(), "file") if key != fact.key else None
        table = self.core if fact.relation in self.core else self.bench
        if fact.relation not in table:
            return None
        if self.rng.random() < .2:
            same = [n for n in table if n != fact.relation and table[n][0] is table[fact.relation][0]]
            relation = self.rng.choice(same) if same else fact.relation
            return Fact(relation, fact.key, table[relation][1]()) if same else None
        key = self.words.twin(fact.key)
        return Fact(fact.relation, key, table[fact.relation][1]()) if key else None

    def _near_field(self, field):
        other = self.words.field() if "_" not in field or self.test else self.words.held(
            lambda: self.rng.choice(FIELDS) + "_" + field.lower().rsplit("_", 1)[1])
        return other.upper() if field.isupper() else other

    # --- words ---
    def _pick(self, common, own, held_out):
        """Held-out phrasings half of the time in the test, the relation's own .45 of the rest."""
        r = self.rng
        if self.test and r.random() < .5:
            return r.choice(held_out)
        return r.choice(own if own and r.random() < .45 else common)

    def _lead(self, phrases):
        """What stands before a phrasing, mostly nothing; in training only."""
        r = self.rng
        if self.test or r.random() >= LEAD_SHARE:
            return ""
        parts = r.choice(((LEAD_WORDS,), (phrases,), (LEAD_WORDS, phrases), (phrases, phrases)))
        return capitalised(", ".join(r.choice(part) for part in parts)) + r.choice((", ", ", ", ": ", " - "))

    def statement_form(self, fact):
        """One of the ways to state a keyed fact of its relation, to be used for several of them."""
        return self._pick(STATE, FORMS.get(fact.relation, ((), ()))[0], STATE_TEST)

    def statement(self, fact, form=None):
        if form:
            return fill(form, fact)
        if fact.kind == "file":
            return self.rng.choice(FILE_STATE).format(file=fact.key[0], field=fact.key[1], v=fact.value)
        if fact.kind == "bare":
            return fill(self._pick(BARE_STATE, (), BARE_STATE_TEST), fact, self._lead(LEAD_STATE))
        return fill(self._pick(STATE, FORMS.get(fact.relation, ((), ()))[0], STATE_TEST), fact, self._lead(LEAD_STATE))

    def _made_question(self):
        r = self.rng
        what, tail = r.choice(ASKED_FOR), r.choice(TAIL)
        if r.random() < .4:
            return f"{r.choice(WONDER)} {what}{tail}?"
        order = r.choice(ORDER)
        if r.random() < .4:
            return f"{order} {what}{tail}."
        polite = r.choice(POLITE)
        return polite.format(o=order.lower()) + f" {what}{tail}" + ("?" if polite[:5] in ("Could", "Would", "Will ") else ".")

    def question(self, fact):
        if fact.kind == "file":
            return self.rng.choice(FILE_ASK).format(file=fact.key[0], field=fact.key[1])
        if fact.kind == "bare":
            return fill(self._pick(BARE_ASK, (), BARE_ASK_TEST), fact, self._lead(LEAD_ASK))
        form = self._pick(ASK, FORMS.get(fact.relation, ((), ()))[1], ASK_TEST)
        if not self.test and self.rng.random() < MADE_SHARE:
            form = self._made_question()
        return fill(form, fact, self._lead(LEAD_ASK))

    def answer(self, fact):
        """(text before the value, value, text after).

        The space goes with the value: pieces are tokenised one by one, and the value's tokens must be those that it has
        in running text, or it cannot be copied token by token.
        """
        if fact.kind == "file":
            return f"In {fact.key[0]}, {fact.key[1]} is", " " + fact.value, "."
        if fact.kind == "bare":
            return f"The {fact.relation} is", " " + fact.value, "."
        return f"The {fact.relation} of {fact.key} is", " " + fact.value, "."
