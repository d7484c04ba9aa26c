"""The tables of docs/results: what is run for each, what it answers, and by which rule the
sentence above it is computed.

At five rounds all of them take an hour and a half on two cores, with the peers of `make
bench-peers`: settings are chosen so.
"""

import dataclasses

from laboratory.verdicts import against, against_best, both, in_cases, pair, same_order, span

BESIDE, UNCACHED, CACHED, ENCRYPTED, MANY, MEMORY, FAULTS, PARTS = GROUPS = (
    "Cached files while others are read from the disk", "Uncached files", "Cached files",
    "TLS and HTTP/2", "Many clients", "A data set larger than memory", "Faults",
    "What it is made of")
LADDERS = "ladders"  # in place of a scenario: bench/lab ladders


@dataclasses.dataclass(frozen=True)
class Page:
    """A page of docs/results.  figures: of the scenario, those that are shown; options:
    more of bench/lab run; pairs: each server with libpagewise beside the same without; why: causes
    of a difference, where they are known; rounds: 0, or as many whatever is asked for; asked: it is
    measured only if it is named, is missing in no pass, and stays when a pass is of another commit."""
    name: str
    group: str
    title: str
    question: str
    scenario: str
    verdict: object
    paths: tuple = ()
    peers: tuple = ()
    settings: dict = dataclasses.field(default_factory=dict)
    options: tuple = ()
    figures: tuple = (0,)
    pairs: bool = False
    why: str = ""
    rounds: int = 0
    asked: bool = False

    def arguments(self, rounds, peer_binaries=()):
        """Of bench/lab."""
        if self.scenario == LADDERS:
            return [LADDERS]
        argv = ["run", self.scenario, "--rounds", str(self.rounds or rounds)]
        for option, names in (("--path", self.paths), ("--peer", self.peers)):
            argv += [option, ",".join(names)] if names else []
        for key, value in self.settings.items():
            argv += ["--set", f"{self.scenario}.{key}={value}"]
        for text in peer_binaries:
            argv += ["--peer-binary", text]
        return [*argv, *self.options]


# ---------------------------------------------------------------- settings

STORM = {"pick": "random", "seconds": 1, "probe_seconds": 1, "probe_timeout": 1,
               "lead": 1.0}
KEPT, IN_STORM = "of alone", "hot in the storm, req/s"
SLEPT = "loop asleep"
ANSWERED = "in the storm it answers {mine} requests/s for the cached file, {who} {other}"
OWN_STORM = ("The loop slept for {slept} (at most {slept_most}), the p99 of the cached file was "
             "{p99}, and its rate {kept} of what it is alone")
SENT = "MB/s", "it sends {ratio} times as much per second"
SPENT = "CPU s/GiB", "a GiB takes {ratio} of its CPU time"
DOWNLOADED = both(in_cases(*SENT), in_cases(*SPENT))
DOWNLOADED_TLS = both(*(in_cases(*what, subject="nodiskio-tls") for what in (SENT, SPENT)))
# Their best configurations are searched: the verdict is of the best one.
SENDERS = ("nginx", "nginx-push", "nginx-chunk", "nginx-whole", "h2o", "h2o-uring", "lighttpd")
DOWNLOADERS = ("nginx", "nginx-threads", "nginx-threads-64", "nginx-threads-push",
               "nginx-threads-chunk", "h2o", "h2o-uring", "lighttpd")
DOWNLOADERS_TLS = ("nginx-tls", "h2o-tls", "h2o-uring-tls")
ALONE = ("--no-references",)
LATENT = {"kept": KEPT, "p99": "p99", "slept": SLEPT}

