"""The scenarios over HTTP/2: what is compared with what, and runs in miniature."""

import os
import types

import lab
import pytest

from laboratory import bench, host, limits, load, report, results, run, scenarios, servers, tables, undo
from laboratory.scenarios import http2, idle, resets, streams
from laboratory.tables import View

pytestmark = pytest.mark.xdist_group("laboratory")  # it sets up the whole machine

GIB = 1 << 30
TITLES = {"http1-tls": "reference", "nodiskio": "path", "nodiskio-tls": "path", "nginx": "peer",
          "nginx-tls": "peer", "lighttpd-tls": "peer"}


# ---------------------------------------------------------------- h2load

SAID = """TLS Protocol: TLSv1.3
Application protocol: h2

finished in 1.00s, 88.00 req/s, 99.57KB/s
requests: 90 total, 92 started, 88 done, 87 succeeded, 1 failed, 0 errored, 0 timeout
status codes: 91 2xx, 0 3xx, 3 4xx, 0 5xx
traffic: 2.00MB (2097152) total, 2.14KB (2193) headers (space savings 89.56%), 1.91MB (2000000) data
"""


def test_output_of_h2load_is_parsed():
    assert load.h2load_said(SAID) == {"requests": 87, "bytes": 2_000_000, "errors": 1,
                                      "refused": 3}


@pytest.mark.parametrize("line", SAID.splitlines()[1:2] + SAID.splitlines()[4:])
def test_incomplete_output_of_h2load_is_no_measurement(line):
    with pytest.raises(RuntimeError, match="h2load: "):
        load.h2load_said(SAID.replace(line, ""))


def test_http1_is_no_measurement():
    with pytest.raises(RuntimeError):
        load.h2load_said(SAID.replace(": h2", ": http/1.1"))
    with pytest.raises(RuntimeError):
        load.h2load_said(SAID, http1=True)
    assert load.h2load_said(SAID.replace(": h2", ": http/1.1"), http1=True) == load.h2load_said(SAID)


# ------------------------------------------------------------ candidates


def chosen(module, **args):
    return [c.name for c in run.choose(
        module, types.SimpleNamespace(**{"path": None, "peer": None, "quick": False, **args}),
        servers.every())]


def test_plain_and_encrypted_ones_are_measured():
    assert {"nodiskio", "nodiskio-tls", "nginx", "nginx-tls", "h2o-tls"} <= set(chosen(http2))
    assert {"nodiskio", "nodiskio-tls", "nginx-threads"} <= set(chosen(streams))
    assert "nodiskio-rules" not in chosen(http2)


def test_a_server_without_http2_is_not_measured():
    assert "apache" not in chosen(http2, peer=["all"]) and "caddy" in chosen(http2, peer=["all"])


@pytest.mark.parametrize("release, listen, more", [
    ("1.22.1", "listen 127.0.0.2:@PORT@ ssl http2;", ""),
    ("1.25.0", "listen 127.0.0.2:@PORT@ ssl http2;", ""),
    ("1.25.1", "listen 127.0.0.2:@PORT@ ssl;", "http2 on;"),
    ("1.31.5", "listen 127.0.0.2:@PORT@ ssl;", "http2 on;")])
def test_nginx_gets_the_directive_of_its_release(release, listen, more):
    said = servers.nginx_http2(types.SimpleNamespace(words={"SSL": "ssl"}, release=lambda: release))
    first, _, rest = said.partition("\n")
    assert (first, rest.strip()) == (listen, more)


SPEAKING = [c for c in servers.every() if c.http2 is not None and c.name in
            {*http2.CANDIDATES, "h2o", "lighttpd", "caddy"}]


@pytest.mark.parametrize("cand", SPEAKING, ids=lambda c: c.name)
def test_http2_is_on_only_in_its_scenario(cand, base):
    """Ours always does, and who speaks it unasked."""
    lab.needs("h2storm")
    if cand.unusable():
        pytest.skip(cand.unusable())
    here, root = host.Host(base), os.path.join(base, "speaking")
    os.makedirs(root, exist_ok=True)
    with open(f"{root}/file", "wb") as f:
        f.write(b"hello")
    spoken = {}
    for asked in (False, True):
        with undo.Undo() as stack:
            server = servers.Server(stack, cand, here, here.counters(stack, limits.Limits()), root,
                                    http2=asked)
            server.warm("/file", b"hello")
            asker = load.h2storm(stack, [], server.http2_base + "/file", hot=1, seconds=0.1,
                                 rate=20)
            try:
                spoken[asked] = load.check_h2storm(asker.result())["statuses"] == {"200": 2}
            except RuntimeError:
                spoken[asked] = False
    assert spoken[True]
    if cand.tls and not cand.ours:
        assert spoken[False] == cand.http2_unasked


