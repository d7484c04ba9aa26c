"""digest = true: Repr-Digest of files that carry their SHA-256, who gets it, and etag = digest."""

import base64
import hashlib
import itertools
import json
import os
import threading

import pytest

import harness
import responses
from harness import Finished, wait_until
from hot import Hot
from test_syscalls import may_trace, traced  # noqa: F401  (fixtures)

NAME = "user.pagewise.sha256"
OLD = 1_600_000_000  # seconds
DATA = b"0123456789" * 500


def put(path, data=DATA, when=OLD):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    os.utime(path, (when, when))
    return path


def digest(data):
    return "sha-256=:%s:" % base64.b64encode(hashlib.sha256(data).digest()).decode()


def write_digests(top):
    done = Finished("digest", top)
    assert done.code == 0, done.err


@pytest.fixture
def root(tmp_path):
    top = tmp_path / "site"
    probe = put(top / "probe", b"")
    try:
        os.setxattr(probe, NAME, b"")
    except OSError:
        pytest.skip("no extended attributes for users in %s" % tmp_path)
    probe.unlink()
    for suffix in ("", ".zst", ".br", ".gz"):
        put(top / ("all.js" + suffix), b"all.js" + suffix.encode())
    put(top / "data.bin")
    put(top / "dir/index.html", b"index")
    put(top / "dir/sub/x", b"x")
    put(top / "empty", b"")
    write_digests(top)
    put(top / "none.txt", b"none")
    return top


@pytest.fixture
def site(serve_conf, root):
    def start(locations=None, top=None, args=(), **settings):
        settings = {"root": root, "digest": True, **settings}
        return serve_conf(top or {}, [("s", settings, locations or {})], *args)

    return start


def sent(answer):
    values = answer.all("Repr-Digest")
    assert len(values) < 2
    return values[0] if values else None


def test_answers_have_the_digest_of_the_whole_file(site):
    server = site()
    for _ in range(3):
        answer = server.get("/data.bin")
        assert answer.body == DATA and sent(answer) == digest(DATA)
    assert sent(server.get("/data.bin", "HEAD")) == digest(DATA)
    part = server.get("/data.bin", fields=[("Range", "bytes=5-8")])
    assert (part.status, part.body, sent(part)) == (206, b"5678", digest(DATA))
    parts = server.get("/data.bin", fields=[("Range", "bytes=0-0,-1")])
    assert parts.status == 206 and len(responses.multipart(parts)) == 2 and sent(parts) == digest(DATA)
    assert sent(server.get("/dir/")) == digest(b"index")
    assert sent(server.get("/empty")) == digest(b"")


def test_other_responses_have_no_digest(site):
    server = site(autoindex=True)
    tag = server.get("/data.bin").get("ETag")
    for status, fields in ((304, ("If-None-Match", tag)), (412, ("If-Match", '"x"')), (416, ("Range", "bytes=9999-"))):
        answer = server.get("/data.bin", fields=[fields])
        assert answer.status == status and sent(answer) is None
    for target, status in (("/none.txt", 200), ("/not", 404), ("/dir", 301), ("/dir/sub/", 200)):
        answer = server.get(target)
        assert answer.status == status and sent(answer) is None


def test_off_by_default_and_set_for_a_location(serve_conf, root):
    server = serve_conf({}, [("s", {"root": root}, {"/dir/": {"digest": True}})])
    for _ in range(2):
        assert sent(server.get("/data.bin")) is None
        assert sent(server.get("/dir/index.html")) == digest(b"index")


def test_two_sites_of_one_root_open_the_same_file(serve_conf, root):
    server = serve_conf({"workers": 1}, [("with", {"root": root, "names": "with", "digest": True}, {}),
                                         ("without", {"root": root, "names": "without"}, {})])
    for host in ("without", "with", "without", "with", "with", "without"):
        want = digest(DATA) if host == "with" else None
        assert sent(server.get("/data.bin", host=host)) == want


def test_two_sites_open_the_file_at_the_same_moment(serve_conf, root):
    """Some wait for an open without the attribute, and want it."""
    for i in range(40):
        put(root / ("many/%d" % i), b"%d" % i)
    write_digests(root / "many")
    server = serve_conf({"workers": 1}, [("with", {"root": root, "names": "with", "digest": True}, {}),
                                         ("without", {"root": root, "names": "without"}, {})])
    wrong = []

    def client(host):
        try:
            with server.connect() as c:
                for i in range(40):
                    answer = c.ask("/many/%d" % i, host=host)
                    if sent(answer) != (digest(b"%d" % i) if host == "with" else None):
                        wrong.append((host, i, answer))
        except Exception as error:  # a thread's own would only end it
            wrong.append(error)

    threads = [threading.Thread(target=client, args=(host,)) for host in ("with", "without") * 4]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


