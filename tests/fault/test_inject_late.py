"""A start that fails at its last step: whoever connects meanwhile is answered."""

import pytest

import harness
import injection
from test_reload_late import Clients, refused


@pytest.mark.parametrize("thread", [0, 1, 2, 3])
def test_a_failed_thread_start_loses_no_request(tmp_path, site, thread):
    (site / "name").write_text("one")
    plan = injection.Plan(tmp_path / "plan")
    args = ["--root", site, "--workers", "2", "--admin", "127.0.0.1:0"]
    server = harness.Server(*args, binary=injection.FAULT, env=plan.env).start()
    try:
        with Clients(server.address) as clients:
            clients.more()
            for _ in range(3):
                plan.fail(("pthread_create", "EAGAIN"), skip=thread)
                refused(server)
                clients.more()
        assert not clients.failures
        plan.heal()
        server.stop(messages=True)
    finally:
        if not server.out.closed:
            server.discard()
