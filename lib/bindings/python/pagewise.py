"""libpagewise for asyncio: sends files over sockets, and never waits for a disk.

A Loop belongs to the thread of its asyncio loop, as do its files.  libpagewise(3) describes what the library does.
The structs are those of <pagewise.h> on 64-bit systems.
"""

import asyncio
import contextlib
import ctypes as c
import errno
import os

_lib = c.CDLL(os.environ.get("PAGEWISE_LIBRARY", "libpagewise.so.1"))
_DONE, _WANT_WRITE, _AGAIN, _PENDING, _ERROR = range(5)


class Waiter(c.Structure):
    """struct pw_waiter"""


_wt_done = c.CFUNCTYPE(None, c.c_void_p)
Waiter._fields_ = [("wt_done", _wt_done), ("wt_loop", c.c_void_p), ("wt_next", c.c_void_p), ("wt_error", c.c_int),
                   ("wt_client", c.c_uint)]


class Timespec(c.Structure):
    """struct timespec"""
    _fields_ = [("tv_sec", c.c_int64), ("tv_nsec", c.c_long)]


class FileStruct(c.Structure):
    """struct pw_file"""
    _fields_ = [("fil_fd", c.c_int), ("fil_type", c.c_uint), ("fil_size", c.c_int64), ("fil_mtime", Timespec),
                ("fil_ctime", Timespec), ("fil_ino", c.c_uint64), ("fil_dev", c.c_uint64), ("fil_checked", c.c_uint64),
                ("fil_attribute", c.c_void_p), ("fil_attribute_len", c.c_size_t), ("fil_user", c.c_void_p),
                ("fil_user_free", c.c_void_p), ("fil_stale", c.c_bool)]


class OpenStruct(c.Structure):
    """struct pw_open"""
    _fields_ = [("op_waiter", Waiter), ("op_attribute", c.c_bool), ("op_file", c.POINTER(FileStruct)),
                ("op_link", c.c_void_p * 2), ("op_others", c.c_void_p)]


class SendStruct(c.Structure):
    """struct pw_send"""
    _fields_ = [("snd_path", c.c_void_p), ("snd_loop", c.c_void_p), ("snd_sock", c.c_int), ("snd_sink", c.c_void_p),
                ("snd_more", c.c_bool), ("snd_begun", c.c_bool), ("snd_index", c.c_bool), ("snd_grows", c.c_bool), ("snd_mem", c.c_char_p),
                ("snd_mem_len", c.c_size_t), ("snd_file", c.POINTER(FileStruct)), ("snd_off", c.c_int64), ("snd_len", c.c_int64),
                ("snd_readahead", c.c_uint64), ("snd_cache", c.c_uint), ("snd_rate", c.c_uint64),
                ("snd_pace", c.c_uint64), ("snd_limit", c.c_uint64), ("snd_done", _wt_done), ("snd_sent", c.c_uint64),
                ("snd_wait", c.c_uint64), ("snd_pending", c.c_bool), ("snd_error", c.c_int),
                ("snd_private", c.c_uint64 * 30)]


def _declare(name, returns, *arguments):
    function = getattr(_lib, name)
    function.restype, function.argtypes = returns, arguments
    return function


_p, _file, _open, _send = c.c_void_p, c.POINTER(FileStruct), c.POINTER(OpenStruct), c.POINTER(SendStruct)
_now = _declare("pw_now", c.c_uint64)
_pool_create = _declare("pw_pool_create", c.c_int, _p, c.POINTER(_p))
_pool_destroy = _declare("pw_pool_destroy", c.c_int, c.POINTER(_p), c.c_uint64)
_loop_create = _declare("pw_loop_create", c.c_int, _p, _p, c.POINTER(_p))
_loop_fd = _declare("pw_loop_fd", c.c_int, _p)
_loop_drain = _declare("pw_loop_drain", None, _p)
_loop_tick = _declare("pw_loop_tick", None, _p, c.c_uint64)
_loop_pending = _declare("pw_loop_pending", c.c_uint, _p)
_loop_destroy = _declare("pw_loop_destroy", c.c_int, c.POINTER(_p))
_root_open = _declare("pw_root_open", c.c_int, c.c_char_p, c.POINTER(_p))
_root_close = _declare("pw_root_close", None, c.POINTER(_p))
_file_open = _declare("pw_file_open", c.c_int, _p, _p, c.c_char_p, c.c_uint64, _open)
_open_cancel = _declare("pw_open_cancel", c.c_int, _open)
_file_unref = _declare("pw_file_unref", None, c.POINTER(_file))
_send_default = _declare("pw_send_default", _p)
_send_start = _declare("pw_send_start", c.c_int, _send)
_send_step = _declare("pw_send_step", c.c_uint, _send)
_send_cancel = _declare("pw_send_cancel", None, _send)
_send_take_back = _declare("pw_send_take_back", c.c_bool, _send)
_send_finish = _declare("pw_send_finish", None, _send)

