"""What README and docs show to type, read from their text: commands in code blocks, and commands named in a sentence.

Knows markdown as these pages write it, and nothing of what the commands do.
"""
import dataclasses
import pathlib
import re
import shlex

PROGRAMS = re.compile(r"(?:\w+=\S+ +)*(?:ebb|curl|cmake|ctest|script/\w+)(?: |$)")


@dataclasses.dataclass(frozen=True)
class Shown:
    page: str
    line: int
    text: str

    @property
    def words(self):
        return shlex.split(self.text)

    def __str__(self):
        return f"{self.page}:{self.line}: {self.text}"


def pages(root):
    """All pages of people's documentation; decisions and benchmarks among them."""
    return [root / "README.md", root / "CONTRIBUTING.md", *sorted((root / "docs").rglob("*.md"))]


def code_lines(text):
    """(number, line) of what stands in code blocks: fenced, or indented by four behind an empty or indented line."""
    fenced, may_begin = False, True
    for number, line in enumerate(text.splitlines(), 1):
        if line.lstrip().startswith("```"):
            fenced = not fenced
        elif fenced or (line.startswith("    ") and may_begin):
            yield number, line.strip()
        elif line.strip():
            may_begin = False
        if not line.strip():
            may_begin = True


def without_remark(line):
    """A command as typed: what stands behind two spaces or a # outside quotes says what it is for."""
    quote = ""
    for at, char in enumerate(line):
        if quote:
            quote = "" if char == quote else quote
        elif char in "'\"":
            quote = char
        elif line.startswith(("  ", " #"), at):
            return line[:at]
    return line


def commands_in_blocks(root):
    for page in pages(root):
        for number, line in code_lines(page.read_text()):
            if not PROGRAMS.match(line):
                continue
            for text in without_remark(line.removeprefix("$ ")).split(" && "):
                yield Shown(str(page.relative_to(root)), number, text.strip())


def commands_in_sentences(root):
    """`ebb ...` between backticks, an a|b|c written out."""
    for page in pages(root):
        in_block = {number for number, _ in code_lines(page.read_text())}
        for number, line in enumerate(page.read_text().splitlines(), 1):
            if number in in_block:
                continue
            for text in re.findall(r"`(ebb [^`]+)`", line):
                choice = re.search(r"\w+(?:\|\w+)+", text)
                for one in choice[0].split("|") if choice else [""]:
                    spelled = text.replace(choice[0], one) if choice else text
                    yield Shown(str(page.relative_to(root)), number, spelled)


def examples_in_help(help_text, name):
    """The commands under "Examples:" of a help."""
    _, _, rest = help_text.partition("Examples:\n")
    for line in rest.split("\n\n")[0].splitlines():
        text = without_remark(line.strip())
        if " | " in text:
            text = text.rpartition(" | ")[2]
        if PROGRAMS.match(text):
            yield Shown(f"`{name} --help`", 0, text)


def root_of_the_tree():
    return pathlib.Path(__file__).resolve().parent.parent.parent
