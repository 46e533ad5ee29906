"""Headless Chromium over the DevTools pipe: opens a page, asks it things, types, takes pictures.

Needs the program only, and nothing of Python but its own library. All waiting has a deadline.
"""
import base64
import fcntl
import json
import os
import pathlib
import select
import shutil
import subprocess
import tempfile
import time

DEADLINE_S = 60


def find_chromium():
    """The program's path, or None."""
    return next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)


class Browser:
    """One page. Use it in a `with`."""

    def __init__(self, program):
        self.profile = tempfile.TemporaryDirectory(prefix="ebb-chromium-", ignore_cleanup_errors=True)
        theirs_in, self.to_browser = os.pipe()
        self.from_browser, theirs_out = os.pipe()
        # Out of the way of 3 and 4, which the browser reads and writes.
        theirs = [fcntl.fcntl(end, fcntl.F_DUPFD, 10) for end in (theirs_in, theirs_out)]
        os.close(theirs_in)
        os.close(theirs_out)

        def put_in_place():
            os.dup2(theirs[0], 3)
            os.dup2(theirs[1], 4)

        self.log = tempfile.TemporaryFile()
        self.process = subprocess.Popen(
            [
                program,
                "--headless=new",
                "--remote-debugging-pipe",
                f"--user-data-dir={self.profile.name}",
                "--no-first-run",
                "--disable-gpu",
                "--disable-dev-shm-usage",
                "--hide-scrollbars",
                *(["--no-sandbox"] if os.geteuid() == 0 else []),
                "about:blank",
            ],
            stdin=subprocess.DEVNULL,
            stdout=self.log,
            stderr=self.log,
            pass_fds=(3, 4, *theirs),
            preexec_fn=put_in_place,
        )
        for end in theirs:
            os.close(end)
        self.rest = b""
        self.n_sent = 0
        self.session = None
        self.troubles = []  # what the page's console complained about
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            self.call(f"{domain}.enable")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        os.close(self.to_browser)  # it ends by itself then
        os.close(self.from_browser)
        try:
            self.process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.log.close()
        self.profile.cleanup()

    def read_message(self, deadline):
        while b"\0" not in self.rest:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([self.from_browser], [], [], left)[0]:
                raise TimeoutError("the browser said nothing in time")
            more = os.read(self.from_browser, 1 << 16)
            if not more:
                self.log.seek(0)
                raise EOFError("the browser ended: " + self.log.read().decode(errors="replace")[-2000:])
            self.rest += more
        message, self.rest = self.rest.split(b"\0", 1)
        return json.loads(message)

    def call(self, method, **params):
        self.n_sent += 1
        sent = {"id": self.n_sent, "method": method, "params": params}
        if self.session:
            sent["sessionId"] = self.session
        data = json.dumps(sent).encode() + b"\0"
        while data:
            data = data[os.write(self.to_browser, data) :]
        deadline = time.monotonic() + DEADLINE_S
        while True:
            message = self.read_message(deadline)
            if message.get("id") == sent["id"]:
                if "error" in message:
                    raise RuntimeError(f"{method}: {message['error']['message']}")
                return message["result"]
            self.note(message)

    def note(self, event):
        if event.get("method") == "Runtime.exceptionThrown":
            details = event["params"]["exceptionDetails"]
            self.troubles.append(details.get("exception", {}).get("description") or details["text"])
        elif event.get("method") == "Log.entryAdded" and event["params"]["entry"]["level"] == "error":
            self.troubles.append(event["params"]["entry"]["text"])

    def open(self, url):
        self.call("Page.navigate", url=url)

    def ask(self, expression):
        """The value of a JavaScript expression, promises waited for."""
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(answer["exceptionDetails"]["exception"]["description"])
        return answer["result"].get("value")

    def wait_for(self, expression, seconds=DEADLINE_S):
        """Until the expression is true in the page."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            # The page itself waits, a second at a time, so that nobody spins.
            if self.ask(
                "new Promise((tell) => { const end = performance.now() + 1000; const look = () => {"
                f" const isTrue = Boolean({expression}); if (isTrue || performance.now() > end) tell(isTrue);"
                " else setTimeout(look, 20); }; look(); })"
            ):
                return
        raise TimeoutError(f"not within {seconds} s: {expression}")

    def type(self, selector, text):
        self.ask(f"document.querySelector({json.dumps(selector)}).focus()")
        self.call("Input.insertText", text=text)

    def press(self, key):
        text = {"text": "\r"} if key == "Enter" else {}
        code = {"Enter": 13, "Escape": 27, "End": 35, "Home": 36, "ArrowLeft": 37, "ArrowRight": 39}[key]
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=key, windowsVirtualKeyCode=code, **text)

    def move_to(self, selector):
        """The pointer, to the middle of the element."""
        x, y = self.ask(
            f"(() => {{ const box = document.querySelector({json.dumps(selector)}).getBoundingClientRect();"
            " return [box.x + box.width / 2, box.y + box.height / 2]; })()"
        )
        self.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)

    def show_as(self, width, height, dark=False, scale=1):
        self.call(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=scale, mobile=width < 600
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[scheme])

    def take_picture(self, path, whole_page=False):
        """A PNG of the window, or of all that could be scrolled to; its bytes."""
        data = base64.b64decode(
            self.call("Page.captureScreenshot", format="png", captureBeyondViewport=whole_page)["data"]
        )
        pathlib.Path(path).write_bytes(data)
        return data
