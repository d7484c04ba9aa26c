#!/usr/bin/env python3
"""A server for one directory, in asyncio.  Usage: server.py DIRECTORY PORT.  One thread serves all clients, and
never waits for a disk.  Supports GET over HTTP/1.1."""

import asyncio
import contextlib
import re
import socket
import sys

import pagewise


async def read_request(sock, data):
    """Returns the path of the next request, or None if the client has left, and what follows the request."""
    while b"\r\n\r\n" not in data and len(data) < 4096:
        more = await asyncio.get_running_loop().sock_recv(sock, 4096)
        if not more:
            return None, b""
        data += more
    head, end, data = data.partition(b"\r\n\r\n")
    if not end:  # it is too long
        return None, b""
    found = re.match(rb"GET /([^ ?]*)", head)
    return found[1] if found and found[1] else b"index.html", data


async def serve(pages, root, sock):
    data = b""
    with contextlib.suppress(OSError), sock:
        while True:
            path, data = await read_request(sock, data)
            if path is None:
                return
            try:
                file = await pages.open(root, path)
            except OSError:
                file = None
            with file or contextlib.nullcontext():
                size = file.size if file and file.is_regular else 0
                status = "200 OK" if file and file.is_regular else "404 Not Found"
                head = f"HTTP/1.1 {status}\r\nContent-Length: {size}\r\n\r\n"
                await pages.send(sock, head.encode(), file, 0, size)


async def main(directory, port):
    pages, root, tasks = pagewise.Loop(), pagewise.Root(directory), set()
    listener = socket.create_server(("127.0.0.1", port), backlog=511)
    listener.setblocking(False)
    while True:
        sock, _ = await asyncio.get_running_loop().sock_accept(listener)
        sock.setblocking(False)
        task = asyncio.create_task(serve(pages, root, sock))
        tasks.add(task)
        task.add_done_callback(tasks.discard)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit("usage: server.py DIRECTORY PORT")
    asyncio.run(main(sys.argv[1], int(sys.argv[2])))
