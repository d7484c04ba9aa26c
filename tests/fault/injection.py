"""The test's side of inject.h: the plan that both map, and what may happen to which
call.  See inject.c for what a rule is."""

import ctypes
import errno
import mmap
import os
import subprocess

import harness

FAULT = os.environ.get("PAGEWISE_FAULT", os.path.join(harness.TREE, "build/fault/pagewise"))

CALLS, SITES, EFFECTS, RULES = 160, 2048, 8, 4
SHORT = {"one": -1, "half": -2, "none": -3}

# What the manual pages allow and the kernel does to a server that serves.  An effect
# that could only be a lie (EAGAIN of a descriptor that has just said it is ready, and
# never says it again) is made true by inject.c, or is not here.
ON = {
    "malloc": "ENOMEM",
    "calloc": "ENOMEM",
    "realloc": "ENOMEM",
    "reallocarray": "ENOMEM",
    "aligned_alloc": "ENOMEM",
    "strdup": "ENOMEM",
    "strndup": "ENOMEM",
    "asprintf": "ENOMEM",
    "event_malloc": "ENOMEM",
    "event_realloc": "ENOMEM",
    "mmap": "ENOMEM ENODEV",
    "madvise": "ENOMEM EIO EAGAIN",
    "mlock2": "ENOMEM EAGAIN EPERM",
    "mincore": "EAGAIN ENOMEM",
    "memfd_create": "EMFILE ENFILE ENOMEM",
    "socket": "EMFILE ENFILE ENOBUFS",
    "bind": "EADDRINUSE EACCES",
    "listen": "EADDRINUSE",
    "connect": "ECONNREFUSED EINTR",
    "accept4": "EAGAIN ECONNABORTED EINTR EMFILE ENFILE ENOBUFS ENOMEM",
    "getsockopt": "ENOBUFS",
    "setsockopt": "ENOMEM ENOPROTOOPT",
    "socketpair": "EMFILE ENFILE ENOMEM",
    "sendto": "ECONNREFUSED EAGAIN",
    "recvmsg": "EINTR",
    "shutdown": "ENOTCONN",
    "recv": "EINTR EAGAIN ECONNRESET ENOMEM one half none",
    "send": "EINTR EAGAIN ECONNRESET EPIPE ENOMEM one half",
    "sendmsg": "EINTR EAGAIN ECONNRESET EPIPE ENOMEM one half",
    "sendfile": "EINTR EAGAIN EIO ENOMEM EPIPE one half none",
    "splice": "EINTR EAGAIN EIO ENOMEM EPIPE one half none",
    "vmsplice": "EINTR EAGAIN ENOMEM EFAULT",
    "read": "EINTR EAGAIN EIO one half",
    "pread": "EINTR EIO one half none",
    "fgetxattr": "EIO ENOMEM ENODATA EOPNOTSUPP",
    "preadv2": "EINTR EAGAIN EIO ENOMEM one half none",
    "write": "EINTR EAGAIN EIO ENOSPC one half",
    "pwrite": "EIO ENOSPC one half none",
    "fallocate": "ENOSPC EOPNOTSUPP",
    "flock": "EWOULDBLOCK",
    "fdatasync": "EIO ENOSPC",
    "fstat": "EIO ENOMEM",
    "stat": "EIO ENOMEM",
    "lstat": "EIO ENOMEM",
    "statx": "EIO ENOMEM ENOSYS",
    "fstatfs": "EIO EINTR",
    "faccessat": "EIO",
    "chmod": "EPERM",
    "unlink": "EIO",
    "realpath": "EACCES ENOMEM",
    "opendir": "EMFILE EIO ENOMEM",
    "fdopendir": "ENOMEM",
    "readdir": "EIO",
    "fopen": "EMFILE EIO ENOMEM",
    "fdopen": "ENOMEM",
    "posix_fadvise": "EIO ENOMEM",
    "ftruncate": "EIO EPERM",
    "posix_fallocate": "ENOSPC EINTR",
    "pipe2": "EMFILE ENFILE",
    "eventfd": "EMFILE ENFILE ENOMEM",
    "poll": "EINTR ENOMEM",
    "ppoll": "EINTR",
    "fork": "EAGAIN ENOMEM",
    "execv": "ENOENT EACCES ENOMEM",
    "getcwd": "ENOENT",
    "readlink": "ENOENT",
    "readlinkat": "EIO",
    "setenv": "ENOMEM",
    "getrandom": "ENOSYS EAGAIN",
    "chdir": "EACCES",
    "chroot": "EPERM",
    "setgroups": "EPERM ENOMEM",
    "setresgid": "EPERM",
    "setresuid": "EPERM EAGAIN",
    "prctl": "EINVAL",
    "capset": "EPERM",
    "landlock": "ENOMEM ENOSYS EPERM",
    "seccomp": "ENOMEM ENOSYS EPERM",
    "seccomp_init": "ENOMEM",
    "seccomp_attr_set": "EINVAL",
    "seccomp_rule_add": "ENOMEM",
    "seccomp_rule_add_array": "ENOMEM",
    "seccomp_load": "ECANCELED",
    "getrlimit": "EINVAL",
    "setrlimit": "EPERM",
    "getrusage": "EINVAL",
    "pthread_create": "EAGAIN",
    "open": "EINTR EIO EMFILE ENFILE ENOMEM",
    "openat": "EINTR EIO EMFILE ENFILE ENOMEM",
    "fcntl": "EMFILE",
    "ioctl": "EINVAL",
    "syscall": "ENOSYS",
    "openat2": "EINTR EAGAIN EIO EMFILE ENFILE ENOMEM",
    "cachestat": "EPERM ENOSYS EIO",
    "event_add": "ENOMEM",
    "event_new": "ENOMEM",
    "event_base_new": "ENOMEM",
    "event_base_new_with_config": "ENOMEM",
    "event_base_once": "ENOMEM",
    "evhttp_new": "ENOMEM",
    "evhttp_bind_listener": "ENOMEM",
    "evhttp_add_header": "ENOMEM",
    "evconnlistener_new": "ENOMEM",
    "evbuffer_add_reference": "ENOMEM",
    "openssl_begin": "ENOMEM",
    "openssl_malloc": "ENOMEM",
    "openssl_realloc": "ENOMEM",
    "nghttp2_malloc": "ENOMEM",
    "nghttp2_calloc": "ENOMEM",
    "nghttp2_session_server_new3": "ENOMEM",
    "nghttp2_session_callbacks_new": "ENOMEM",
    "nghttp2_option_new": "ENOMEM",
    "nghttp2_session_resume_data": "ENOMEM",
    "SSL_new": "ENOMEM",
    "SSL_set_ex_data": "ENOMEM",
    "SSL_do_handshake": "ENOMEM",
    "BIO_new": "ENOMEM",
    "SSL_CTX_new": "ENOMEM",
    "SSL_CTX_new_ex": "ENOMEM",
    "SSL_CTX_use_cert_and_key": "ENOMEM",
    "EVP_EncryptUpdate": "ENOMEM",
    "EVP_EncryptFinal_ex": "ENOMEM",
    "EVP_DecryptUpdate": "ENOMEM",
    "EVP_DecryptFinal_ex": "ENOMEM",
    "io_uring_queue_init_params": "ENOMEM EPERM ENOSYS EMFILE",
    "io_uring_register_eventfd": "EMFILE ENOMEM",
    "io_uring_register_iowq_max_workers": "EINVAL",
    "io_uring_submit": "EAGAIN EBUSY EINTR EIO one half",
}