_waiting = {}
"""The future of each struct that the library has, by address, and the struct, which so stays."""


@_wt_done
def _on_done(address):
    future = _waiting.pop(address)[0]
    if not future.done():
        future.set_result(None)


def _check(error):
    if error < 0:
        raise OSError(-error, os.strerror(-error))


class File:
    """An open file; close() releases it."""

    def __init__(self, raw):
        self._raw = raw
        self.is_regular, self.size = raw.contents.fil_type == 0, raw.contents.fil_size
        self.mtime_ns = raw.contents.fil_mtime.tv_sec * 10**9 + raw.contents.fil_mtime.tv_nsec

    def close(self):
        _file_unref(self._raw)  # sets the pointer to NULL, and accepts NULL

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def _path(path):
    """A path for the library, which would end at a null byte."""
    encoded = os.fsencode(path)
    if b"\0" in encoded:
        raise ValueError("embedded null byte")
    return encoded


class Root:
    """A directory; nothing outside it is opened.  May wait for the disk."""

    def __init__(self, path):
        self._raw = _p()
        _check(_root_open(_path(path), self._raw))

    def close(self):
        if self._raw:
            _root_close(self._raw)


class Loop:
    """Disk threads, and the library's end of the asyncio loop that runs."""

    def __init__(self):
        self._pool, self._raw = _p(), _p()
        _check(_pool_create(None, self._pool))
        _check(_loop_create(self._pool, None, self._raw))
        self._asyncio = asyncio.get_running_loop()
        self._asyncio.add_reader(_loop_fd(self._raw), lambda: _loop_drain(self._raw))
        self._tick()

    def _tick(self):
        _loop_tick(self._raw, _now())
        self._timer = self._asyncio.call_later(0.25, self._tick)

    def _wait(self, struct, *keep):
        """A future that _on_done ends."""
        future = self._asyncio.create_future()
        _waiting[c.addressof(struct)] = future, struct, *keep
        return future

    async def close(self):
        """Waits until disk threads have finished.  Close files before."""
        while _loop_pending(self._raw) > 0:
            await asyncio.sleep(0.01)
        self._timer.cancel()
        self._asyncio.remove_reader(_loop_fd(self._raw))
        _check(_loop_destroy(self._raw))
        _check(_pool_destroy(self._pool, 1000000))

    async def open(self, root, path):
        """Opens a path, which is relative to the root."""
        op = OpenStruct()
        op.op_waiter.wt_done = _on_done
        error = _file_open(self._raw, root._raw, _path(path), _now(), op)
        if error == -errno.EINPROGRESS:
            try:
                await self._wait(op)
            except asyncio.CancelledError:
                if _waiting.pop(c.addressof(op), None):
                    _open_cancel(op)
                else:
                    _file_unref(op.op_file)
                raise
            error = op.op_waiter.wt_error
        _check(error)
        return File(op.op_file)

    async def send(self, sock, head, file=None, offset=0, length=0):
        """Sends `head`, then `length` bytes of the file over a non-blocking socket.

        After an error close the socket.  If the task is cancelled while a disk thread uses the socket, waits for it.
        """
        s = SendStruct(snd_path=_send_default(), snd_loop=self._raw, snd_sock=sock.fileno(), snd_mem=head,
                       snd_mem_len=len(head), snd_off=offset, snd_len=length, snd_done=_on_done)
        if length > 0:
            if not file or not file._raw:
                raise ValueError("no open file")
            s.snd_file = file._raw
        _check(_send_start(s))
        try:
            while (status := _send_step(s)) != _DONE:
                if status == _ERROR:
                    _check(s.snd_error)
                elif status == _AGAIN:
                    await asyncio.sleep(0)
                elif status == _WANT_WRITE:
                    await self._writable(sock)
                else:
                    await self._pending(s, head)
            return s.snd_sent
        finally:
            if not s.snd_pending:
                _send_finish(s)

    async def _pending(self, s, head):
        future = self._wait(s, head)
        try:
            await asyncio.shield(future)
        except asyncio.CancelledError:
            if s.snd_pending:
                taken = _send_take_back(s)
                _send_cancel(s)
                future.add_done_callback(lambda _: _send_finish(s))
                while not taken and not future.done():
                    with contextlib.suppress(asyncio.CancelledError):  # another one
                        await asyncio.wait([future])
            raise

    async def _writable(self, sock):
        future = self._asyncio.create_future()
        self._asyncio.add_writer(sock, lambda: future.done() or future.set_result(None))
        try:
            await future
        finally:
            self._asyncio.remove_writer(sock)
