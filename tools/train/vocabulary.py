"""Words, names and numbers that facts are made of.

Keys and values come from open sets (pseudo-words, digits, hex, pairs of words), so that only the dialogue can tell an
answer, never the weights. A checksum of each string decides whether it belongs to training or to the test: what a
`Vocabulary(rng, "test")` draws from the held-out sets, a `Vocabulary(rng, "train")` never draws.
"""
import zlib

NAMES = """Alice Bob Carla David Elena Felix Grace Hugo Irene Jonas Karen Leo Maria Nathan Olga Peter Quinn Rosa Simon
Tara Umar Vera Walter Xenia Yusuf Zoe Anna Boris Clara Daniel Emma Frank Gina Henry Iris Jack Kira Louis Mona Nina Oscar
Paula Ralph Sara Tom Ursula Victor Wendy Yara Zack""".split()
ADJECTIVES = """red blue green yellow black white silver golden purple orange old new small large round square quiet
loud heavy light north south east west upper lower main spare hidden broken wooden metal glass paper stone cold warm
bright dark narrow wide first second third last left right inner outer front back royal rusty""".split()
NOUNS = """door gate locker safe vault drawer cabinet room office garage server router printer laptop bicycle car truck
boat engine pump valve clock lamp desk shelf box chest trunk folder account project report meeting invoice ticket order
parcel shipment station platform tower bridge tunnel garden cellar attic kitchen library archive workshop
studio""".split()
CITIES = """Paris London Rome Madrid Berlin Vienna Prague Lisbon Dublin Oslo Athens Cairo Tokyo Seoul Delhi Lima Quito
Havana Boston Denver Austin Dallas Chicago Toronto Sydney Perth Nairobi Lagos Tunis Baku""".split()
ANIMALS = """cat dog horse rabbit parrot turtle falcon tiger wolf bear otter beaver hedgehog squirrel lizard salmon
heron raven panda koala""".split()
FOODS = """soup bread cheese pasta rice salad curry pizza pie cake apple mango peach plum cherry tomato onion pepper
mushroom honey""".split()
COLORS = """red blue green yellow black white silver golden purple orange pink brown grey violet crimson
turquoise""".split()
MONTHS = """January February March April May June July August September October November December""".split()
FIELDS = """retries timeout port workers depth limit threshold batch_size max_items cache_ttl seed level width height
interval capacity quota backoff window epochs""".split()
FILES = """config.py settings.json server.yaml main.rs app.toml deploy.sh utils.go index.ts model.cc
schema.sql""".split()

CONSONANTS, VOWELS = "bcdfghjklmnprstvwz", "aeiou"
HEX = "0123456789abcdef"


def is_held_out(text):
    """True for the eighth of all strings that only the test may use."""
    return zlib.crc32(text.encode()) % 8 == 0


