"""Clients of HTTP/2 that mean no good: what they send costs them their connection, and nobody else anything."""

import os
import re
import signal
import socket
import struct
import threading
import time

import pytest

import h2_raw as raw
from h2_raw import Client, frame, get, update
from harness import wait_until
from limits import connections, figure, limited, timeouts
from limits import start  # noqa: F401
from processes import stopped

WARNING = (r"pagewise: warning: aborted an HTTP/2 connection from 127\.0\.0\.1: the client sent a "
           r"flood of control frames, such as PING or resets\n")
MANY = 6000  # more than may come at once


@pytest.fixture(params=[True, False], ids=["hot set", "no hot set"])
def server(start, request):  # noqa: F811
    return start({"hot_set": "16M" if request.param else 0})


def fed(client, data, times):
    """All of it, or as much as it took before it closed."""
    try:
        for _ in range(times):
            client.send(data)
    except (BrokenPipeError, ConnectionResetError):
        pass


def send_all(client, data, times, at_once=100):
    """While another thread reads: the answers would fill the socket."""
    sender = threading.Thread(target=fed, args=(client, data * at_once, times // at_once))
    sender.start()
    end = client.goaway()
    sender.join()
    return end


def serves(server):
    with Client(server.address) as c:
        c.send(get(1))
        assert c.body(1) == b"small"


def calmed(server, before=0):
    """It was counted, said once, and the next client is served."""
    wait_until(lambda: limited(server, "http2_frames") == before + 1, "it to be counted")
    serves(server)
    server.stop(messages=WARNING)


FLOODS = {
    "ping": frame(raw.PING, payload=bytes(8)),
    "ping's answer": frame(raw.PING, raw.ACK, payload=bytes(8)),
    "settings": frame(raw.SETTINGS),
    "settings' answer": frame(raw.SETTINGS, raw.ACK),
    "settings of the table": raw.settings(table=0) + raw.settings(table=4096),
    "priority update": frame(raw.PRIORITY_UPDATE, payload=struct.pack(">I", 1) + b"u=1"),
    "window": update(0, 1),
    "window of a stream that has ended": update(3, 1),
    "reset of a stream that has ended": frame(raw.RST_STREAM, 0, 3, bytes(4)),
    "a type that nobody knows": frame(0x42),
}


@pytest.mark.parametrize("data", FLOODS.values(), ids=FLOODS)
def test_flood_of_frames_without_requests(server, data):
    with Client(server.address) as c:
        c.send(get(1) + get(3))
        error = send_all(c, data, MANY)[1]
        # libnghttp2 may end it first: its queue of what it has to confirm is bounded.
        assert error in (raw.ENHANCE_YOUR_CALM, raw.PROTOCOL_ERROR, raw.INTERNAL_ERROR), error
        if error == raw.ENHANCE_YOUR_CALM:
            calmed(server)
            return
    serves(server)
    # What came behind the error may have been counted as well.
    server.stop(messages=WARNING if limited(server, "http2_frames") else "")


@pytest.mark.parametrize("data", [frame(raw.DATA, 0, 1), frame(raw.DATA, raw.PADDED, 1, b"\0"),
                                  frame(raw.DATA, raw.PADDED, 1, b"\2" + bytes(2))],
                         ids=["empty", "length of the padding", "padding"])
def test_flood_of_data_without_content(server, data):
    with Client(server.address) as c:
        c.send(get(1, b"/big", flags=raw.END_HEADERS))
        assert send_all(c, data, MANY)[1] == raw.ENHANCE_YOUR_CALM
    calmed(server)


def test_client_that_withholds_a_body_is_closed_after_head_timeout(start):  # noqa: F811
    server = start({"head_timeout": 1})
    with Client(server.address) as c:
        c.send(get(1, flags=raw.END_HEADERS) + get(3, flags=raw.END_HEADERS))
        assert c.body(1) == b"small" and c.body(3) == b"small"
        assert c.goaway() == (3, raw.NO_ERROR)
    assert timeouts(server) == {"head": 1}
    server.stop()


def streams(first, n, what):
    return b"".join(what(id) for id in range(first, first + 2 * n, 2))


def reset(id, error=raw.CANCEL):
    return get(id, b"/big") + frame(raw.RST_STREAM, 0, id, struct.pack(">I", error))


@pytest.mark.parametrize("code", [raw.CANCEL, raw.NO_ERROR], ids=["cancel", "no error"])
def test_rapid_reset(server, code):
    """CVE-2023-44487."""
    with Client(server.address) as c:
        data = streams(1, 1000, lambda id: reset(id, code))
        sender = threading.Thread(target=fed, args=(c, data, 1))
        sender.start()
        last, error = c.goaway()
        sender.join()
    assert error == raw.ENHANCE_YOUR_CALM and last < 2000
    calmed(server)


def test_client_of_many_resets_gets_no_time_slice_for_all_of_them(start, tmp_path):  # noqa: F811
    """Another client's request is responded to before the last of them is read."""
    log = tmp_path / "log"
    server = start({"access_log": log})
    with Client(server.address) as many, Client(server.address) as other:
        for c in many, other:
            c.send(get(1))
            assert c.body(1) == b"small"
        os.kill(server.pid, signal.SIGSTOP)
        wait_until(lambda: stopped(server), "it to stop")
        many.send(streams(3, 190, reset) + get(383, b"/small?many"))
        other.send(get(3, b"/small?other"))
        os.kill(server.pid, signal.SIGCONT)
        assert (many.body(383), other.body(3)) == (b"small", b"small")
    server.stop()
    assert re.findall(r"GET /small\?(\w+)", log.read_text()) == ["other", "many"]


def test_resets_of_a_page_are_no_flood(server):
    """A browser that leaves it."""
    with Client(server.address) as c:
        c.send(streams(1, 100, reset))
        c.send(get(201))
        assert c.body(201) == b"small"
    assert figure(server, "pagewise_http2_connections_total") == 1
    assert figure(server, "pagewise_http2_streams_total") == 101
    server.stop()


def cancelled(c, first, target, await_kind=None):
    """100 tiles of a map that the client wants no more, perhaps after such a frame of each: the next stream."""
    ids = range(first, first + 200, 2)
    c.send(b"".join(get(id, target) for id in ids))
    for _ in ids if await_kind is not None else ():
        c.until(await_kind)
    c.send(b"".join(frame(raw.RST_STREAM, 0, id, struct.pack(">I", raw.CANCEL)) for id in ids))
    return first + 200


def goes_on(c, server, first):
    c.send(raw.settings(window=65535) + update(0, 1 << 20) + get(first))
    assert c.body(first) == b"small"
    assert limited(server, "http2_frames") == 0
    server.stop()


@pytest.mark.parametrize("target", [b"/small", b"/big"])
@pytest.mark.parametrize("window, await_kind", [(65535, None), (0, raw.HEADERS)], ids=["at once", "after their heads"])
def test_map_that_zooms_goes_on(server, target, window, await_kind):
    """Several times the streams that a browser may have open, cancelled while nothing of them was taken."""
    with Client(server.address, window=window) as c:
        first = 1
        for _ in range(4):
            first = cancelled(c, first, target, await_kind)
        goes_on(c, server, first)


def test_resets_of_what_the_client_has_begun_to_take_are_free(server):
    """As many as there are tokens, but for the frame of each reset: what was taken brings more than that."""
    with Client(server.address, window=1000) as c:
        c.send(update(0, 1 << 30))
        first = 1
        for _ in range(50):
            first = cancelled(c, first, b"/big", raw.DATA)
        goes_on(c, server, first)


@pytest.mark.parametrize("target", [b"/small", b"/big"])
def test_resets_of_what_the_client_never_takes_end_the_connection(server, target):
    """Requests that are responded to, for which the client leaves no window."""
    with Client(server.address, window=0) as c:
        first = 1
        with pytest.raises((raw.Closed, BrokenPipeError, ConnectionResetError)):
            while first < 4000:
                first = cancelled(c, first, target, raw.HEADERS)
        assert 1200 < first < 2000
    calmed(server)


def test_downloads_bring_the_updates_that_they_need(start):  # noqa: F811
    server = start({})
    with Client(server.address, window=1 << 20) as c:
        c.send(get(1, b"/big"))
        got = 0
        while got < 16 << 20:
            kind, _, _, payload = c.read()
            if kind == raw.DATA:
                got += len(payload)
                c.send(update(0, len(payload) - 1) + update(0, 1) + update(1, len(payload)))
    assert limited(server, "http2_frames") == 0
    server.stop()


def test_small_answers_bring_the_updates_that_they_need(server):
    with Client(server.address) as c:
        for id in range(1, 2 * MANY, 2):
            c.send(update(0, 5) + update(id - 2, 5) + get(id) if id > 1 else get(id))
            assert c.body(id) == b"small"
    assert limited(server, "http2_frames") == 0
    server.stop()


# ------------------------------------------------------------------------- heads


def test_continuations_without_an_end(server):
    with Client(server.address) as c:
        c.send(frame(raw.HEADERS, raw.END_STREAM, 1, raw.fields()))
        last, error = send_all(c, frame(raw.CONTINUATION, 0, 1, raw.literal(b"a", b"b")), 10000)
    assert error in (raw.PROTOCOL_ERROR, raw.INTERNAL_ERROR, raw.ENHANCE_YOUR_CALM)
    serves(server)
    wait_until(lambda: connections(server) <= 1, "its connection to end")
    # What libnghttp2 refuses first is told of by nobody.
    messages = WARNING if limited(server, "http2_frames") else ""
    server.stop(messages=messages)


BOMB = bytes((0x40, 1)) + b"a" + b"\x7f" + bytes((0x80 | (3900 - 127) & 0x7f, (3900 - 127) >> 7)) + \
    b"x" * 3900 + b"\xbe" * 12000


@pytest.mark.parametrize("trailers", [False, True])
def test_bomb_of_hpack(server, trailers):
    """A field of 4000 bytes goes into the table; then a byte each stands for all of it."""
    with Client(server.address) as c:
        flags = raw.END_STREAM | raw.END_HEADERS
        if trailers:
            c.send(get(1, b"/big", flags=raw.END_HEADERS) + frame(raw.HEADERS, flags, 1, BOMB))
        else:
            c.send(frame(raw.HEADERS, flags, 1, raw.fields() + BOMB))
        assert c.goaway()[1] == raw.ENHANCE_YOUR_CALM
    calmed(server)


def test_head_that_is_too_long_is_431(server):
    more = [(b"x-%d" % i, b"y" * 100) for i in range(160)]
    with Client(server.address) as c:
        block = raw.fields(more=more)
        c.send(frame(raw.HEADERS, raw.END_STREAM, 1, block[:10000]))
        c.send(frame(raw.CONTINUATION, raw.END_HEADERS, 1, block[10000:]))
        assert b"431" in c.body(1)
        c.send(get(3))
        assert c.body(3) == b"small"
    server.stop()


# ----------------------------------------------------------------------- windows


@pytest.mark.parametrize("by,stream", [(0, 0), (0, 1), ((1 << 31) - 1, 0), ((1 << 31) - 1, 1)])
def test_window_update_of_zero_or_too_large(server, by, stream):
    with Client(server.address, window=1) as c:
        c.send(get(1, b"/big"))
        c.until(raw.DATA)
        c.send(2 * update(stream, by) + get(3))
        kinds = set()
        try:
            while True:
                kind, _, of, payload = c.read()
                if kind == raw.RST_STREAM and of == 1:
                    kinds.add("reset")
                    break
                if kind == raw.GOAWAY:
                    kinds.add("goaway")
        except raw.Closed:
            pass
        assert kinds == {"reset" if stream == 1 and by else "goaway"} or kinds == {"reset"}
    serves(server)
    server.stop()


def test_streams_without_a_window_end_after_send_timeout(start):  # noqa: F811
    """They end after send_timeout; who takes a byte now and then is too slow."""
    server = start({"send_timeout": 1, "min_send_rate": 1000, "http2_max_streams": 20})
    with Client(server.address, window=0) as c:
        c.send(streams(1, 20, lambda id: get(id, b"/big")))
        ended = set()
        c.send(update(1, 10))
        while len(ended) < 20:
            kind, _, id, payload = c.read()
            if kind == raw.RST_STREAM:
                assert payload == struct.pack(">I", raw.CANCEL)
                ended.add(id)
        assert ended == set(range(1, 40, 2))
        c.send(raw.settings(window=65535) + get(41))
        assert c.body(41) == b"small"
    assert limited(server, "min_send_rate") == 1
    server.stop()


def test_window_of_a_byte_gets_the_response_byte_by_byte(server):
    with Client(server.address, window=1) as c:
        c.send(get(1))
        got = b""
        while len(got) < 5:
            payload = c.until(raw.DATA, 1)
            assert len(payload) == 1
            got += payload
            c.send(update(1, 1))
        assert got == b"small"
    server.stop()


def test_streams_of_a_slow_link_share_what_min_send_rate_asks(start):  # noqa: F811
    """Each has less than that, and a window that the client opens as its link brings the bytes."""
    server = start({"send_timeout": 1, "min_send_rate": 2000})
    with Client(server.address, rcvbuf=4096, window=2500) as c:
        # 250 kB for 100 streams: the kernel holds most of it, and more than the connection's window.
        c.send(update(0, 1 << 20) + streams(1, 100, lambda id: get(id, b"/big")))
        got = 0
        # 30 kB a second at most: above min_send_rate, of which a stream has a hundredth.
        while got < 60000:
            kind, _, id, payload = c.read()
            assert kind in (raw.SETTINGS, raw.HEADERS, raw.DATA), (kind, payload)
            if kind == raw.DATA:
                got += len(payload)
                time.sleep(len(payload) / 30000)
                c.send(update(0, len(payload)) + update(id, len(payload)))
    assert limited(server, "min_send_rate") == 0
    server.stop()


@pytest.mark.slow
def test_each_stream_must_keep_min_send_rate(start):  # noqa: F811
    """The client has taken all that was sent: each stream has to keep min_send_rate by itself."""
    server = start({"send_timeout": 2, "min_send_rate": 1000})
    ids, ended, over, got = range(1, 100, 2), set(), threading.Event(), 0

    def trickle(client):
        """4 kB a second, 80 bytes of each stream."""
        while not over.wait(0.25):
            client.send(b"".join(update(id, 20) for id in ids))

    with Client(server.address, window=0) as c:
        c.send(streams(1, len(ids), lambda id: get(id, b"/big")))
        sender = threading.Thread(target=trickle, args=(c,))
        sender.start()
        try:
            while len(ended) < len(ids):
                kind, _, id, payload = c.read()
                if kind == raw.RST_STREAM:
                    assert payload == struct.pack(">I", raw.CANCEL)
                    ended.add(id)
                got += len(payload)
                assert got < 60000, "they go on"
        finally:
            over.set()
            sender.join()
    assert limited(server, "min_send_rate") == len(ids)
    server.stop()


# -------------------------------------------------------------------- disconnects


def test_frames_of_a_reset_stream_harm_no_other(server):
    """RFC 9113, 5.1: libnghttp2 has reset it for its head."""
    with Client(server.address) as c:
        c.send(get(1, flags=raw.END_HEADERS, more=[(b"Upper", b"case")]))
        c.until(raw.RST_STREAM, 1)
        c.send(frame(raw.DATA, 0, 1, b"body") + get(3))
        assert c.body(3) == b"small"
    server.stop()


def test_clients_leave_midway(server):
    for n in range(40):
        c = Client(server.address)
        c.send(streams(1, 10, lambda id: get(id, b"/big")))
        if n % 2:
            c.until(raw.DATA)
        if n % 4 > 1:
            c.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        c.sock.close()
    wait_until(lambda: connections(server) <= 1, "all of them to be gone")
    serves(server)
    server.stop()


def test_clients_that_reset_all_streams_and_then_the_connection(server):
    """What came last needs no answer: nothing is sent that would show that nobody is there."""
    rst = b"".join(frame(raw.RST_STREAM, 0, id, struct.pack(">I", raw.CANCEL)) for id in range(1, 21, 2))
    for n in range(60):
        c = Client(server.address)
        c.send(streams(1, 10, lambda id: get(id, b"/big")))
        if n % 2:
            c.until(raw.DATA)
        c.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        c.send(rst)
        c.sock.close()
    wait_until(lambda: connections(server) <= 1, "all of them to be gone")
    serves(server)
    server.stop()


def test_invalid_http2_is_refused(server):
    for begin in (raw.PREFACE[:-1] + b"x", raw.PREFACE + b"GET / HTTP/1.1\r\n\r\n",
                  raw.PREFACE + frame(raw.DATA, 0, 0, b"x"), raw.PREFACE + frame(raw.PING, 0, 0, b"x")):
        with Client(server.address, begin=False) as c:
            c.send(begin)
            assert c.goaway()[1] not in (raw.NO_ERROR,)
    serves(server)
    server.stop()
