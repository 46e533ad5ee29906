"""A real `ebb serve` for tests: on a free port, with the bundled model where no other is given."""
import pathlib
import select
import signal
import subprocess
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent


class Server:
    """Runs from construction to the end of the `with`."""

    def __init__(self, program, *flags, model=ROOT / "models" / "ebb-recall.gguf"):
        self.process = subprocess.Popen(
            [program, "serve", "-m", model, "--port", "0", *flags],
            stdin=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        )
        self.url = self.read_address(time.monotonic() + 60)

    def read_address(self, deadline):
        said = b""
        while b"\n" not in said.partition(b"ebb: http")[2]:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([self.process.stderr], [], [], left)[0]:
                raise TimeoutError(f"ebb serve did not say its address in time, but: {said.decode()}")
            more = self.process.stderr.read1()
            if not more:
                raise EOFError(f"ebb serve ended: {said.decode()}")
            said += more
        line, _, self.said = said.partition(b"ebb: http")[2].partition(b"\n")
        return "http" + line.split()[0].decode()

    def read_line_with(self, text, seconds=60):
        """The next line of its stderr that holds the text."""
        deadline = time.monotonic() + seconds
        while True:
            line, end, rest = self.said.partition(b"\n")
            if end:
                self.said = rest
                if text in line.decode():
                    return line.decode()
                continue
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([self.process.stderr], [], [], left)[0]:
                raise TimeoutError(f"ebb serve did not say {text!r} in time")
            more = self.process.stderr.read1()
            if not more:
                raise EOFError(f"ebb serve ended before it said {text!r}")
            self.said += more

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.send_signal(signal.SIGTERM)
        self.process.communicate(timeout=30)
