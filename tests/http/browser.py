"""Chromium without a window, told what to do by its debugging protocol over a
pipe: https://chromedevtools.github.io/devtools-protocol/."""

import base64
import fcntl
import json
import os
import select
import shutil
import subprocess
import tempfile
import time

from harness import PATIENCE, wait_until


def pipe():
    """Its descriptors are not 3 and 4, which the browser wants."""
    low = os.pipe()
    high = [fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 10) for fd in low]
    for fd in low:
        os.close(fd)
    return high


class Browser:
    """One page.  What it logs as an error, or throws, is in errors.  args: more of them."""

    def __init__(self, *args):
        self.dir = tempfile.mkdtemp(prefix="pagewise-browser-")
        theirs_in, self.write = pipe()
        self.read, theirs_out = pipe()
        self.process = subprocess.Popen(
            ["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars",
             "--remote-debugging-pipe", "--user-data-dir=" + self.dir, *args],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            preexec_fn=lambda: (os.dup2(theirs_in, 3), os.dup2(theirs_out, 4)),
            pass_fds=(3, 4), env=dict(os.environ, HOME=self.dir, TMPDIR=self.dir))
        os.close(theirs_in)
        os.close(theirs_out)
        self.buf = b""
        self.number = 0
        self.errors = []
        self.session = None
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        self.call("Page.enable")
        self.call("Runtime.enable")
        self.call("Log.enable")

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.process.kill()
        self.process.wait()
        os.close(self.read)
        os.close(self.write)
        shutil.rmtree(self.dir, ignore_errors=True)

    def message(self, end):
        while b"\0" not in self.buf:
            ready, _, _ = select.select([self.read], [], [], max(0, end - time.monotonic()))
            data = os.read(self.read, 1 << 20) if ready else b""
            if not data:
                raise AssertionError("the browser says nothing")
            self.buf += data
        text, _, self.buf = self.buf.partition(b"\0")
        return json.loads(text)

    def note(self, message):
        method, params = message.get("method"), message.get("params", {})
        if method == "Runtime.exceptionThrown":
            self.errors.append(str(params["exceptionDetails"]))
        elif method == "Log.entryAdded" and params["entry"]["level"] == "error":
            self.errors.append(params["entry"]["text"])

    def call(self, method, **params):
        self.number += 1
        text = {"id": self.number, "method": method, "params": params}
        if self.session:
            text["sessionId"] = self.session
        os.write(self.write, json.dumps(text).encode() + b"\0")
        end = time.monotonic() + PATIENCE
        while True:
            message = self.message(end)
            self.note(message)
            if message.get("id") == self.number:
                assert "error" not in message, message
                return message["result"]

    def open(self, url, width, height=900, dark=False):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height,
                  deviceScaleFactor=1, mobile=width < 600)
        self.call("Emulation.setEmulatedMedia", features=[
            {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])
        self.call("Page.navigate", url=url)
        wait_until(lambda: self.ask("document.readyState + location.href") == "complete" + url,
                   url + " in the browser")

    def ask(self, script):
        result = self.call("Runtime.evaluate", expression=script, returnByValue=True,
                           awaitPromise=True)
        assert "exceptionDetails" not in result, result
        return result["result"].get("value")

    def screenshot(self, path):
        data = self.call("Page.captureScreenshot", captureBeyondViewport=True)["data"]
        with open(path, "wb") as f:
            f.write(base64.b64decode(data))
