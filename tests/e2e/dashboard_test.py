#!/usr/bin/env python3
"""The dashboard in headless Chromium, before a real `ebb serve`: a conversation far beyond its budget.

    tests/e2e/dashboard_test.py EBB [FOLDER]      pictures of the page go to FOLDER (default: a temporary one)

Exit status 77 where there is no Chromium; script/test installs it.
"""
import pathlib
import struct
import sys
import tempfile
import unittest

from browser import Browser, find_chromium
from server import Server

SKIPPED = 77
BUDGET = ("--kv-budget", "768", "--block-size", "32", "--parallel", "1", "-t", "1")
WHO = ("shepherd", "baker", "painter", "sailor", "teacher", "farmer", "miller", "tailor", "hunter", "singer", "doctor")
WHERE = ("harbour", "meadow", "market", "bridge", "valley", "garden", "castle", "forest", "island", "river", "village")

# The turns whose begin the map shows, in its order.
MARKERS = "[...document.querySelectorAll('#map .turn')].map((marker) => Number(marker.textContent))"

ebb = pictures = None


def filler(turn):
    """A long message whose words are not those of other turns, so that nothing is recalled for it."""
    return "Read this:" + "".join(
        f" The {WHO[turn - 1]} crossed the {WHERE[(turn + i) % len(WHERE)]} before the rain began." for i in range(14)
    )


def cells(state):
    return f"document.querySelectorAll('#map .{state}').length"


