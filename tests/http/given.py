"""A stand-in for a service manager that listens, and gives its sockets to one server
after the other: sd_listen_fds(3)."""

import fcntl
import os
import socket
import sys

# Becomes the server, with the descriptors that it is given as 3, 4, ...
GIVE = """
import os, sys
n = int(sys.argv[1])
for i, fd in enumerate(map(int, sys.argv[2:2 + n])):
    os.dup2(fd, 3 + i)
os.environ.update(LISTEN_PID=str(os.getpid()), LISTEN_FDS=str(n))
os.execv(sys.argv[2 + n], sys.argv[2 + n:])
"""


class Given:
    """Listening sockets, as a service manager holds them."""

    def __init__(self, count=1):
        self.sockets = [socket.create_server(("127.0.0.1", 0), backlog=4096) for _ in range(count)]
        self.fds = [fcntl.fcntl(s, fcntl.F_DUPFD, 100) for s in self.sockets]
        self.ports = [s.getsockname()[1] for s in self.sockets]
        numbers = [str(fd) for fd in self.fds]
        self.becomes = [sys.executable, "-c", GIVE, str(count), *numbers]

    def start(self, serve, *args, **kw):
        """serve: harness.Server, or the fixture."""
        return serve(*args, becomes=self.becomes, pass_fds=self.fds, **kw)

    def close(self):
        for s in self.sockets:
            s.close()
        for fd in self.fds:
            os.close(fd)