class Vocabulary:
    """Draws keys and values for one split ("train" or "test") from a random.Random."""

    def __init__(self, rng, split):
        self.rng, self.test = rng, split == "test"

    def held(self, make):
        """Draws from `make` until the result belongs to this split."""
        while True:
            text = make()
            if is_held_out(text) == self.test:
                return text

    # --- words ---
    def _syllables(self):
        r = self.rng
        return "".join(r.choice(CONSONANTS) + r.choice(VOWELS) + (r.choice("lnrst") if r.random() < .3 else "")
                       for _ in range(r.choice((2, 2, 3))))

    def word(self):
        return self.held(self._syllables)

    def proper(self):
        return self.word().capitalize()

    def _surname(self):
        r = self.rng
        stem = "".join(r.choice("bcdfghklmnprstvw") + r.choice(VOWELS) for _ in range(2))
        return stem.capitalize() + r.choice(("n", "s", "r", "l", "k", ""))

    def person(self):
        if self.rng.random() < .35:
            return self.rng.choice(NAMES)
        return self.full_name()

    def full_name(self):
        return self.held(lambda: self.rng.choice(NAMES) + " " + self._surname())

    def thing(self):
        return "the " + self.held(lambda: self.rng.choice(ADJECTIVES) + " " + self.rng.choice(NOUNS))

    def place(self):
        return self.rng.choice(CITIES) if self.rng.random() < .5 else self.proper()

    def service(self):
        """A named system, as in "the Zuvor service"."""
        return f"the {self.proper()} " + self.rng.choice(("service", "server", "cluster", "project", "module", "queue"))

    # --- numbers and codes ---
    def digits(self):
        return "".join(self.rng.choice("0123456789") for _ in range(self.rng.choice((3, 4, 4, 5, 6, 7))))

    def small(self):
        return str(self.rng.randrange(2, 1000))

    def hexa(self, length=None):
        return "".join(self.rng.choice(HEX) for _ in range(length or self.rng.choice((6, 8, 12))))

    def uuid(self):
        return "-".join(self.hexa(n) for n in (8, 4, 4, 4, 12))

    def repetitive(self):
        """Digits or hex over two to four symbols: what a copier loses its place in."""
        r = self.rng
        symbols = r.sample(r.choice(("0123456789", HEX)), r.choice((2, 3, 4)))
        return "".join(r.choice(symbols) for _ in range(r.choice((4, 6, 8, 12))))

    def version(self):
        r = self.rng
        return f"{r.randrange(1, 30)}.{r.randrange(0, 20)}.{r.randrange(0, 10)}"

    def code(self):
        r = self.rng
        z = r.random()
        if z < .5:
            return self.digits()
        if z < .7:
            return self.word()
        if z < .85:
            return self.word().upper()[:3] + "-" + self.digits()
        return r.choice(COLORS) + "-" + r.choice(ANIMALS) + "-" + self.small()

    def password(self):
        """Hyphenated, underscored or mixed passwords from open parts."""
        r = self.rng
        part = lambda: r.choice((self.word, self.word, lambda: r.choice(ADJECTIVES), lambda: r.choice(NOUNS)))()
        z = r.random()
        if z < .5:
            return part() + "-" + part() + "-" + self.digits()
        if z < .7:
            return part() + "-" + part()
        if z < .85:
            return part().capitalize() + "_" + self.small() + r.choice(("", "!", "#"))
        return self.word() + self.small() + self.word()

    def phrase(self):
        """A code phrase of two or three words."""
        r = self.rng
        words = [r.choice(ADJECTIVES), r.choice((self.word, lambda: r.choice(NOUNS), lambda: r.choice(ANIMALS)))()]
        if r.random() < .35:
            words.append(r.choice((r.choice(NOUNS), self.word())))
        text = " ".join(words)
        return f'"{text}"' if r.random() < .25 else text

    def amount(self):
        r = self.rng
        n, decimal = self.small(), f"{r.randrange(1, 99)}.{r.randrange(10)}"
        return r.choice((n, n + " dollars", n + " euros", "$" + self.digits(), decimal + " million",
                         f"${decimal} million", decimal + " M", n + " kilograms", f"{r.randrange(1, 99)} percent",
                         f"{r.randrange(2, 99)},{r.randrange(100, 999)}"))

    # --- dates ---
    def date(self):
        return f"{self.rng.choice(MONTHS)} {self.rng.randrange(1, 29)}"

    def year(self):
        return str(self.rng.randrange(1000, 2100))

    def any_date(self):
        r = self.rng
        day, month = r.randrange(1, 29), r.randrange(12)
        return r.choice((f"{day} {MONTHS[month][:3]}", f"{day} {MONTHS[month]} {self.year()}", f"{day} {MONTHS[month]}",
                         f"{MONTHS[month]} {day}, {self.year()}", f"{self.year()}-{month + 1:02d}-{day:02d}",
                         f"{MONTHS[month]} {day}"))

    # --- settings ---
    def field(self):
        if self.rng.random() < .7:
            return self.held(lambda: self.rng.choice(FIELDS) + "_" + self.rng.choice(NOUNS))
        return self.rng.choice(FIELDS)

    # --- near twins ---
    def twin(self, key):
        """A key of the same split that differs from `key` in one word, or in one letter of a single word."""
        for _ in range(50):
            other = self._vary(key)
            if other != key and self._belongs(other):
                return other
        return None

    def _belongs(self, key):
        """Whether `key` may be used in this split (short lists of names and cities are shared by both)."""
        if key in NAMES or key in CITIES:
            return True
        words = key.removeprefix("the ").split(" ")
        is_pseudo_word = len(words) == 1 or (key.startswith("the ") and words[0][0].isupper())
        return is_held_out(words[0].lower() if is_pseudo_word else " ".join(words)) == self.test

    def _vary(self, key):
        r = self.rng
        words = key.split(" ")
        if words[0] == "the" and len(words) == 3 and words[1][0].isupper():
            return f"the {self.proper() if r.random() < .7 else words[1]} " + r.choice((words[2], "service", "server"))
        if words[0] == "the" and len(words) == 3:
            return f"the {r.choice(ADJECTIVES)} {words[2]}" if r.random() < .5 else f"the {words[1]} {r.choice(NOUNS)}"
        if len(words) == 2:
            return f"{r.choice(NAMES)} {words[1]}" if r.random() < .5 else f"{words[0]} {self._surname()}"
        if key in NAMES or key in CITIES:
            return r.choice(NAMES if key in NAMES else CITIES)
        i = r.randrange(len(key))
        letters = VOWELS if key[i].lower() in VOWELS else CONSONANTS
        return (key[:i] + r.choice(letters) + key[i + 1:]).lower().capitalize()