class Dashboard(unittest.TestCase):
    def setUp(self):
        self.browser = self.enterContext(Browser(find_chromium()))
        self.browser.show_as(1280, 860)

    def tearDown(self):
        self.assertEqual(self.browser.troubles, [])

    def open(self, server):
        self.browser.open(server.url)
        self.browser.wait_for("document.querySelector('#link.live')")

    def say(self, text):
        """The reply, once it is whole."""
        n_before = self.browser.ask("document.querySelectorAll('.message.assistant').length")
        self.browser.type("#input", text)
        self.browser.press("Enter")
        self.browser.wait_for(f"document.querySelectorAll('.message.assistant:not(.busy)').length > {n_before}")
        return self.browser.ask("[...document.querySelectorAll('.message.assistant > .text')].at(-1).textContent")

    def check_picture(self, name, **how):
        data = self.browser.take_picture(pictures / name, **how)
        width, height = struct.unpack(">II", data[16:24])
        self.assertTrue(width > 0 and height > 0)

    def test_a_conversation_beyond_its_budget_is_shown_block_by_block(self):
        cold = self.enterContext(tempfile.TemporaryDirectory())
        server = self.enterContext(Server(ebb, *BUDGET, "--kv-store", f"ram=16M,disk={cold}/cold,disk-max=64M"))
        self.open(server)
        self.assertIn("ebb-recall", self.browser.ask("document.title"))
        self.assertEqual(self.browser.ask(cells("block")), 0)

        self.assertNotEqual(self.say("The code of the north gate is 4711."), "")
        self.browser.wait_for(f"{cells('hot')} + {cells('clean')} > 0")
        n_turns = 1
        while self.browser.ask(cells("saved")) < 20:
            self.assertLess(n_turns, 12, "a dozen long turns, and nothing left the cache")
            self.say(filler(n_turns))
            n_turns += 1
            self.browser.wait_for(f"{MARKERS}.includes({n_turns})")
        self.assertNotEqual(self.say("What is the code of the north gate?"), "")

        # What was told of the turn, and what the map makes of it.
        self.browser.wait_for("document.querySelectorAll('#turns tr').length === %d" % (n_turns + 1))
        recalled = "[...document.querySelectorAll('#turns tr')].map((row) => parseInt(row.cells[3].textContent))"
        self.assertGreater(max(self.browser.ask(recalled)), 0)
        # And why these blocks.
        self.assertIn("came back", self.browser.ask("[...document.querySelectorAll('details.recall')].map((box) => box.textContent).join()"))
        # A turn begins on the map with its first block; the last one may lie within a block of the turn before.
        self.browser.wait_for(f"{MARKERS}.includes({n_turns})")
        markers = self.browser.ask(MARKERS)
        self.assertEqual(markers, sorted(set(markers)))
        self.assertLessEqual({*range(1, n_turns + 1)}, {*markers})
        self.browser.wait_for("document.querySelector('#tier-ram p').textContent.includes('blocks')")
        self.assertIn("64 MiB", self.browser.ask("document.querySelector('#tier-disk .figures').textContent"))
        self.browser.move_to("#map .block")
        detail = "document.querySelector('#block-detail').textContent"
        self.browser.wait_for(rf"/#0 · positions 0–32 · (hot|clean|saved)/.test({detail})")
        self.check_picture("dashboard-light.png")
        self.browser.show_as(1280, 860, dark=True)
        self.check_picture("dashboard-dark.png")
        self.browser.show_as(390, 844, dark=True)
        self.check_picture("dashboard-phone-dark.png", whole_page=True)
        self.browser.show_as(390, 844)
        self.check_picture("dashboard-phone-light.png", whole_page=True)
        self.assertLessEqual(self.browser.ask("document.documentElement.scrollWidth"), 390)

        self.browser.ask("document.querySelector('#map').focus()")
        self.browser.press("ArrowRight")
        self.assertIn("positions 32–64", self.browser.ask(detail))

        # What is pinned by hand stays pinned, and is shown so.
        self.browser.press("Home")
        self.browser.press("Enter")
        self.browser.ask("document.querySelector('#block-acts [value=pin]').click()")
        self.browser.wait_for("document.querySelector('#map .block').classList.contains('pinned')")
        self.assertTrue(self.browser.ask("document.querySelector('#block-acts [value=evict]').hidden"))

        # A reload goes on with the same session.
        self.browser.open(server.url)
        self.browser.wait_for(f"document.querySelectorAll('#turns tr').length === {n_turns + 1}")
        self.browser.wait_for(f"{cells('block')} > 0")

    def test_what_people_and_models_say_is_text_and_never_markup(self):
        self.open(self.enterContext(Server(ebb, *BUDGET)))
        said = "<img src=x onerror=alert(1)><b>The code of the north gate is 4711.</b>"
        self.say(said)
        self.assertEqual(self.browser.ask("document.querySelector('.message.user .text').textContent"), said)
        self.assertEqual(self.browser.ask("document.querySelectorAll('main img, main .text *').length"), 0)

    def test_a_reply_that_is_stopped_keeps_what_came_and_shows_thinking_apart(self):
        self.open(self.enterContext(Server(ebb, *BUDGET)))
        # A reply that thinks, says something and never ends.
        self.browser.ask(
            """(() => { const ask = window.fetch; window.fetch = (path, how) => {
              if (!path.includes("chat")) return ask(path, how);
              const said = (delta) => `data: ${JSON.stringify({ choices: [{ delta }] })}\n\n`;
              const body = new ReadableStream({ start(to) {
                how.signal.addEventListener("abort", () => to.error(new DOMException("", "AbortError")));
                const text = said({ reasoning_content: "Let me see." }) + said({ content: "It is" });
                to.enqueue(new TextEncoder().encode(text));
              } });
              return Promise.resolve(new Response(body));
            }; })()"""
        )
        self.browser.type("#input", "What is the code of the north gate?")
        self.browser.press("Enter")
        self.browser.wait_for("document.querySelector('.assistant.busy > .text')?.textContent === 'It is'")
        self.assertEqual(self.browser.ask("document.querySelector('.assistant details .text').textContent"), "Let me see.")
        self.assertTrue(self.browser.ask("document.querySelector('#send').hidden"))
        self.browser.ask("document.querySelector('#stop').click()")
        self.browser.wait_for("document.querySelector('.assistant:not(.busy) .note')?.textContent === 'stopped'")
        self.assertEqual(self.browser.ask("document.querySelector('.assistant > .text').textContent"), "It is")
        self.assertTrue(self.browser.ask("document.querySelector('#stop').hidden"))

    def test_a_key_is_asked_for_and_stays_in_the_tab(self):
        server = self.enterContext(Server(ebb, *BUDGET, "--api-key", "alpha"))
        self.browser.open(server.url)
        self.browser.wait_for("document.querySelector('#key-dialog[open]')")
        self.browser.type("#key", "alpha")
        self.browser.press("Enter")
        self.browser.wait_for("document.querySelector('#link.live')")
        self.assertNotEqual(self.say("The code of the north gate is 4711."), "")
        self.assertEqual(self.browser.ask("localStorage.length + document.cookie.length"), 0)
        # The browser tells of each answer that was a 401; nothing else may have gone wrong.
        self.browser.troubles = [trouble for trouble in self.browser.troubles if "401" not in trouble]


if __name__ == "__main__":
    if find_chromium() is None:
        print("skipped: no chromium here; on Debian: apt-get install chromium")
        sys.exit(SKIPPED)
    ebb = sys.argv.pop(1)
    if len(sys.argv) > 1:
        pictures = pathlib.Path(sys.argv.pop(1))
        pictures.mkdir(parents=True, exist_ok=True)
        unittest.main()
    else:
        with tempfile.TemporaryDirectory() as folder:
            pictures = pathlib.Path(folder)
            unittest.main()
