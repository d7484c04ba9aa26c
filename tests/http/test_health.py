"""The paths live and ready: what a balancer is told."""

import pytest

from harness import wait_until


@pytest.fixture
def site(serve_conf, tmp_path):
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "f").write_text("file")
        (tmp_path / name / "ready").write_text("a file")

    def start(locations=None, **top):
        return serve_conf({"live": "/live", "ready": "/ready", **top}, [
            ("one", {"names": ["one"], "root": tmp_path / "a"}, locations or {}),
            ("two", {"names": ["two"], "root": tmp_path / "a"},
             {"/b/": {"alias": tmp_path / "b"}})])

    return start


def test_responses_of_live_and_ready(site):
    server = site()
    for host in ("one", "two", "nobody"):
        for _ in range(3):
            answer = server.get("/live", host=host)
            assert (answer.status, answer.body) == (200, b"live\n")
            answer = server.get("/ready", host=host)
            assert (answer.status, answer.body) == (200, b"ready\none: ok\ntwo /b/: ok\n")
            assert answer.get("Cache-Control") == "no-store"
            assert answer.get("Content-Type") == "text/plain; charset=utf-8"
    answer = server.get("/ready", "HEAD")
    assert (answer.status, answer.length) == (200, 26)
    assert server.get("/live?x=1").body == b"live\n"
    assert server.get("/%6cive").body == b"live\n"
    assert server.get("/ready", "POST").status == 405
    assert server.get("/ready/").status == 404


def test_rules_for_files_do_not_make_health_checks_cacheable(serve_conf, tmp_path):
    server = serve_conf({"live": "/live", "ready": "/ready"}, [
        ("s", {"root": tmp_path, "cache_control": "max-age=60", "header": ["X-A: 1", "always X-B: 2"]}, {})])
    for path in ("/live", "/ready"):
        answer = server.get(path)
        assert answer.all("Cache-Control") == ["no-store"]
        assert (answer.all("X-A"), answer.all("X-B")) == ([], ["2"])


def test_without_the_keys_the_paths_are_files(site):
    server = site(ready="off")
    assert server.get("/ready").body == b"a file"
    assert server.get("/live").body == b"live\n"
    server = site(live="off", ready="off")
    assert server.get("/live").status == 404


def test_health_checks_work_after_a_reload(site):
    server = site(workers=2)
    server.reload()
    assert server.get("/ready").status == 200
    wait_until(lambda: len(server.processes()) == 1, "the old process to end")
