"""The scenario over HTTP/2: what goes together on a connection goes in streams; and one connection
whose streams wait for windows, for the disk, and are reset."""

import socket

import h2_client
import h2_raw
import http2
import scenario
from scenario import LARGE, REFUSALS, SMALL, Wrong

WINDOW, SHARED = 40000, 200000  # bytes of a stream's window, and of the connection's
WANT_OF_MEMORY = (h2_raw.INTERNAL_ERROR, h2_raw.CANCEL)


class Scenario(scenario.Scenario):
    hot_call = None
    ends = scenario.ENDS + ("the connection ended before",) + tuple(
        "%s: %d" % (what, code) for what in ("GOAWAY", "the stream was reset") for code in WANT_OF_MEMORY)

    @staticmethod
    def connect(server):
        c = scenario.Scenario.connect(server)
        c.sock = http2.Socket(c.sock)
        return c

    def ask(self, server, at):
        super().ask(server, at)
        self.cool()
        with self.streams(server) as c:
            for stream, right in self.begin(c, at, {}).items():
                answer = c.answer(stream)
                if answer.status != 200 or not answer.over or answer.body != right:
                    raise Wrong("stream %d: %r" % (stream, answer))

    def try_to_ask(self, server, at):
        super().try_to_ask(server, at)
        asked, c = {}, None
        self.cool()
        try:
            with self.streams(server) as c:
                self.begin(c, at, asked)
                for stream in asked:
                    c.answer(stream)
        except socket.timeout:
            raise Wrong("no answer: %r" % c.answers)
        except (OSError, AssertionError) as error:
            if not any(e in str(error) for e in self.ends):
                raise Wrong("%r" % error) from error
        for stream, right in asked.items():
            self.check_stream(c, stream, right)

    @staticmethod
    def check_stream(c, stream, right):
        answer = c.answers[stream]
        wrong = answer.status not in REFUSALS | {0, 200} or answer.error not in (None, *WANT_OF_MEMORY)
        if answer.status == 200:
            wrong |= not right.startswith(answer.body) or answer.over and answer.body != right
        if wrong:
            raise Wrong("stream %d: %r" % (stream, answer))

    @staticmethod
    def streams(server):
        return h2_client.Client(server, window=WINDOW, connection=SHARED)

    @staticmethod
    def begin(c, at, asked):
        """Fills in {stream: what is right}; those that it resets are none of them."""
        first = {"fields": [("priority", "u=1")]}
        for target, right, how in (("cold", LARGE, {}), ("large", LARGE, first), ("small", SMALL, {})):
            for _ in range(2):
                asked[c.begin(at + target, **how)] = right
        for target in ("cold", "large", "none"):
            c.reset(c.begin(at + target))
        c.sock.sendall(h2_raw.frame(h2_raw.PRIORITY_UPDATE, 0, 0, b"\0\0\0\1u=0,i"))
        c.ping()
        return asked
