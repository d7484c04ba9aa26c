"""The corpus of raw requests: each is answered as RFC 9112 wants it, alone and behind another,
and the answer does not depend on where the network cuts it."""

import os
import random

import pytest

import request_corpus as corpus
from fragments import Recorded, at_random, byte_by_byte, exchange, same, split
from harness import request
from request_corpus import CASES, CLOSED, EITHER, GOOD, INCOMPLETE, LETTERS, OPEN

MTIME = 1577934245
AFTER = b"what is pending\n"  # the answer to PENDING
PENDING = request("/b", host="h")
SEED = int(os.environ.get("PAGEWISE_SEED") or random.randrange(1 << 32))
CUT = 400  # a longer stream is not cut at each byte in its middle


@pytest.fixture(scope="module")
def corpus_site(base):
    root = os.path.join(base, "corpus")
    os.makedirs(os.path.join(root, "d"))
    for name, data in {"a": LETTERS, "b": AFTER, "index.html": b"<title>h</title>\n"}.items():
        path = os.path.join(root, name)
        with open(path, "wb") as f:
            f.write(data)
        os.utime(path, (MTIME, MTIME))
    return root


@pytest.fixture(params=["hot", "pool"])
def site_server(request, serve, corpus_site):
    return serve("--root", corpus_site, "--send-path", request.param, "--workers", "1")


def stream_of(case):
    """The request, and one behind it."""
    return case.raw if case.verdict.ending == INCOMPLETE else case.raw + PENDING


def is_head(case):
    return case.raw.lstrip(b"\r\n").startswith(b"HEAD ")


def check_one(case, allowed, response):
    assert response.status in allowed, (case, response)
    if response.status == 200 and not is_head(case):
        assert response.body in (LETTERS, b"<title>h</title>\n"), case
    if response.status in (400, 413, 414, 431, 501, 505):
        assert response.closes, case


def check(case, data, before=()):
    """The answers to what is before the case, to the case, and to PENDING if there must be one."""
    c = Recorded(data)
    for body in before:
        response = c.response()
        assert (response.status, response.body) == (200, body), (case, response)
    response = None
    for allowed in case.verdict.statuses:
        response = c.response("HEAD" if is_head(case) else "GET")
        check_one(case, allowed, response)
    ending = case.verdict.ending
    if ending == EITHER:
        ending = CLOSED if response.closes else OPEN
    if response is not None:
        assert response.closes == (ending == CLOSED), case
    if ending == OPEN:
        response = c.response()
        assert (response.status, response.body) == (200, AFTER), (case, response)
    c.eof()


def test_corpus_has_two_hundred_cases_and_no_name_twice():
    assert len(CASES) >= 200
    assert len({case.name for case in CASES}) == len(CASES)


def alone(server):
    return exchange(server, [[stream_of(case)] for case in CASES])


def test_every_request_is_answered_as_it_should_be(site_server):
    wrong = []
    for case, data in zip(CASES, alone(site_server)):
        try:
            check(case, data)
        except AssertionError as error:
            wrong.append("%s: %s" % (case.name, error))
    assert not wrong, "\n".join(wrong)


@pytest.fixture
def reference(site_server):
    """What each case is answered in one piece; the tests above say whether that is right."""
    return [same(data) for data in alone(site_server)]


def compare(server, streams, expected):
    """streams: (index of its case, pieces) pairs; expected: by that index."""
    for (index, pieces), data in zip(streams, exchange(server, [pieces for _, pieces in streams])):
        assert same(data) == expected[index], (CASES[index].name, pieces, SEED)
    server.healthy()


def test_answer_is_the_same_byte_by_byte(site_server, reference):
    streams = [(i, byte_by_byte(stream_of(case))) for i, case in enumerate(CASES)]
    compare(site_server, streams, reference)


def test_answer_is_the_same_cut_at_random(site_server, reference):
    rng = random.Random(SEED)
    streams = [(i, at_random(rng, stream_of(case))) for i, case in enumerate(CASES) for _ in range(8)]
    compare(site_server, streams, reference)


def places(stream):
    """Where to cut: everywhere, or near the ends and the limits of a long one."""
    if len(stream) <= CUT:
        return range(1, len(stream))
    near = {0, len(stream), corpus.MAX_HEAD, corpus.MAX_TARGET + len(b"GET "), len(GOOD) + corpus.MAX_BODY}
    return sorted({at + i for at in near for i in range(-20, 21) if 0 < at + i < len(stream)})


def test_answer_is_the_same_cut_anywhere(site_server, reference):
    streams = [(i, split(stream_of(case), [at]))
               for i, case in enumerate(CASES) for at in places(stream_of(case))]
    compare(site_server, streams, reference)


@pytest.mark.parametrize("count", [1, 3])
def test_answer_is_the_same_behind_good_requests(site_server, reference, count):
    """Those are answered, and the case as if it were alone."""
    rng = random.Random(SEED)
    good = same(exchange(site_server, [[GOOD]])[0])
    expected = [good * count + data for data in reference]
    raws = [GOOD * count + stream_of(case) for case in CASES]
    streams = [(i, way(raw)) for i, raw in enumerate(raws)
               for way in (lambda s: [s], byte_by_byte, lambda s: at_random(rng, s))]
    compare(site_server, streams, expected)
