"""Users and passwords: htpasswd, realm."""

import base64
import json
import os
import resource
import select
import signal
import subprocess
import sys

import pytest

from harness import PATIENCE, Finished, checked, request, wait_until
from limits import figure

# By crypt(3); yescrypt is not everywhere.
HASHES = {
    "y": ("secret", "$2y$04$abcdefghijklmnopqrstuu2r9OfJnfCsdneAXAGHnS4UpFFP8WIrW"),
    "b": ("secret", "$2b$05$ABCDEFGHIJKLMNOPQRSTUu6etqWyiSjMSF4tl3grqWcjDUkRhrNJe"),
    "a": ("secret", "$2a$04$ABCDEFGHIJKLMNOPQRSTUux/yVoHLb2P5.QxxfIdIyVUJvRQqUe5S"),
    "sha512": ("pässwörd: x", "$6$rounds=1000$saltsalt$W5xtoxnVBt.tYR7zbu7nladh9mj9hpURYdtoxFjvl9X7iQA6JM7nwVbM6RFP"
               "sdsnICtM7YCbyNRHnkq9jcB7h0"),
    "plain512": ("secret", "$6$saltsalt$TVLlQcbpFVof5W3Yz4DTP6gRstiNuHwwTt6GLc1E5n0U0aDehy0S5knV8wiOQSpT0Y77vwPZN.Pq."
                 "H91p5hVO1"),
    "sha256": ("secret", "$5$rounds=1000$saltsalt$eKLZU9t9OoPWrqOQsoTIKG0aYkZ5rGOoOQhiIvoSWX2"),
    "ünï cödé": ("secret", "$2y$04$abcdefghijklmnopqrstuu2r9OfJnfCsdneAXAGHnS4UpFFP8WIrW"),
}
YESCRYPT = "$y$j75$saltsalt$0gBD67sgmJgRX3RZ6wHHO7sHimQEWGCWN85o4Twogh2"
SLOW = "$2b$11$ABCDEFGHIJKLMNOPQRSTUuOHKTMj6A9VKZoVxdizhB4LgbxRyhEAO"  # "slow"
# Computed many times within a test, even beside ten busy processes.  "cheap"
CHEAP = "$2b$08$ABCDEFGHIJKLMNOPQRSTUudGvh/6FSVKSp2ljdF5ZFITnVk79O4Qa"
# Takes longer than a server waits when it ends.  "endless"
ENDLESS = "$2b$16$ABCDEFGHIJKLMNOPQRSTUuq60ri1b8yPbmZmbPYzl97222989imFC"


BUSY = (r"pagewise: warning: did not verify a password from 127\.0\.0\.\d+: 64 passwords are waiting, or 8 of one client, or memory is short; "
        r"set request_rate, or use cheaper hashes \(htpasswd -B -C 10\)\n")