PAGES = (
    # ------------------------------------------------------------- storm
    Page("storm", BESIDE, "The storm",
         "How much of a cached file's rate is left while 48 clients read uncached files?",
         "storm", against_best(IN_STORM, ANSWERED + ", nginx with sendfile {nginx}",
                               also=(("nginx", "nginx"),)),
         ("nodiskio", "uring", "ring", "aio", "pool", "blocking"),
         ("nginx", "nginx-threads", "nginx-threads-64", "h2o", "h2o-uring", "lighttpd", "caddy"),
         STORM),
    Page("storm-deployed", BESIDE, "The storm: who owns the files, and who started the server",
         "Does the loop wait for the disk where the kernel refuses an answer?",
         "storm", span(OWN_STORM, **LATENT),
         ("nodiskio", "nodiskio-owner", "nodiskio-unprivileged", "nodiskio-refused",
          "nodiskio-rules"), (), STORM),
    Page("storm-ranges", BESIDE, "The storm: shared files, and ranges of them",
         "Does it matter that clients share their files, or ask for odd ranges of them?",
         "storm", span(OWN_STORM, **LATENT),
         ("nodiskio",), (), {**STORM, "pick": "shared,ranges"}),
    Page("storm-readahead", BESIDE, "The storm: a disk that reads 8 MiB ahead",
         "Does it matter that the kernel reads far ahead, as it does for some disks?",
         "storm", span(OWN_STORM, **LATENT), ("nodiskio",), (), STORM,
         ("--readahead", "8192")),
    Page("storm-large", BESIDE,
         "The storm: 96 clients, and a cached file that the hot set does not hold",
         "What if clients outnumber the threads of a pool, and the hot set holds no file?",
         "storm", against("nginx-threads-64", IN_STORM, "with more uncached clients than nginx has "
                          "threads it answers {mine} requests/s for the cached file, nginx "
                          "{other}"),
         ("nodiskio",), ("nginx-threads-64",),
         {**STORM, "hot_kib": 100, "cold_connections": 96, "limit_mib": 64}),
    Page("storm-iops", BESIDE, "The storm: a disk of 150 requests per second",
         "Does it matter that the disk is slow because it seeks?",
         "storm", span(OWN_STORM, **LATENT), ("nodiskio",), (),
         {**STORM, "limit_iops": 150, "limit_mib": 1000}),
    Page("knee", BESIDE, "How much load is safe",
         "Up to which constant rate of requests does a cached file stay fast?",
         "knee", against_best("req/s, p99 below 100 ms", "it is safe up to {mine} requests/s (p99 below "
                              "100 ms, 99% answered), with {who} up to {other}, with nginx up to {nginx}",
                              also=(("nginx", "nginx"),)),
         ("nodiskio", "blocking"), ("nginx", "nginx-threads-64", "h2o-uring"), asked=True),
    Page("libpagewise", BESIDE, "With and without libpagewise",
         "What does the library change in nginx, and in other event loops?",
         "storm", both(
             pair(KEPT, "In the storm nginx keeps {other} of its rate without libpagewise and "
                  "{mine} with it", "nginx", "nginx-pagewise"),
             pair("CPU µs/req", "Alone a request costs it {ratio} of the CPU time with "
                  "libpagewise", "nginx", "nginx-pagewise")),
         ("nodiskio",), ("nginx", "nginx-pagewise", "example-epoll", "example-libuv",
                         "example-io_uring"), STORM, pairs=True),
    # -------------------------------------------------------------- cold
    Page("cold", UNCACHED, "Many clients, and a limited disk",
         "How much of what the disk can deliver arrives?",
         "cold", against_best("of fio by 1 MiB", "on a disk of 150 requests/s it delivers {mine} "
                              "of what fio reads by 1 MiB, {who} {other}", table=1),
         ("nodiskio", "blocking"), ("nginx",),
         {"seconds": 2, "lead": 1.0, "pick": "once"}),
    Page("download", UNCACHED, "Large downloads from a disk without a limit",
         "How fast are one download and 64, and what do they cost?",
         "download", DOWNLOADED,
         ("nodiskio", "nodiskio-owner", "nodiskio-unprivileged"), DOWNLOADERS,
         {"mib": 640, "streams": "1,64"}),
    Page("download-returned", UNCACHED, "Large downloads into memory that was just freed",
         "Does it matter that the memory is new, as after a start of the machine?",
         "download", DOWNLOADED,
         ("nodiskio", "nodiskio-unprivileged"), ("nginx-threads",),
         {"mib": 1024, "streams": "1,64", "memory": "returned"}),
    Page("download-readahead", UNCACHED, "Large downloads from a disk that reads 8 MiB ahead",
         "Does it matter that the kernel reads far ahead, as it does for some disks?",
         "download", DOWNLOADED,
         ("nodiskio", "nodiskio-unprivileged"), DOWNLOADERS,
         {"mib": 640, "streams": "1,64"}, ("--readahead", "8192"),
         why="Each window of 2 MiB needs a disk thread, which opens the file again, maps the window, "
             "reads it by a page fault and unmaps it. With one download disk threads take 30 % of the "
             "CPU time (b432127f, `perf record -e cpu-clock`). The kernel's own read-ahead reads up to "
             "8 MiB for nginx at once. With 64 downloads nginx reads 1.8 times what it sends."),
    Page("download-bbr", UNCACHED, "Large downloads with the congestion control BBR",
         "What does BBR change, which paces its segments also on the loopback?",
         "download", DOWNLOADED, ("nodiskio", "nodiskio-unprivileged"), ("nginx-threads",),
         {"mib": 1024, "streams": "1,64"}, ("--congestion", "bbr"),
         why="BBR sets a timer for almost every segment of pagewise, whose sockets always have bytes to "
             "send, so that BBR learns the rate at which it paces. nginx's sockets run empty between two "
             "reads. Later versions use reno for listening sockets of loopback addresses, as here."),
    Page("download-http2", UNCACHED, "Large downloads over HTTP/2",
         "How fast are one download, and 64 streams of one connection, in clear text?",
         "download", DOWNLOADED, ("nodiskio",), ("nginx", "h2o", "lighttpd"),
         {"mib": 1024, "streams": "1,64", "protocol": "http2"},
         why="With 64 streams, 86 000 of the worker's 152 000 preadv2 calls for a GiB check a single page: a stream "
             "sends a frame every 1.6 ms, and while the kernel reclaims pages a check holds for 1 ms. Without these "
             "calls a GiB takes 3 % less CPU time. Disk threads take 21 % of the server's core, with one download "
             "12 %: for some windows the budget has less than 2 MiB, and those are read as single pages. If all "
             "windows are of 1 MiB, a GiB takes 1.7 times as much CPU time as with the default (perf record -e "
             "cpu-clock and tracefs, 763ea205). With sendfile, nginx closes a connection with 64 large downloads "
             "itself, and logs \"http2 flood detected\". In most rounds H2O with io_uring leaves about 20 of the 64 "
             "unfinished, so here it reads without."),
    Page("short", UNCACHED, "Small files beside large downloads",
         "How long does a small uncached file wait while 64 clients download large ones?",
         "short", against_best("p99 beside", "beside the downloads the p99 is {mine}, with "
                               "{who} {other}, with nginx and sendfile {nginx}",
                               also=(("nginx", "nginx"),)),
         ("nodiskio",), ("nginx", "nginx-threads-64"),
         {"seconds": 3, "timeout": 3, "lead": 1.5}),
    Page("herd", UNCACHED, "500 clients ask for one uncached file at once",
         "How often is the disk asked for one file?",
         "herd", against_best("disk requests per MiB of the file", "it reads the file with {mine} "
                              "disk requests per MiB, {who} with {other}"),
         ("nodiskio", "blocking"), ("nginx", "nginx-threads-64", "lighttpd"),
         {"file_mib": 8}),
    Page("prefix", UNCACHED, "The ready prefix at once, or the whole chain",
         "What do clients gain if the cached part of a window is sent before the rest is read?",
         "prefix", both(*(
             span(f"With half of each file cached, {{first}} pass until the first byte and {{last}} "
                  f"until the last one if {text}", names=name, variant="readahead 2M",
                  first="first byte, 1024 KiB", last="last byte, 1024 KiB")
             for name, text in (("nodiskio", "the cached half is sent at once (nodiskio)"),
                                ("mlock", "the whole window is awaited (mlock)")))),
         ("nodiskio", "mlock"), (), {"prefix": "0,1024", "files": 16, "connections": 8}),
    # --------------------------------------------------------------- hot
    Page("hot", CACHED, "Cached files from 1 KiB to 16 MiB",
         "How much CPU time does a request for a cached file take?",
         "hot", in_cases("CPU µs/request", "its CPU time per request is {ratio} of the best "
                         "peer's", first=1),
         ("nodiskio",), SENDERS, {"seconds": 1, "cases": "1K,16K,64K,256K,1M,16M", "log": "off"},
         why="A file of 64 KiB is copied from the hot set into the socket with one call, as by the "
             "limit with send; lighttpd uses sendfile. Without the hot set pagewise would take "
             "half as much CPU time again. The head and the end would be copied, and sendfile "
             "would send the rest. A residency check and an fstat would come before each of these "
             "parts (strace, b364fa97)."),
    Page("hot-deployed", CACHED, "Cached files of 10 MiB: who owns them",
         "What does it cost to ask whether a large file is cached?",
         "hot", in_cases("CPU µs/request", "its CPU time per request is {ratio} of the best "
                         "peer's", first=1),
         ("nodiskio", "nodiskio-owner", "nodiskio-unprivileged"), SENDERS[:4],
         {"seconds": 1, "cases": "10M", "log": "off"}, ALONE,
         why="After each 512 KiB the loop turns to its other clients. So it calls epoll_wait about 20 times "
             "for 10 MiB, and nginx about 5 times (strace -c, 31dec765). With pieces of 2 MiB a request takes "
             "6 % less CPU time, but the other clients would wait four times as long."),
    Page("hot-rules", CACHED, "Cached files with what a site configures",
         "What do five header fields, compressed siblings, try steps and a trusted proxy cost?",
         "hot", in_cases("CPU µs/request", "with the rules its CPU time per request is {ratio} "
                         "of that of the best nginx", subject="nodiskio-rules", first=1),
         ("nodiskio", "nodiskio-rules"), ("nginx", "nginx-rules"),
         {"seconds": 1, "cases": "1K,64K", "log": "off"}, ALONE),
    Page("module", CACHED, "What libpagewise costs nginx",
         "How much CPU time does the module add to a request for a cached file?",
         "hot", in_cases("CPU µs/request", "its CPU time per request is {ratio} of that of nginx "
                         "alone", subject="nginx-pagewise", called="nginx with the module"),
         (), ("nginx", "nginx-pagewise"), {"seconds": 1, "cases": "1K,16K,1M", "log": "off"}, ALONE,
         why="Files of up to 64 KiB are sent from a copy in memory: fstat and writev, where nginx calls "
             "setsockopt, writev, sendfile and setsockopt. For a larger file the module makes four calls more "
             "than nginx. An fstat before the header notices a change at once. Later preadv2, fstat and a writev "
             "of the last byte ensure that no response is made of two versions. And it sends 512 KiB with one "
             "call, nginx 2 MiB.",
         pairs=True),
    # --------------------------------------------------------------- TLS
    Page("tls", ENCRYPTED, "Cached files over TLS",
         "How much CPU time does a request over TLS take?",
         "hot", in_cases("CPU µs/request", "its CPU time per request is {ratio} of the best "
                         "peer's", subject="nodiskio-tls", first=1),
         ("nodiskio-tls",), ("nginx-tls", "h2o-tls"),
         {"seconds": 1, "cases": "1K,1M,16M", "log": "off"},
         why="Large files are libssl's work per record of 16 KiB, which nginx pays, too. H2O does "
             "not use libssl but picotls."),
    Page("download-tls", ENCRYPTED, "Large downloads over TLS",
         "How fast are one download, and 64 at once, from a disk without a limit?",
         "download", DOWNLOADED_TLS, ("nodiskio-tls",), DOWNLOADERS_TLS,
         {"mib": 1024, "streams": "1,64"}),
    Page("download-http2-tls", ENCRYPTED, "Large downloads over HTTP/2 and TLS",
         "How fast are one download, and 64 streams of one connection?",
         "download", DOWNLOADED_TLS, ("nodiskio-tls",), DOWNLOADERS_TLS,
         {"mib": 1024, "streams": "1,64", "protocol": "http2"},
         why="With 64 streams the worker reads each frame of 16 KiB by a preadv2 of its own, and disk threads "
             "take 16 % of the server's core, with one download 9 % (perf record -e cpu-clock, 15b5e8a2). The page "
             "on downloads in clear text has more figures."),
    Page("tls-storm", ENCRYPTED, "The storm over TLS",
         "How much of a cached file's rate over TLS is left while others read uncached files?",
         "storm", against_best(IN_STORM, ANSWERED, subject="nodiskio-tls"),
         ("nodiskio-tls",), ("nginx-tls", "h2o-tls"), STORM),
    Page("handshakes", ENCRYPTED, "TLS handshakes",
         "What does a handshake cost, and what do other clients notice of many?",
         "handshakes", both(
             in_cases("CPU µs each", "a handshake takes {ratio} of the best peer's CPU time",
                      subject="nodiskio-tls", last=3),
             against("nginx-tls", "p99 beside", "beside them a cached file has a p99 of {mine} "
                     "against {other}", subject="nodiskio-tls", table=3, who="nginx")),
         ("nodiskio-tls",), ("nginx-tls", "h2o-tls"),
         {"seconds": 1, "probe_seconds": 1, "probe_timeout": 1},
         why="While the event loop has time, it makes the handshakes that are resumed, and those with "
             "P-256. Threads of lower priority make those with RSA, so that other clients do not wait. "
             "H2O has a TLS library of its own, picotls."),
    Page("http2", ENCRYPTED, "Cached files over HTTP/2",
         "How much CPU time does a request over HTTP/2 take, with few and many streams?",
         "http2", in_cases("CPU µs/request", "its CPU time per request is {ratio} of the best "
                           "peer's", subject="nodiskio-tls"),
         ("nodiskio-tls",), ("nginx-tls", "h2o-tls"), {"seconds": 1, "cases": "1K,64K,1M",
                                                  "streams": "1,100"},
         why="With 100 streams and 1 KiB, 41 % of the worker's CPU time are spent in libnghttp2 "
             "and 20 % in libc, mostly for it, 15 % in pagewise itself (perf, b364fa97). H2O has "
             "an implementation of HTTP/2 of its own."),
    Page("http2-large", ENCRYPTED, "64 streams of large cached files over HTTP/2",
         "How much CPU time does a GiB take over one connection, in clear text and over TLS?",
         "http2", both(*(in_cases("CPU s/GiB", f"{text} it is {{ratio}} of the best peer's", subject=name)
                         for name, text in (("nodiskio", "in clear text"), ("nodiskio-tls", "over TLS")))),
         ("nodiskio", "nodiskio-tls"),
         ("nginx", "h2o", "h2o-uring", "lighttpd", "nginx-tls", "h2o-tls", "h2o-uring-tls", "lighttpd-tls"),
         {"seconds": 1, "connections": 1, "cases": "16M", "large_streams": "64"}),
    Page("streams", ENCRYPTED, "The storm over HTTP/2",
         "Do streams for cached files go on beside those for uncached ones?",
         "streams", against("nginx-tls", IN_STORM, "beside uncached streams of the same connection "
                            "it answers {mine} requests/s for the cached file, nginx {other}",
                            subject="nodiskio-tls", who="nginx"),
         ("nodiskio-tls",), ("nginx-tls",),
         {"seconds": 1, "probe_seconds": 1, "probe_timeout": 1, "lead": 1.0, "where": "shared"}),
    Page("resets", ENCRYPTED, "A client that resets 100 000 streams a second",
         "What do others notice of a client that requests and resets at once?",
         "resets", against("nginx-tls", "p99 beside", "over TLS the p99 of the others is {mine} "
                           "beside it, with nginx {other}", subject="nodiskio-tls", who="nginx"),
         ("nodiskio-tls",), ("nginx-tls",),
         {"probe_seconds": 2, "probe_timeout": 1, "lead": 0.5}),
    # ------------------------------------------------------- many clients
    Page("idle", MANY, "Idle connections",
         "How much memory does an idle connection take, with and without TLS?",
         "idle", against_best("bytes each", "an idle connection takes {mine} bytes, {who} "
                              "{other}, over TLS {tls} against nginx's {nginxtls}",
                              also=(("tls", "nodiskio-tls"), ("nginxtls", "nginx-tls"))),
         ("nodiskio", "nodiskio-tls"), ("nginx", "nginx-tls"),
         {"idle": 8000, "seconds": 1, "quiet": 1},
         why="A connection is a struct of 592 bytes, of which libevent's event takes 128. nginx "
             "frees its request and its buffers while a connection is idle, and keeps 424 bytes "
             "and a pool."),
    Page("idle-http2", MANY, "Idle connections over HTTP/2",
         "How much memory does an idle connection over HTTP/2 take?",
         "idle", against("nginx-tls", "bytes each", "an idle connection over TLS takes {mine} "
                         "bytes of its memory, {other} of nginx", subject="nodiskio-tls",
                         who="nginx"),
         ("nodiskio-tls",), ("nginx-tls",),
         {"idle": 2000, "protocol": "http2", "seconds": 1, "quiet": 1},
         why="Most of it is libnghttp2's session, which returns the pages of its buffer for frames while it "
             "is idle."),
    Page("slow", MANY, "A thousand slow clients",
         "How often is a byte read from the disk for clients that take it slowly?",
         "slow", against_best("disk bytes per byte taken", "it reads {mine} bytes from the disk "
                              "for each that a client takes, {who} {other}"),
         ("nodiskio", "blocking"), ("nginx", "nginx-threads"),
         {"clients": 1000, "seconds": 3, "lead": 3, "limit_mib": 200, "memory_mib": 256}),
    Page("clients", MANY, "Nine thousand slow clients",
         "What do 9000 clients get, each with an uncached file of its own?",
         "clients", against_best("disk bytes per byte taken", "it reads {mine} bytes from the "
                                 "disk for each that a client takes, {who} {other}"),
         ("nodiskio",), ("nginx",), {"seconds": 4, "lead": 7, "ramp": 5.0, "files": 2304}),
    # ------------------------------------------------------------- memory
    Page("thesis", MEMORY, "Random large files from a data set of 8 times the memory",
         "How much CPU time does it take to send large files that are mostly uncached?",
         "thesis", against_best("CPU s/GiB", "a GiB takes {mine} s of CPU time, with {who} {other}"
                                ", on its own path blocking {blocking}",
                                variant="cache keep", also=(("blocking", "blocking"),)),
         ("nodiskio", "aio", "pool", "blocking"), ("nginx", "nginx-threads", "nginx-threads-64"),
         {"seconds": 4, "lead": 1.5, "memory_mib": 256}, figures=(0, 1, 2),
         why="nginx's threads wait for the disk inside sendfile, so no loop has to be woken, and "
             "nothing is asked. In pagewise, of 6.6 % of a core at 240 MB/s, sending took 2.4, the "
             "page cache with its reclaim 1.6, interrupts of disk threads 0.9, opens and unmapping "
             "0.5, residency checks 0.35 (perf, 6d784330)."),
    Page("thesis-long", MEMORY, "Ten minutes on eight devices, with data of 16 times the memory",
         "How much CPU time does each server take in ten minutes, and how often does traffic dip?",
         "thesis", both(
             against_best("CPU s/GiB", "a GiB takes {mine} s of CPU time, with {who} {other}, on its "
                          "own path aio {aio}", variant="cache keep", also=(("aio", "aio"),)),
             span("Of the CPU time of aio for a byte, it saves {saved} %", names="nodiskio",
                  variant="cache keep", saved="against aio, %"),
             span("With cache drop, it saves {saved} %", names="nodiskio", variant="cache drop",
                  saved="against aio, %"),
             span("In dips it loses {lost} of its traffic", names="nodiskio", variant="cache keep",
                  lost="lost in dips")),
         ("nodiskio", "aio", "blocking"), ("nginx-threads-64",),
         options=("--long",), figures=(0, 1, 2), rounds=1, asked=True,
         why="nginx's threads wait for the disk inside sendfile: the page of one device "
             "([thesis](thesis.md)) has the profile. nodiskio's loop slept once in ten minutes, for "
             "5.56 ms."),
    Page("zipf", MEMORY, "A few files are popular",
         "How many bytes are read from the disk when popularity follows Zipf's law?",
         "zipf", in_cases("disk bytes per byte served", "with cache auto it reads {ratio} of "
                          "what the best peer reads", variant="cache auto"),
         ("nodiskio",), ("nginx",), {"s": "0.8,1.2", "memory_mib": 64, "warm": 16.0,
                                     "counted": 16.0}),
    Page("week", MEMORY, "A week of requests, of many sizes, while popularity changes",
         "How many bytes are read from the disk, and how many would the best policy read?",
         "week", both(
             in_cases("disk bytes per byte served", "with cache auto it reads {ratio} of what "
                      "the best peer reads", variant="cache auto"),
             span("That is {share} of what the best online policy reads in a simulation",
                  names="nodiskio", variant="cache auto", share="of the best online policy's")),
         ("nodiskio",), ("nginx",), asked=True),
    Page("crawler", MEMORY, "Somebody reads every file once",
         "What does a crawler cost the clients of the popular files?",
         "crawler", against_best("with, of without", "with cache auto the popular files' clients "
                                 "need {mine} times the disk bytes while it reads, those of "
                                 "{who} {other}", variant="cache auto"),
         ("nodiskio",), ("nginx",), {"memory_mib": 64, "warm": 12.0}),
    # -------------------------------------------------------------- faults
    Page("hung", FAULTS, "A disk that hangs",
         "What do clients of one disk notice when another one hangs?",
         "hung", both(
             against("nginx", "p99", "while another disk hangs, a cached file has a p99 of "
                     "{mine} against {other}", table=2, who="nginx"),
             pair("of before", "Without libpagewise nginx then reads {other} as much as before "
                  "from the other disk, and with it {mine}", "nginx", "nginx-pagewise", table=3)),
         ("nodiskio",), ("nginx", "nginx-pagewise"),
         {"seconds": 1, "lead": 1.5, "cold": 64, "timeout": 2, "probe_timeout": 2}),
    # --------------------------------------------------------------- parts
    Page("ladders", PARTS, "Pipes, pages and rings, step by step",
         "Do the steps of three well-known articles have the same order on this machine?",
         LADDERS, same_order, figures=(0, 1, 2, 3)),
)


def names():
    return [page.name for page in PAGES]


def regular():
    """Returns the tables that a pass measures."""
    return tuple(page for page in PAGES if not page.asked)


def chosen(wanted):
    """The pages with these names, in the plan's order; ValueError."""
    for name in wanted:
        if name not in names():
            raise ValueError(f"no table {name}: there are {', '.join(names())}")
    return [page for page in PAGES if page.name in wanted]
