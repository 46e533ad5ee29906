"""Self-checks of the generator: python -m unittest test_generator (a few seconds, no torch training)."""
import os
import random
import unittest

import numpy as np
import torch
from tokenizers import Tokenizer

import batches
import cases
from dialogues import Dialogues
from documents import FIRST_TEST, LAST_TEST
from facts import ASK_TEST, BARE_ASK_TEST, BARE_STATE_TEST, STATE_TEST, FactSource
from messages import VALUE
from model import Model, Shape, from_weights, mask_of
from sight import HEAD, Sight, whole
from vocabulary import Vocabulary, is_held_out

PASSAGES = " ".join(f"Sentence number {i} of a text that says nothing." for i in range(4000))
TOKENIZER = Tokenizer.from_file(os.path.join(os.path.dirname(os.path.abspath(__file__)), "tokenizer.json"))


def text_of(pieces):
    return "".join(text for text, _ in pieces)


class GeneratorTest(unittest.TestCase):
    def test_same_seed_gives_the_same_dialogues(self):
        a, b = Dialogues(4, PASSAGES), Dialogues(4, PASSAGES)
        for _ in range(10):
            self.assertEqual(a.dialogue(4000), b.dialogue(4000))

    def test_pseudo_words_and_pairs_of_the_splits_are_disjoint(self):
        drawn = {}
        for split in ("train", "test"):
            words = Vocabulary(random.Random(1), split)
            drawn[split] = {draw() for draw in (words.word, words.thing, words.full_name) for _ in range(2000)}
        self.assertFalse(drawn["train"] & drawn["test"])

    def test_twins_stay_in_their_split(self):
        words = Vocabulary(random.Random(2), "train")
        for draw in (words.proper, words.thing, words.full_name, words.service):
            for _ in range(300):
                key = draw()
                twin = words.twin(key)
                self.assertNotEqual(key, twin)
                if twin and draw == words.thing:
                    self.assertFalse(is_held_out(twin.removeprefix("the ")))
                if twin and draw == words.proper:
                    self.assertFalse(is_held_out(twin.lower()))

    def test_training_never_uses_the_phrasings_of_the_test(self):
        starts = {template.split("{")[0] for template in STATE_TEST + ASK_TEST + BARE_STATE_TEST + BARE_ASK_TEST}
        source = FactSource(random.Random(3), "train")
        for _ in range(2000):
            fact = source.bench_fact() if source.rng.random() < .5 else source.core_fact()
            said = source.statement(fact) + source.question(fact)
            self.assertFalse([start for start in starts if start in said])

    def test_every_value_that_is_asked_was_stated_before(self):
        source = Dialogues(5, PASSAGES)
        for _ in range(40):
            pieces, before = source.dialogue(6000), ""
            for text, weight in pieces:
                if weight == VALUE:
                    self.assertIn(text.strip().lower(), before)
                before += text.lower()

    def test_a_case_has_its_distance_and_its_facts(self):
        count = lambda pieces: len(batches.encode(TOKENIZER, pieces)[0])
        source = cases.source(6, PASSAGES)
        for family in cases.FAMILIES:
            case = cases.make(source, count, 512, family)
            self.assertGreaterEqual(count(case.dialogue), 512)
            for fact in case.facts:
                self.assertIn(fact.value, case.reply_text())
                self.assertIn(fact.value.lower(), text_of(case.dialogue).lower())

    def test_a_question_to_a_document_stands_where_its_family_says(self):
        count = lambda pieces: len(batches.encode(TOKENIZER, pieces)[0])
        source = cases.source(8, PASSAGES)
        for family, comes_first in (("first", True), ("document", False)):
            for _ in range(10):
                case = cases.make(source, count, 300, family)
                message, fact = case.dialogue[-2][0], case.facts[0]
                self.assertIn(fact.value, message)
                key = fact.key if fact.kind == "keyed" else fact.key[1]
                asked = message[:150] if comes_first else message[-150:]
                self.assertIn(key.lower(), asked.lower())

    def test_training_never_puts_a_question_to_a_document_as_the_test_does(self):
        marks = ("Document:", "Use the report", "###")
        self.assertTrue(all(any(mark in frame for mark in marks) for frame in FIRST_TEST + LAST_TEST))
        source = Dialogues(9, PASSAGES)
        for _ in range(60):
            text = text_of(source.document_dialogue(4000))
            self.assertFalse([mark for mark in marks if mark in text])

    def test_a_grown_model_computes_the_same(self):
        small = Model(Shape(layers=2, width=64, hidden=96, vocab=300))
        large = from_weights(small.state_dict(), 5, small.shape)
        ids, places = torch.randint(0, 300, (1, 20)), torch.arange(20)
        with torch.no_grad(), torch.autocast("cpu", dtype=torch.bfloat16):
            self.assertTrue(torch.equal(small.hidden(ids, places), large.hidden(ids, places)))
        self.assertEqual(large.shape.layers, 5)

    def test_short_sight_hides_what_no_answer_needs(self):
        sight, rng, shown = Sight(TOKENIZER), random.Random(3), []
        source = Dialogues(5, PASSAGES)
        for _ in range(12):
            ids, weights = batches.sequence(source, TOKENIZER, 1024)
            far, need, rank = sight.short(rng, ids, weights)
            is_value = [i for i, weight in enumerate(weights) if weight == VALUE]
            for i in is_value:
                self.assertLess(need[i], HEAD)
                told = [k for k in range(i) if ids[k] == ids[i] and weights[k] != VALUE]
                shown += [any(rank[k] >= need[i] for k in told)] if told else []
            shown += [need[0] == HEAD and rank[ids.index(sight.opens)] == HEAD]
        self.assertGreater(sum(shown) / len(shown), .95)

    def test_a_mask_shows_what_is_near_or_of_enough_rank(self):
        far, need, rank = [2, 2, 2, 2], [2, 2, 2, 1], [2, 0, 1, 0]
        mask = mask_of(torch.tensor([[far], [need], [rank]], dtype=torch.int32))[0, 0] == 0
        self.assertEqual(mask.tolist(), [[True, False, False, False], [True, True, False, False], [True, True, True, False],
                                         [True, False, True, True]])
        model = Model(Shape(layers=2, width=64, hidden=96, vocab=300))
        ids, places = torch.randint(0, 300, (1, 20)), torch.arange(20)
        seen = torch.from_numpy(np.stack(whole(20))).int()[:, None]
        with torch.no_grad(), torch.autocast("cpu", dtype=torch.bfloat16):
            self.assertLess((model.hidden(ids, places) - model.hidden(ids, places, seen)).abs().max(), .05)

    def test_positions_grow(self):
        rng = random.Random(7)
        for _ in range(200):
            positions = batches.positions(rng, 64)
            self.assertTrue((positions[1:] > positions[:-1]).all())


if __name__ == "__main__":
    unittest.main()