def test_a_server_without_http2_is_refused(base):
    (apache,) = (c for c in servers.peers() if c.name == "apache")
    with pytest.raises(RuntimeError, match="apache speaks no HTTP/2"):
        servers.Server(None, apache, None, None, base, http2=True)


# ------------------------------------------------------------------ parts


def test_large_files_have_streams_of_their_own():
    s = types.SimpleNamespace(cases="1K,1M", streams="1,100", large_streams="10")
    assert http2.parts(s) == ["1K, 1", "1K, 100", "1M, 10"]
    assert [http2.of_part(part).label for part in http2.parts(s)] == [
        "1 KiB, 1 stream", "1 KiB, 100 streams", "1 MiB, 10 streams"]
    assert [http2.measured("http1", part) for part in http2.parts(s)] == [False, False, True]
    assert all(http2.measured("nginx", part) for part in http2.parts(s))


@pytest.mark.parametrize("setting, why", [
    ({"streams": "0"}, "0 streams: from 1"), ({"large_streams": "1001"}, "1001 streams: from 1"),
    ({"cases": "2K"}, "2K: there are")])
def test_settings_without_effect_are_refused(setting, why):
    with pytest.raises(ValueError, match=why):
        scenarios.settings(http2, False, setting)
    with pytest.raises(ValueError, match="elsewhere: there are"):
        scenarios.settings(streams, False, {"where": "elsewhere"})
    with pytest.raises(ValueError, match="streams are HTTP/2's"):
        scenarios.settings(scenarios.load("idle"), False, {"streams": "3"})
    with pytest.raises(ValueError, match="spdy: there are"):
        scenarios.settings(scenarios.load("idle"), False, {"protocol": "spdy"})


def view(module, name, values):
    about = {"candidates": {n: {"title": n, "version": "", "kind": k} for n, k in TITLES.items()},
             "scenarios": {name: {"settings": dict(module.FULL)}}}
    rounds = [results.Round(name, cand, number, found) for cand in about["candidates"]
              for number in (1, 2) if (found := values(cand, number))]
    return View(about, name, rounds)


CPU = {"http1-tls": 0.5, "nodiskio": 0.2, "nodiskio-tls": 0.55, "nginx": 0.4, "nginx-tls": 1.1,
       "lighttpd-tls": 2.2}  # seconds of a GiB


def http2_values(cand, number):
    def took(part):
        size = http2.of_part(part).case.size
        return {"server": cand, "part": part, "round": number, "cpu": CPU[cand], "t": 2.0,
                "own_cpu": 1.0, "bytes": GIB, "answers": GIB / size, "asleep": None,
                "turn": 0.001}
    return {part: took(part) for part in ("1K, 10", "1M, 10") if http2.measured(cand, part)}


def test_ratios_compare_candidates_with_equal_work():
    pytest.importorskip("matplotlib")
    seen = view(http2, "http2", http2_values)
    small, large = ("\n".join(tables.markdown(seen, table)) for table in http2.tables(seen))
    assert small.startswith("1 KiB, 10 streams (best peer: nginx; best peer, TLS: nginx-tls):")
    assert "http1" not in small
    assert "| nodiskio-tls | 0.550 | 1.10 | 0.50 |" in large
    assert "| nodiskio | 0.200 | – | 0.50 |" in large
    assert "| lighttpd-tls | 2.200 | 4.40 | 2.00 |" in large
    assert "| nginx-tls | 1.100 | 2.20 | – |" in large
    assert all(report.svg(figure).startswith("<svg") for _, figure in http2.figures(seen))


def streams_values(cand, _number):
    def one(rate, p99):
        return {"rate": rate, "requests": 1000, "cpu": 0.02, "t": 2.0, "own_cpu": 1.0,
                "seconds": 2.0, "cold_bytes_per_second": 20 << 20, "asleep": None, "turn": 0.001,
                "latency_us": {"p50": 50, "p99": p99, "max": 10 * p99}}
    if TITLES[cand] == "reference":
        return None
    return {where: {"alone": one(1000, 200), "calm": one(1000, 200), "storm": one(950, 300),
                    "stormy": one(1000, 300), "limit": 40 << 20} for where in streams.WHERE}


