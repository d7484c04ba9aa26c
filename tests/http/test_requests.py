"""The corpus of raw requests: each is answered as RFC 9112 wants it, alone and behind another,
and the answer does not depend on where the network cuts it.

PAGEWISE_SEED=N repeats what was chosen at random; a failure names its N.
"""

import os
import random
import time

import pytest

import request_corpus as corpus
import tls
from fragments import Recorded, at_random, byte_by_byte, exchange, split
from hot import Hot, normalised
from request_corpus import CASES, CLOSED, DROPPED, GOOD, LETTERS, OPEN

MTIME = 1577934245
AFTER = b"what is pending\n"  # the answer to PENDING
SEED = int(os.environ.get("PAGEWISE_SEED") or random.randrange(1 << 32))
RANDOM = 2 if tls.ON else 8  # ways to cut a stream: over TLS each is a handshake
CUT = 400  # a longer stream is not cut at each byte in its middle


@pytest.fixture(scope="module")
def corpus_site(base):
    root = os.path.join(base, "corpus")
    os.makedirs(os.path.join(root, "d"), exist_ok=True)
    for name, data in {"a": LETTERS, "b": AFTER, "index.html": b"<title>h</title>\n"}.items():
        path = os.path.join(root, name)
        with open(path, "wb") as f:
            f.write(data)
        os.utime(path, (MTIME, MTIME))
    return root


def start(serve_conf, root, send_path):
    """No time-out ends a connection before the test gives up."""
    top = {"workers": 1, "send_path": send_path, "admin": "127.0.0.1:0", "head_timeout": 600,
           "keepalive_timeout": 600}
    return serve_conf(top, [("h", {"root": root}, {})])


@pytest.fixture(params=["hot", "pool"])
def site_server(request, serve_conf, corpus_site):
    server = start(serve_conf, corpus_site, request.param)
    if request.param == "hot":
        with Hot(server).connect("/a", "/b", host="h"):
            pass
    return server


def check_one(case, allowed, response):
    assert response.status in allowed, (case, response)
    if response.status == 200 and not case.head:
        assert response.body in (LETTERS, b"<title>h</title>\n"), case
    if response.status in (400, 413, 414, 431, 501, 505):
        assert response.closes, case


def check(case, data, asked_at):
    """The answers to the case, and to PENDING if there must be one."""
    c = Recorded(data, asked_at)
    response = None
    for allowed in case.verdict.statuses:
        response = c.response("HEAD" if case.head else "GET")
        check_one(case, allowed, response)
    ending = case.verdict.ending
    if response is not None:
        assert response.closes == (ending == CLOSED), case
    if ending == OPEN:
        response = c.response()
        assert (response.status, response.body) == (200, AFTER), (case, response)
    c.eof()


def test_corpus_has_two_hundred_cases_and_no_name_twice():
    assert len(CASES) >= 200
    assert len({case.name for case in CASES}) == len(CASES)


def closed(cases):
    return [case.verdict.ending in (CLOSED, DROPPED) for case in cases]


def alone(server):
    return exchange(server, [[case.stream] for case in CASES], closed(CASES))


def test_every_request_is_answered_as_it_should_be(site_server):
    wrong = []
    asked_at = time.time()
    for case, data in zip(CASES, alone(site_server)):
        try:
            check(case, data, asked_at)
        except AssertionError as error:
            wrong.append("%s: %s" % (case.name, error))
    assert not wrong, "\n".join(wrong)


@pytest.fixture
def reference(serve_conf, corpus_site):
    """What each case gets in one piece, by another path; the test above says whether that is right."""
    return [normalised(data) for data in alone(start(serve_conf, corpus_site, "copy"))]


def compare(server, streams, expected):
    """streams: (index of its case, pieces) pairs; expected: by that index."""
    answers = exchange(server, [pieces for _, pieces in streams], closed(CASES[i] for i, _ in streams))
    for (index, pieces), data in zip(streams, answers):
        assert normalised(data) == expected[index], (CASES[index].name, pieces, SEED)
    server.healthy()


@pytest.mark.slow
def test_answer_is_the_same_byte_by_byte(site_server, reference):
    streams = [(i, byte_by_byte(case.stream)) for i, case in enumerate(CASES)]
    compare(site_server, streams, reference)


@pytest.mark.slow
def test_answer_is_the_same_cut_at_random(site_server, reference):
    rng = random.Random(SEED)
    streams = [(i, at_random(rng, case.stream)) for i, case in enumerate(CASES) for _ in range(RANDOM)]
    compare(site_server, streams, reference)


def places(raw):
    """Where to cut: everywhere, or near the ends and the limits of a long one."""
    if len(raw) <= CUT:
        return range(1, len(raw) + 1)
    near = {0, len(raw), corpus.MAX_HEAD, corpus.MAX_TARGET + len(b"GET "), len(GOOD) + corpus.MAX_BODY}
    return sorted({at + i for at in near for i in range(-20, 21) if 0 < at + i <= len(raw)})


@pytest.mark.plain("so many handshakes; over TLS cut at random, and byte by byte")
@pytest.mark.slow
def test_answer_is_the_same_cut_anywhere(site_server, reference):
    streams = [(i, split(case.stream, [at])) for i, case in enumerate(CASES) for at in places(case.raw)]
    compare(site_server, streams, reference)


@pytest.mark.parametrize("count", [1, pytest.param(3, marks=pytest.mark.plain("so many handshakes; behind one"))])
@pytest.mark.slow
def test_answer_is_the_same_behind_good_requests(site_server, reference, count):
    """Those are answered, and the case as if it were alone."""
    rng = random.Random(SEED)
    good = normalised(exchange(site_server, [[GOOD]])[0])
    expected = [good * count + data for data in reference]
    raws = [GOOD * count + case.stream for case in CASES]
    streams = [(i, way(raw)) for i, raw in enumerate(raws)
               for way in (lambda s: [s], byte_by_byte, lambda s: at_random(rng, s))]
    compare(site_server, streams, expected)