# tests/unit/test_digest.c has all forms.
@pytest.mark.parametrize("want, gets", [(None, True), ("sha-512=3, sha-256=0", False), ("sha-256=1, sha-512=10", True)])
def test_want_repr_digest_is_honoured(site, want, gets):
    server = site()
    fields = [] if want is None else [("Want-Repr-Digest", want)]
    expected = digest(DATA) if gets else None
    for _ in range(3):
        answer = server.get("/data.bin", fields=fields)
        assert (answer.body, sent(answer)) == (DATA, expected)
        assert sent(server.get("/data.bin", fields=fields + [("Range", "bytes=0-0,-1")])) == expected
    two = [("Want-Repr-Digest", "sha-512=1"), ("Want-Repr-Digest", "sha-256=1")]
    assert sent(server.get("/data.bin", fields=two)) == digest(DATA)


def test_cached_responses_with_and_without_digest_are_kept_apart(site):
    server = site(top={"workers": 1}, args=("--admin", "127.0.0.1:0"))
    wants = {None: digest(DATA), "sha-256=0": None, "sha-256=3": digest(DATA), "md5=1": None}
    with Hot(server).connect("/data.bin") as c:
        for want in list(wants) * 6:
            answer = c.ask("/data.bin", fields=[] if want is None else [("Want-Repr-Digest", want)])
            assert (answer.body, sent(answer)) == (DATA, wants[want])
        c.finish(answer)
    # One that does not want it comes first.
    for want in ("sha-256=0",) * 9 + (None, None):
        answer = server.get("/dir/index.html", fields=[] if want is None else [("Want-Repr-Digest", want)])
        assert sent(answer) == (digest(b"index") if want is None else None)


def test_outdated_digest_is_ignored(site, root):
    server = site()
    values = {name: os.getxattr(root / "data.bin", NAME) for name in ("a", "b", "c", "d", "e")}
    put(root / "a", DATA[:-1])  # size
    put(root / "b", DATA, OLD + 1)  # time
    put(root / "c")
    values["c"] += b"\n"
    put(root / "d")
    values["d"] = values["d"].upper()
    put(root / "e")
    for name, value in values.items():
        os.setxattr(root / name, NAME, value)
    assert [sent(server.get("/" + name)) for name in values] == [None] * 4 + [digest(DATA)]


def test_change_of_the_file_or_the_attribute_is_seen_within_a_second(site, root):
    server = site(top={"workers": 1}, args=("--admin", "127.0.0.1:0"))
    with Hot(server).connect("/data.bin") as c:
        assert sent(c.ask("/data.bin")) == digest(DATA)
        os.removexattr(root / "data.bin", NAME)
        wait_until(lambda: sent(c.ask("/data.bin")) is None, "the attribute's end")
        write_digests(root)
        wait_until(lambda: sent(c.ask("/data.bin")) == digest(DATA), "the attribute")
        put(root / "new.bin", DATA[::-1], OLD + 7).rename(root / "data.bin")
        # Never the old digest with the new content, nor the other way round.
        answer = c.ask("/data.bin")
        while answer.body == DATA:
            assert sent(answer) == digest(DATA)
            answer = c.ask("/data.bin")
        assert (answer.body, sent(answer)) == (DATA[::-1], None)
        write_digests(root)
        wait_until(lambda: sent(c.ask("/data.bin")) == digest(DATA[::-1]), "the new one")


def test_sibling_has_a_digest_of_its_own(site):
    server = site(precompressed=("zst", "br", "gz"))
    codings = {"": "", "gzip": ".gz", "br": ".br", "zstd": ".zst"}
    with server.connect() as c:
        for coding, suffix in itertools.chain.from_iterable([codings.items()] * 5):
            answer = c.ask("/all.js", fields=[("Accept-Encoding", coding)])
            data = b"all.js" + suffix.encode()
            assert (answer.body, sent(answer)) == (data, digest(data))
        c.finish(answer)