def test_kept_rate_and_p99_are_relative_to_the_quiet_part():
    pytest.importorskip("matplotlib")
    seen = view(streams, "streams", streams_values)
    made = ["\n".join(tables.markdown(seen, table)) for table in streams.tables(seen)]
    assert len(made) == 2 and made[0].startswith("cold streams on the same connection:")
    assert ("| nodiskio-tls | 1 000 | 20.0 | 0.2 ms | 950 | 0.95 | 50 µs | 0.3 ms | 1.5 | 3 ms | "
            "0.50 | 0.50 |") in made[0]
    assert all(report.svg(figure).startswith("<svg") for _, figure in streams.figures(seen))


def resets_values(cand, _number):
    def one(p99):
        return {"cpu": 0.4, "t": 2.0, "asleep": None, "turn": 0.001,
                "latency_us": {"p50": 50, "p99": p99, "max": 10 * p99}}
    if TITLES[cand] == "reference":
        return None
    return {"calm": one(200), "stormy": one(300), "resets": {
        "rate": 100_000, "resets": 200_000, "seconds": 2.0, "connections": 1000, "calmed": 990}}


def test_p99_beside_resets_is_of_alone():
    pytest.importorskip("matplotlib")
    seen = view(resets, "resets", resets_values)
    (made,) = ["\n".join(tables.markdown(seen, table)) for table in resets.tables(seen)]
    assert ("| nodiskio-tls | 50 µs | 0.2 ms | 50 µs | 0.3 ms | 1.5 | 3 ms | 100 000 | 500 | 0.99 | "
            "20% | 20% |") in made
    assert all(report.svg(figure).startswith("<svg") for _, figure in resets.figures(seen))


def test_a_stream_has_its_share_of_what_the_connections_take():
    taken = {"before": {"user": 1 << 20}, "idle": {"user": 5 << 20}, "connections": 16, "streams": 64}
    assert idle.of_a_stream(taken) == 4096


def test_cold_files_of_two_storms_are_others():
    made = bench.Bench(types.SimpleNamespace(data=""), types.SimpleNamespace(
        hot_kib=16, memory_mib=16), 1, 1, "")
    storm = streams.Storm(made, None)
    one, two = storm.fresh(), storm.fresh()
    assert set(one) == set(two) and not set(one[:64]) & set(two[:64]) and len(one) == 128


# -------------------------------------------------------------- miniature


@pytest.fixture(scope="module")
def data(base):
    path = os.path.join(base, "http2-data")
    os.makedirs(path)
    return path


def measured(data, out, name, path, **changes):
    words = [word for key, value in changes.items() for word in ("--set", f"{name}.{key}={value}")]
    status, _, err = lab.run("run", name, "--rounds", 1, "--data", data, "--out", out, "--path",
                             path, *words)
    assert status == 0, err
    return lab.rounds(out)


def test_http2_in_miniature(data, tmp_path):
    lab.needs("h2load", "wrk")
    found = measured(data, tmp_path / "out", "http2", "nodiskio-tls", seconds=1, cases="1K,1M",
                     streams=3, large_streams=2)
    assert set(found) == {("http2", "nodiskio-tls"), ("http2", "http1-tls")}
    values = found["http2", "nodiskio-tls"][0]["values"]
    assert set(values) == {"1K, 3", "1M, 2"}
    assert all(v["bytes"] > 0 and v["cpu"] > 0 for v in values.values())
    assert values["1K, 3"]["requests"] > 0


def test_streams_in_miniature(data, tmp_path):
    lab.needs("h2storm", "limits")
    found = measured(data, tmp_path / "out", "streams", "nodiskio-tls", seconds=1, probe_seconds=1,
                     probe_timeout=20, memory_mib=16, limit_mib=20, probe_rate=50, cold=6, hot=3,
                     lead=0.3)
    values = found["streams", "nodiskio-tls"][0]["values"]
    assert set(values) == {"shared", "apart"}
    for v in values.values():
        assert v["alone"]["requests"] > 0 and v["storm"]["disk_bytes"] > 0
        assert v["calm"]["latency_us"]["count"] == v["stormy"]["latency_us"]["count"] == 50
        assert v["stormy"]["cold_bytes_per_second"] > 0


def test_resets_in_miniature(data, tmp_path):
    lab.needs("h2storm", "resets")
    found = measured(data, tmp_path / "out", "resets", "nodiskio-tls", rate=2000, probe_seconds=1,
                     probe_timeout=20, probe_rate=50, hot=3, lead=0.3)
    values = found["resets", "nodiskio-tls"][0]["values"]
    assert values["resets"]["resets"] > 200 and values["resets"]["calmed"] > 0
    assert values["calm"]["latency_us"]["count"] == values["stormy"]["latency_us"]["count"] == 50
