"""The admin side of a running server."""

import http.client
import re
import socket

import pytest

import harness
from harness import wait_until

parser = pytest.importorskip("prometheus_client.parser")

ADMIN = re.compile(r"^pagewise: admin at (\S+)$", re.M)


class Admin:
    """The admin side of a running server."""

    def __init__(self, server):
        self.url = ADMIN.search(server.output).group(1)

    def connect(self):
        if self.url.startswith("unix:"):
            connection = http.client.HTTPConnection("localhost", timeout=harness.PATIENCE)
            connection.sock = socket.socket(socket.AF_UNIX)
            connection.sock.settimeout(harness.PATIENCE)
            connection.sock.connect(self.url[5:])
            return connection
        host = self.url[len("http://"):-1]
        return http.client.HTTPConnection(host, timeout=harness.PATIENCE)

    def ask(self, path="/metrics", method="GET", body=None, **fields):
        connection = self.connect()
        connection.request(method, path, body=body,
                           headers={k.replace("_", "-"): v for k, v in fields.items()})
        response = connection.getresponse()
        response.text = response.read().decode()
        connection.close()
        return response

    def families(self):
        response = self.ask()
        assert response.status == 200
        assert response.headers["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8"
        return {f.name: f for f in parser.text_string_to_metric_families(response.text)}

    def value(self, sample, **labels):
        """Of one sample, or the sum of those with these labels."""
        return sum(s.value for f in self.families().values() for s in f.samples
                   if s.name == sample and labels.items() <= s.labels.items())

    def wait(self, sample, value, **labels):
        wait_until(lambda: self.value(sample, **labels) == value,
                   "%s%r to be %s" % (sample, labels, value))