# What a kernel may do at any time to a server that lacks nothing: no client may notice.
USUAL = {"EINTR", "EAGAIN", "one", "half"}
# These lack something then.
LACKING = {"madvise", "mlock2", "mincore", "sendto", "fork", "getrandom", "pthread_create",
           "setresuid", "io_uring_submit"}


def is_usual(name, effect):
    return effect in USUAL and (effect != "EAGAIN" or name not in LACKING)


def effects(name):
    return ON[name].split()


def number(effect):
    return SHORT.get(effect) or getattr(errno, effect)


class Call(ctypes.Structure):
    _fields_ = [
        ("name", ctypes.c_char * 48),
        ("seen", ctypes.c_uint64),
        ("failed", ctypes.c_uint64),
        ("effects", ctypes.c_int32 * EFFECTS),
    ]


class Rule(ctypes.Structure):
    _fields_ = [
        ("key", ctypes.c_uint64),
        ("skip", ctypes.c_int64),
        ("times", ctypes.c_int64),
        ("effect", ctypes.c_int64),
    ]


class Site(ctypes.Structure):
    _fields_ = [
        ("key", ctypes.c_uint64),
        ("seen", ctypes.c_uint64),
        ("place", ctypes.c_uint64),
        ("call", ctypes.c_uint32),
        ("pad", ctypes.c_uint32),
    ]


