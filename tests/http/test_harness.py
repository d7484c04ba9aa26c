"""That a test fails if a sanitizer has found something, whoever it was that it found it in."""

import pytest

import harness

pytestmark = pytest.mark.once

FINDINGS = [
    "==7==ERROR: AddressSanitizer: heap-use-after-free on address 0x1",
    "==7==ERROR: LeakSanitizer: detected memory leaks",
    "WARNING: ThreadSanitizer: data race (pid=7)",
    "lib/a.c:7:2: runtime error: signed integer overflow",
    "pagewise: a.c:7: f: Assertion `x' failed.",
    "lib/disk/pool.c:7: check failed: n > 0",
    "pagewise: server process 7 was killed by signal 11 (Segmentation fault)",
]
# A process that nobody waits for says it, and the server ends well.
SAYS = ["sh", "-c", '(echo "$0" >&2); exec "$@"']


@pytest.mark.parametrize("finding", FINDINGS)
@pytest.mark.parametrize("end", [lambda s: s.stop(messages=True), lambda s: s.discard()],
                         ids=["stop", "discard"])
def test_a_finding_of_a_process_that_ended_unseen_is_a_failure(site, finding, end):
    server = harness.Server("--root", site, becomes=SAYS + [finding]).start()
    with pytest.raises(AssertionError, match=r"7"):
        end(server)
    assert server.out.closed and not server.running


def test_a_server_process_that_ended_badly_is_a_failure(site):
    died = "pagewise: server process 7 exited with status 99"
    server = harness.Server("--root", site, becomes=SAYS + [died]).start()
    with pytest.raises(AssertionError, match="status 99"):
        server.stop(messages=True)


def test_messages_of_the_server_are_no_finding():
    harness.judge("pagewise: server process 7 was killed by signal 9 (Killed)\n"
                  "pagewise: cannot read d62/cold: Input/output error\n")