def credentials(user, password):
    return [("Authorization", "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode())]


Y = credentials("y", "secret")


def address_space(pid):
    with open(f"/proc/{pid}/statm") as f:
        return int(f.read().split()[0]) * resource.getpagesize()


def lines(users):
    return "".join("%s:%s\n" % (user, text) for user, (_, text) in users.items())


def make_users(path):
    path.write_text("# users\n\n" + lines(HASHES) + "slow:%s:and more\n" % SLOW +
                    "cheap:%s\nendless:%s\n" % (CHEAP, ENDLESS))
    path.chmod(0o600)
    return path


def make_root(top):
    (top / "v" / "dir").mkdir(parents=True)
    for name in ("a.txt", "v/a.txt", "v/dir/a.txt"):
        (top / name).write_text("text of " + name)
        os.utime(top / name, (1_600_000_000, 1_600_000_000))
    return top


@pytest.fixture
def users(tmp_path):
    return make_users(tmp_path / "users")


@pytest.fixture
def root(tmp_path):
    return make_root(tmp_path / "site")


@pytest.fixture(scope="module")
def module_site(module_path):
    """A site for lend_conf()."""
    return [("s", {"root": make_root(module_path / "site")}, {"/v/": {"htpasswd": make_users(module_path / "users")}})]


@pytest.fixture
def start(serve_conf, root, users):
    def start(settings=None, locations=None, **top):
        return serve_conf(top, [("s", {"root": root, "autoindex": True, **(settings or {})},
                                 {"/v/": {"htpasswd": users}, **(locations or {})})])

    return start


def statuses(server, fields, times=4):
    return [server.get("/v/a.txt", fields=fields).status for _ in range(times)]


def test_without_a_password_nothing_is_sent(start):
    server = start()
    for _ in range(3):
        answer = server.get("/v/a.txt")
        assert answer.status == 401
        assert answer.get("WWW-Authenticate") == 'Basic realm="Restricted", charset="UTF-8"'
        assert b"text of" not in answer.body and "ETag" not in answer
        answer = server.get("/v/a.txt", fields=Y)
        assert (answer.status, answer.body) == (200, b"text of v/a.txt")
        assert "WWW-Authenticate" not in answer
        assert server.get("/a.txt", fields=Y).status == 200


@pytest.mark.parametrize("user", HASHES)
def test_each_hash(start, user):
    server = start()
    assert statuses(server, credentials(user, HASHES[user][0])) == [200] * 4
    assert statuses(server, credentials(user, HASHES[user][0] + "x")) == [401] * 4
    assert statuses(server, credentials(user, "")) == [401] * 4


def test_yescrypt_where_this_system_knows_it(start, users):
    users.write_text("y:" + YESCRYPT)
    run = checked(users.parent, 'htpasswd = "users"\nsite "s" { root = "/" }\n')
    if run.code != 0:
        assert "users:1: user \"y\": crypt(3) on this system does not support this hash" in run.err
        pytest.skip("crypt(3) does not know yescrypt")
    server = start()
    assert statuses(server, Y) == [200] * 4
    assert statuses(server, credentials("y", "Secret")) == [401] * 4


@pytest.mark.skipif(not hasattr(resource, "prlimit"), reason="no limit of another process")
def test_without_memory_a_password_is_not_wrong(serve_conf, root, users, release, tmp_path):
    """yescrypt allocates.  Nothing is remembered of a password that could not be verified."""
    users.write_text("y:%s\n" % YESCRYPT.replace("j75", "jCT"))  # 128 MiB
    conf = tmp_path / "t.conf"
    conf.write_text('htpasswd = "%s"\nsite "s" { root = "/" }\n' % users)
    if Finished("-t", "-c", str(conf)).code != 0:
        pytest.skip("crypt(3) does not know yescrypt")
    server = serve_conf({"workers": 1}, [("s", {"root": root, "htpasswd": users}, {})], binary=release)
    wrong = credentials("y", "secret")  # not of these parameters
    before = resource.prlimit(server.pid, resource.RLIMIT_AS)
    resource.prlimit(server.pid, resource.RLIMIT_AS, (address_space(server.pid) + (64 << 20), before[1]))
    assert server.get("/a.txt", fields=wrong).status == 503
    resource.prlimit(server.pid, resource.RLIMIT_AS, before)
    assert server.get("/a.txt", fields=wrong).status == 401
    server.stop(messages=BUSY)


@pytest.mark.parametrize("parameters, cause", [
    ("j9T", None), ("jDT", None),
    ("jET", "the cost is too high"), ("jFT", "the cost is too high"), ("jaT", "the cost is too high"),
    ("j9U", "unknown yescrypt parameters"), ("j9TT", "unknown yescrypt"), ("j", "unknown yescrypt"),
    ("k9T", "unknown yescrypt"), ("jD", "unknown yescrypt")])
def test_yescrypt_takes_no_more_than_a_second(tmp_path, users, parameters, cause):
    users.write_text("y:" + YESCRYPT)
    conf = tmp_path / "t.conf"
    conf.write_text('htpasswd = "users"\nsite "s" { root = "/" }\n')
    if Finished("-t", "-c", str(conf)).code != 0:
        pytest.skip("crypt(3) does not know yescrypt")
    users.write_text("y:" + YESCRYPT.replace("j75", parameters))
    run = Finished("-t", "-c", str(conf))
    assert (run.code == 0) == (cause is None), run.err
    assert cause is None or 'users:1: user "y": ' + cause in run.err


@pytest.mark.parametrize("value", [
    "", "Basic", "Basic ", "Basic x", "Basic !!!!", "Bearer eTpzZWNyZXQ=", "Basic eTpzZWNyZXQ", "Basic eTpzZWNyZXQ=x",
    "Basic eTpzZWNyZXQ= eTpzZWNyZXQ=", "Basic=eTpzZWNyZXQ=", "BasiceTpzZWNyZXQ=", "Basic eQ==", "Basic OnNlY3JldA==",
    "Basic " + base64.b64encode(b"y:secret\0").decode(), "Basic " + base64.b64encode(b"y:secret\n").decode(),
    "Basic " + base64.b64encode(b"y:secret" + b"x" * 600).decode(),
    "Basic " + base64.b64encode(b"y" * 510 + b":x").decode()])
def test_wrong_passwords_are_refused(lend_conf, module_site, value):
    server = lend_conf({}, module_site)
    assert statuses(server, [("Authorization", value)], 2) == [401] * 2
    assert statuses(server, [("Authorization", "bAsIc  eTpzZWNyZXQ=")]) == [200] * 4


def test_two_authorization_fields_are_refused(start):
    assert statuses(start(), Y + Y) == [401] * 4


def test_every_response_needs_the_password(start):
    server = start()
    for target, fields, status in (
            ("/v/a.txt", [("Range", "bytes=0-1")], 206), ("/v/a.txt", [("If-None-Match", "*")], 304),
            ("/v/a.txt", [("Range", "bytes=99-")], 416), ("/v/none", [], 404), ("/v/dir", [], 301),
            ("/v/dir/", [], 200), ("/v/.x", [], 404)):
        assert server.get(target, fields=fields).status == 401
        assert server.get(target, fields=fields + Y).status == status
    assert server.get("/v/a.txt", "HEAD").status == 401
    assert server.get("/v/a.txt", "HEAD", fields=Y).status == 200


def test_a_preflight_needs_none_and_allows_the_field(start):
    server = start(locations={"/v/": {"htpasswd": "users", "cors": ["https://example.org"]}})
    answer = server.get("/v/a.txt", "OPTIONS", fields=[("Origin", "https://example.org"),
                                                       ("Access-Control-Request-Method", "GET")])
    assert answer.status == 204
    assert "Authorization" in answer.get("Access-Control-Allow-Headers")


def test_realm_and_caches(start):
    server = start({"realm": "Paid video"}, {"/v/dir/": {"htpasswd": "off", "allow": ["all"]}})
    assert server.get("/v/a.txt").get("WWW-Authenticate") == 'Basic realm="Paid video", charset="UTF-8"'
    assert server.get("/v/a.txt", fields=Y).get("Cache-Control") == "private"
    assert "Cache-Control" not in server.get("/v/a.txt")
    answer = server.get("/v/dir/a.txt")
    assert answer.status == 200 and "Cache-Control" not in answer


def test_address_link_and_password_are_all_checked(start, tmp_path):
    keys = tmp_path / "keys"
    keys.write_text("k" * 64)
    keys.chmod(0o600)
    server = start(locations={"/v/": {"htpasswd": "users", "signed_links": "keys", "deny": ["127.0.0.2"]}})
    link = Finished("sign", "--key", keys, "/v/a.txt").out.strip()
    assert server.get("/v/a.txt", fields=Y).status == 403
    assert server.get(link).status == 401
    assert server.get(link, fields=Y).status == 200
    with server.connect(source="127.0.0.2") as c:
        assert c.ask(link, fields=Y).status == 403


def test_pipelined_requests_wait_for_the_password(start):
    """The first is verified meanwhile; answers come in order."""
    server = start()

    with server.connect() as c:
        c.send(request("/v/a.txt", fields=credentials("slow", "slow")) + request("/a.txt") +
               request("/v/a.txt", fields=credentials("slow", "fast")) + request("/v/a.txt", fields=Y))
        assert [c.response().status for _ in range(4)] == [200, 200, 401, 200]


def test_other_clients_are_served_meanwhile(start):
    server = start(workers=1)
    with server.connect() as slow, server.connect() as other:

        slow.send(request("/v/a.txt", fields=credentials("slow", "no")))
        for _ in range(20):
            assert other.ask("/a.txt").status == 200
        assert slow.response().status == 401


def test_many_at_once_with_the_same_password_wait_for_one(start):
    """More than may wait of one client."""

    server = start(workers=2)
    connections = [server.connect() for _ in range(40)]
    for c in connections:
        c.send(request("/v/a.txt", fields=credentials("slow", "slow")))
    assert {c.response().status for c in connections} == {200}


@pytest.mark.slow
def test_one_client_cannot_fill_the_queue(start):
    server = start(workers=1, disk_timeout=120)
    connections = [server.connect() for _ in range(30)]
    for i, c in enumerate(connections):
        c.send(request("/v/a.txt", fields=credentials("cheap", "no%d" % i)))
    with server.connect(source="127.0.0.2") as other:
        other.send(request("/v/a.txt", fields=Y))
        answers = [c.response() for c in connections]
        found = [answer.status for answer in answers]
        assert set(found) == {401, 503} and found.count(401) >= 8
        assert all("Retry-After" in answer for answer in answers if answer.status == 503)
        assert other.response().status == 200
    server.stop(messages=BUSY)


@pytest.mark.slow
def test_many_clients_cannot_fill_the_queue_for_others(start):
    """Eight times eight are all that may wait; who has none there takes the place of an eighth."""
    server = start(workers=1, disk_timeout=120)
    connections = []
    for source in range(10, 18):
        for i in range(8):
            c = server.connect(source="127.0.0.%d" % source)
            c.send(request("/v/a.txt", fields=[("Connection", "close")] +
                           credentials("cheap", "no%d-%d" % (source, i))))
            connections.append(c)
    with server.connect(source="127.0.0.2") as other:
        assert other.ask("/v/a.txt", fields=Y).status == 200
    # It did not wait for all of them: the last ones of each are still there.
    assert sum(c.quiet(0) for c in connections) >= 1
    answered = [c for c in connections if not c.quiet(0)]
    assert {c.drain()[:12] for c in answered} <= {b"HTTP/1.1 401", b"HTTP/1.1 503"}
    for c in set(connections) - set(answered):
        c.reset()
    server.stop(messages=f"({BUSY})?")


def test_first_try_of_a_client_goes_before_those_of_many_that_guess(start):
    """They fill the queue with a first try each, and the newest of these is verified first."""
    server = start(workers=1, disk_timeout=120)
    guesses = [("127.0.1.%d" % i, credentials("slow", "no%d" % i)) for i in range(1, 90)]
    connections = []
    for source, fields in guesses:
        connections.append(server.connect(source=source))
        connections[-1].send(request("/v/a.txt", fields=fields))
    wait_until(lambda: "did not verify" in server.messages, "a full queue")
    for _ in range(2):  # the second time without a place
        with server.connect(source="127.0.0.2") as c:
            assert c.ask("/v/a.txt", fields=Y).status == 200
    # A new client with a new password for the user that all guess.
    with server.connect(source="127.0.0.3") as c:
        assert c.ask("/v/a.txt", fields=credentials("slow", "slow")).status == 200
    assert sum(c.quiet(0) for c in connections) > 30
    server.kill()  # else the hashes of all are computed first
    server.stop(codes=(-signal.SIGKILL,), messages=True)


@pytest.mark.slow
def test_password_of_a_client_that_left_is_dropped(start):
    server = start(workers=1)
    for i in range(60):
        c = server.connect()
        c.send(request("/v/a.txt", fields=credentials("cheap", "gone%d" % i)))
        c.reset()
    assert server.get("/v/a.txt", fields=Y).status in (200, 503)
    wait_until(lambda: statuses(server, Y, 1) == [200], "a free place")
    server.stop(messages=f"({BUSY})?")


def guesses(server, number):
    """Clients with an address each, whose passwords wait."""
    clients = [server.connect(source="127.0.3.%d" % i) for i in range(1, number + 1)]
    for i, c in enumerate(clients):
        c.send(request("/v/a.txt", fields=credentials("slow", "gone%d" % i)))
    return clients


def test_passwords_of_clients_that_have_reset_are_not_verified(start, tmp_path):
    server = start(workers=1, admin=str(tmp_path / "admin"))
    server.admin = str(tmp_path / "admin")
    clients = guesses(server, 50)
    wait_until(lambda: figure(server, "pagewise_passwords_waiting") > 35, "passwords that wait")
    for c in clients:
        c.reset()
    wait_until(lambda: figure(server, "pagewise_passwords_waiting") == 0, "an empty queue")
    assert figure(server, "pagewise_passwords_hashed_total") < 25
    assert statuses(server, Y, 1) == [200]


def statuses_of(clients):
    """Reads each answer when it comes: a Date must not be old."""
    waiting, found = {c.sock: c for c in clients}, set()
    while waiting:
        ready = select.select(list(waiting), [], [], PATIENCE)[0]
        assert ready, "%d answers have not come" % len(waiting)
        for sock in ready:
            found.add(waiting.pop(sock).response().status)
    return found


@pytest.mark.slow
@pytest.mark.http1("a client of HTTP/2 does not send only its end")
def test_passwords_of_clients_that_have_sent_their_end_are_verified_last(start, tmp_path):
    """They may be gone; or they wait for their answers, and get them."""
    server = start(workers=1, admin=str(tmp_path / "admin"), disk_timeout=120)
    server.admin = str(tmp_path / "admin")
    busy = guesses(server, 4)
    wait_until(lambda: figure(server, "pagewise_passwords_waiting") > 0, "a password that waits")
    stays = server.connect(source="127.0.4.1")
    stays.send(request("/v/a.txt", fields=credentials("cheap", "stays")))
    wait_until(lambda: figure(server, "pagewise_passwords_waiting") > 1, "its password")
    gone = [server.connect(source="127.0.5.%d" % i) for i in range(1, 21)]
    for i, c in enumerate(gone):
        c.send(request("/v/a.txt", fields=credentials("cheap", "end%d" % i)))
        c.half_close()
    assert stays.response().status == 401
    assert figure(server, "pagewise_passwords_hashed_total") < 15
    assert [c.response().status for c in busy] == [401] * 4
    assert statuses_of(gone) == {401}


@pytest.mark.slow
def test_ends_while_passwords_wait(start):
    server = start(workers=1)
    connections = [server.connect() for _ in range(8)]
    for i, c in enumerate(connections):
        c.send(request("/v/a.txt", fields=credentials("cheap", "end%d" % i)))
    server.terminate()
    answered = [c.drain() for c in connections]
    assert all(text.startswith(b"HTTP/1.1 401 ") or not text for text in answered)
    server.stop()


@pytest.mark.slow
def test_ends_while_a_thread_computes_a_hash(start, tmp_path):
    """The server does not wait for the hash, whose thread still reads the file of users."""
    busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(os.cpu_count())]
    try:
        server = start(workers=1, admin=str(tmp_path / "admin"))
        server.admin = str(tmp_path / "admin")
        with server.connect() as c:
            c.send(request("/v/a.txt", fields=credentials("endless", "no")))
            wait_until(lambda: figure(server, "pagewise_password_threads_busy") == 1, "a thread to begin")
            c.reset()
        server.stop()
    finally:
        for process in busy:
            process.kill()
            process.wait()


def test_the_first_user_of_a_file_with_a_byte_order_mark_is_let_in(start, users):
    users.write_bytes(b"\xef\xbb\xbf" + ("new:%s\r\n" % HASHES["y"][1].strip()).encode())
    assert statuses(start(), credentials("new", "secret"), 2) == [200] * 2


def test_reload(start, users):
    server = start()
    new = credentials("new", "secret")
    assert (statuses(server, Y, 1), statuses(server, new, 1)) == ([200], [401])
    users.write_text("new:plaintext\n")
    server.signal(signal.SIGHUP)
    wait_until(lambda: "the old configuration stays in use" in server.messages, "the refusal")
    assert 'users:1: user "new": the password is not hashed: create a new hash with htpasswd -B' in server.messages
    assert (statuses(server, Y, 1), statuses(server, new, 1)) == ([200], [401])
    users.write_text("new:" + HASHES["y"][1])
    server.reload()
    assert (statuses(server, Y, 2), statuses(server, new, 2)) == ([401] * 2, [200] * 2)
    server.stop(messages=True)


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
def test_the_file_can_be_roots_alone(serve_conf, base, users, tmp_path):
    tmp_path.chmod(0o755)
    server = serve_conf({"user": "nobody"}, [("s", {"root": base, "htpasswd": users}, {})],
                        drops=True)
    assert os.stat(users).st_mode & 0o077 == 0
    assert (server.get("/none").status, server.get("/none", fields=Y).status) == (401, 404)


# ------------------------------------------------------------------- log


def test_the_log_has_the_user_and_no_password(serve_conf, root, users, tmp_path):
    log = tmp_path / "log"
    for form in ("combined", "json"):
        server = serve_conf({"workers": 1, "log_format": form, "access_log": log},
                            [("s", {"root": root}, {"/v/": {"htpasswd": users}})])
        name = "ünï cödé"
        for fields in (Y, credentials(name, "secret"), credentials("y", "wrong"), (), Y):
            server.get("/v/a.txt", fields=fields)
        server.get("/a.txt", fields=Y)
        server.stop()
        text = log.read_text()
        log.unlink()
        assert len(text.splitlines()) == 6
        assert "secret" not in text and "Basic" not in text and Y[0][1][6:] not in text
        if form == "json":
            found = [json.loads(line)["user"] for line in text.splitlines()]
            assert found[1] is not None and found[1] == name
            del found[1]
        else:
            found = [line.split(" ")[2] for line in text.splitlines()]
            assert found[1] == r"\xC3\xBCn\xC3\xAF\x20c\xC3\xB6d\xC3\xA9"
            del found[1]
            found = [None if user == "-" else user for user in found]
        assert found == ["y", "y", None, "y", None]  # the wrong password too


def test_the_log_does_not_count_it_as_a_wait_for_a_disk(serve_conf, root, users, tmp_path):
    log = tmp_path / "log"
    server = serve_conf({"workers": 1, "log_format": "json", "access_log": log}, [("s", {"root": root, "htpasswd": users}, {})])
    server.get("/none", fields=credentials("slow", "slow"))
    server.get("/none", fields=credentials("slow", "slow"))
    server.stop()
    first, second = [json.loads(line) for line in log.read_text().splitlines()]
    assert first["disk_wait_us"] < first["duration_us"] / 2
    assert first["user"] == second["user"] == "slow"


# ------------------------------------------------------------- bad files


@pytest.mark.parametrize("text, cause", [
    ("", ": has no user: add one with htpasswd -B FILE USER"),
    ("# x\n\nalice\n", ":3: write USER:HASH, as htpasswd -B does"),
    (":" + SLOW, ":1: write USER:HASH"),
    ("a:secret\n", ':1: user "a": the password is not hashed: create a new hash with htpasswd -B'),
    ("a:\n", ':1: user "a": the password is not hashed'),
    ("a:rqXexS6ZhobKA\n", ':1: user "a": DES is weak: create a new hash with htpasswd -B'),
    ("a:$apr1$lZL6V/ci$eIMz/iKDkbtys/uU7LEK00\n", ':1: user "a": MD5 is weak'),
    ("a:$1$salt$x\n", ':1: user "a": MD5 is weak'),
    ("a:{SHA}5en6G6MezRroT3XKqkdPOmY/BfQ=\n", ':1: user "a": SHA-1 is weak'),
    ("a:$9$x$y\n", ':1: user "a": unknown type of password hash'),
    ("ok:%s\na:%s\n" % (SLOW, SLOW[:-1]), ':2: user "a": the hash is not complete'),
    ("a:%s\n" % SLOW.replace("$11$", "$x1$"), ':1: user "a": the hash is not complete'),
    ("a:%s\n" % SLOW.replace("$11$", "$17$"), ':1: user "a": the cost is too high'),
    ("a:$6$rounds=9000000$saltsalt$%s\n" % ("x" * 86), ':1: user "a": too many rounds'),
    ("a:$6$saltsalt$\n", ':1: user "a": the hash is not complete'),
    ("a:$y$\n", ':1: user "a": '),
    ("a:$6$saltsalt\n", ':1: user "a": the hash is not complete'),
    ("a:%s\nb:%s\na:%s\n" % (SLOW, SLOW, SLOW), ': user "a" is listed twice: remove one line'),
])
def test_a_bad_file_is_an_error(tmp_path, users, text, cause):
    users.write_text(text)
    run = checked(tmp_path, 'site "s" {\nroot = "/"\nhtpasswd = "users"\n}\n')
    assert run.code == 1 and f":3: htpasswd: {users}{cause}" in run.err, run.err


def test_a_file_that_all_may_write_is_an_error(tmp_path, users):
    conf = tmp_path / "p.conf"
    conf.write_text('site "s" { root = "/" htpasswd = "users" }\n')
    for mode, code in (0o664, 0), (0o666, 1), (0o602, 1):
        users.chmod(mode)
        run = Finished("-t", "-c", str(conf))
        assert run.code == code, run.err
        assert code == 0 or f"{users}: other users can write it: chmod o-w it" in run.err