class Shared(ctypes.Structure):
    _fields_ = [
        ("magic", ctypes.c_uint32),
        ("ncalls", ctypes.c_uint32),
        ("pid", ctypes.c_int32),
        ("ppm", ctypes.c_uint32),
        ("random", ctypes.c_uint64),
        ("full", ctypes.c_uint64),
        ("rules", Rule * RULES),
        ("calls", Call * CALLS),
        ("sites", Site * SITES),
    ]


class Plan:
    """A plan file, and the server's view of it."""

    def __init__(self, path):
        self.path = os.fspath(path)
        size = -(-ctypes.sizeof(Shared) // mmap.PAGESIZE) * mmap.PAGESIZE
        with open(self.path, "w+b") as f:
            f.truncate(size)
            self.map = mmap.mmap(f.fileno(), size)
        self.shared = Shared.from_buffer(self.map)
        # So that the calls have their names before anything is to fail.
        subprocess.run([FAULT, "-V"], env=dict(os.environ, **self.env), check=True,
                       stdout=subprocess.DEVNULL)
        names = [c.name.decode() for c in self.shared.calls[: self.shared.ncalls]]
        self.index = {n: i for i, n in enumerate(names) if n}
        self.names = {i: n for n, i in self.index.items()}
        self.forget()

    @property
    def env(self):
        return {"PAGEWISE_FAULTS": self.path}

    def forget(self):
        """No site has been seen, no call has failed."""
        self.heal()
        ctypes.memset(ctypes.byref(self.shared.sites), 0, ctypes.sizeof(self.shared.sites))
        for call in self.shared.calls:
            call.seen = call.failed = 0

    def seen(self):
        """{key: (call's name, place)} of the sites that were passed."""
        assert self.shared.full == 0, "the table of sites is too small"
        # A copy: an element of an array of structures is slow to look at.
        raw = (Site * SITES).from_buffer_copy(self.shared.sites)
        return {s.key: (self.names[s.call], s.place) for s in raw if s.key and s.seen}

    def fail(self, *faults, skip=0, times=1):
        """faults: pairs of a site's key, or a call's name for all of its sites, and what
        happens to it.  The last is the one that skip and times are about."""
        self.heal()
        self.times = times
        for rule, (key, effect) in zip(self.shared.rules, reversed(faults)):
            rule.key = self.index.get(key, key)
            rule.effect = number(effect)
            rule.skip, rule.times = skip, times
            skip, times = 0, 1

    def chance(self, per_million, seed, names):
        """Each call of those fails as often as that, in one of the ways it can."""
        self.heal()
        for name in names:
            for i, effect in enumerate(effects(name)[:EFFECTS]):
                self.shared.calls[self.index[name]].effects[i] = number(effect)
        self.shared.random = seed
        self.shared.ppm = per_million

    def heal(self):
        for rule in self.shared.rules:
            rule.times = rule.key = 0
        self.shared.ppm = 0
        for call in self.shared.calls:
            ctypes.memset(call.effects, 0, ctypes.sizeof(call.effects))

    @property
    def failed(self):
        return sum(c.failed for c in self.shared.calls)

    @property
    def reached(self):
        """The last fault of fail() has happened, once at least."""
        return self.shared.rules[0].times < self.times

    def failures(self):
        return {c.name.decode(): c.failed for c in self.shared.calls if c.failed}


def where(place):
    """The function and line of a place in the program."""
    done = subprocess.run(["addr2line", "-fpie", FAULT, hex(place - 1)],
                          capture_output=True, text=True, check=False)
    return done.stdout.strip().replace("\n", " <- ").replace(harness.TREE + "/", "") or hex(place)