def test_etag_is_made_of_the_digest(site, root):
    put(root / "copy.bin", DATA, OLD + 99)
    write_digests(root)
    server = site(digest=False, etag="digest", precompressed=("gz",))
    tag = server.get("/data.bin").get("ETag")
    assert tag == '"%s"' % base64.b64encode(hashlib.sha256(DATA).digest()).decode()
    assert server.get("/copy.bin").get("ETag") == tag
    assert sent(server.get("/data.bin")) is None
    assert server.get("/copy.bin", fields=[("If-None-Match", tag)]).status == 304
    part = server.get("/copy.bin", fields=[("If-Range", tag), ("Range", "bytes=0-1")])
    assert (part.status, part.body) == (206, b"01")
    packed = server.get("/all.js", fields=[("Accept-Encoding", "gzip")]).get("ETag")
    assert packed == digest(b"all.js.gz").replace("sha-256=:", '"').rstrip(":") + '"'


def test_without_a_digest_the_etag_is_that_of_auto(site, serve_conf, root):
    tag = site(etag="digest").get("/none.txt").get("ETag")
    assert tag == serve_conf({}, [("s", {"root": root}, {})]).get("/none.txt").get("ETag")


def listed(server, target):
    with server.connect(may_be_chunked=True) as c:
        answer = c.ask(target)
    return {row["name"]: row.get("digest") for row in json.loads(answer.body)}, "Transfer-Encoding" in answer


@pytest.mark.parametrize("many", [0, 1500])
def test_listing_in_json_has_the_digest(site, root, many):
    for i in range(many):
        put(root / ("list/%04d%s" % (i, "y" * 200)), b"")
    (root / "list").mkdir(exist_ok=True)
    put(root / "list/with", b"1")
    put(root / "list/old", b"2")
    write_digests(root / "list")
    put(root / "list/old", b"3", OLD + 1)
    put(root / "list/without", b"4")
    (root / "list/link").symlink_to("with")
    (root / "list/d").mkdir()
    server = site(autoindex=True, locations={"/list/sub/": {"digest": False}})
    rows, streamed = listed(server, "/list/?format=json")
    assert streamed == (many > 0) and len(rows) == many + 5
    assert rows["with"] == digest(b"1")
    assert {rows[name] for name in ("old", "without", "link", "d")} == {None}
    assert all(rows[name] == digest(b"") for name in rows if name[0] == "0")


def test_other_listings_have_no_digest(serve_conf, root):
    server = serve_conf({"autoindex": True}, [("with", {"root": root, "names": "with", "digest": True}, {}),
                                              ("without", {"root": root, "names": "without"}, {})])
    for _ in range(2):
        for host in ("with", "without"):
            page = server.get("/?format=json", host=host).body
            assert (digest(DATA).encode() in page) == (host == "with")
            assert b"sha-256" not in server.get("/", host=host).body


def test_digests_pass_the_sandbox(serve_conf, root, debug):
    """The debug build ends at the first call that the filter does not know."""
    server = serve_conf({"autoindex": True}, [("s", {"root": root, "digest": True}, {})], binary=debug)
    assert sent(server.get("/data.bin")) == digest(DATA)
    assert digest(DATA).encode() in server.get("/?format=json").body


@pytest.mark.parametrize("on", [True, False])
@pytest.mark.needs("strace")
def test_attribute_is_read_by_the_pool_and_only_with_the_key(traced, root, tmp_path, on):  # noqa: F811
    conf = tmp_path / "p.conf"
    conf.write_text(harness.configuration({}, [("s", {"root": root, "digest": on}, {})]))
    run = traced("-c", str(conf))
    run.begin()
    with run.server.connect() as c:
        for _ in range(3):
            answer = c.ask("/data.bin")
            assert sent(answer) == (digest(DATA) if on else None)
        c.finish(answer)
    run.end()
    assert [c for c in run.of("pw-worker0") if c.name == "fgetxattr"] == []
    assert len([c for c in run.of("pw-fetch") if c.name == "fgetxattr"]) == (1 if on else 0)


def test_reload_turns_it_on_and_off(serve, root, tmp_path):
    conf = tmp_path / "p.conf"

    def write(on):
        conf.write_text(harness.configuration({}, [("s", {"root": root, "digest": on}, {})]))

    write(False)
    server = serve("-c", conf)
    assert sent(server.get("/data.bin")) is None
    write(True)
    server.reload()
    assert sent(server.get("/data.bin")) == digest(DATA)
    write(False)
    server.reload()
    assert sent(server.get("/data.bin")) is None
