"""Request targets that try to leave the root, and what may be answered.

Each is (target, statuses).  The names are those of tree.py: outside/secret.txt lies
beside the root, and its name and contents are to be seen nowhere.
"""

from itertools import product

SECRET = "outside/secret.txt"

BAD = {400}
ABSENT = {404}
FORBIDDEN = {403}

# What a percent-decoder that works once makes a segment of two dots, and a slash.
DOTS = ["..", "%2e%2e", "%2E.", ".%2e"]
SLASHES = ["/", "%2f", "%2F", "//", "/./", "/%2e/", "%2f%2F"]


def climbs():
    for dots, slash, depth in product(DOTS, SLASHES, [1, 3, 40]):
        yield "/" + (dots + slash) * depth + SECRET.replace("/", slash), BAD
    for prefix in ["/list/sub", "/4097.bin/x", "/nothing/there", "/%2e/list//sub", "/.git/x", "/links/outside-dir"]:
        yield prefix + "/../../../" + SECRET, BAD
        yield prefix + "%2f..%2f..%2f..%2f" + SECRET, BAD
    for target in ["/..", "/../", "/%2e%2e", "/list/../..", "/../4097.bin", "/../root/4097.bin", "/..?x", "/../?x",
                   "http://localhost/../" + SECRET, "http://localhost/%2e%2e/" + SECRET, "/" + "../" * 2000]:
        yield target, BAD


# What other decoders take for dots: twice, overlong, Unicode's likenesses, %u, backslashes,
# parameters, and what a file system or a careless comparison could strip.
LIKE_DOTS = [
    "%252e%252e", "%25252e%25252e", "%2525252e.", ".%252e", "%c0%ae%c0%ae", "%c0%2e%c0%2e", "%c1%9c..", "%e0%80%ae%e0%80%ae",
    "%f0%80%80%ae%f0%80%80%ae", "%f8%80%80%80%ae.", ".%c0%ae", "%ef%bc%8e%ef%bc%8e", ".%ef%bc%8e", "%e2%80%a4%e2%80%a4",
    "%e2%80%a5", "%e3%80%82%e3%80%82", "%ef%b9%92%ef%b9%92", "..;", "..%3b", "..;x=y", "...", "....", "..%20", "%20..",
    "..%09", "..%0d%0a", "..%0a", "..%01", "..%7f", "..%ff", "..%c2%a0", "..%e2%80%8b", "%e2%80%ae..", "%e2%80%8f..",
    "%ef%bb%bf..", "..%cc%80", "..%e2%81%a0", "..::$DATA", "..+", "..*", "..~", "..%3f", "..%23", "..%25", "..!", "..@",
]
LIKE_SLASHES = ["/", "%2f", "\\", "%5c", "%255c", "%252f", "%c0%af", "%c1%9c", "%e0%80%af", "%ef%bc%8f", "%ef%bc%bc",
                "%e2%88%95", "%e2%81%84", "%e2%88%96", "%f0%80%80%af", "%c0%2f"]
NO_ESCAPE = ["%u002e%u002e/", "..%u2215", "..%u2216", "%uff0e%uff0e/", "%00../", "..%00/", "%2%65../", "..%/", "%%32e./",
             "%c0%ae%c0.%/", "..%5", "%x2e%x2e/", "&#46;&#46;/%zz"]


def lookalikes():
    for dots, slash in product(LIKE_DOTS, LIKE_SLASHES):
        yield "/" + dots + slash + SECRET.replace("/", slash), ABSENT
        yield "/list/" + (dots + slash) * 3 + SECRET, ABSENT
    for slash in LIKE_SLASHES[2:]:
        if not slash.endswith("2f") or slash == "%252f":
            yield "/.." + slash + SECRET, ABSENT
    for text in NO_ESCAPE:
        yield "/" + text + SECRET, BAD


def others():
    for path in ["etc/passwd", "proc/self/root/etc/passwd", "proc/self/environ", "dev/null", "~root/", "~", "C:/boot.ini",
                 "C:\\boot.ini", "c|/boot.ini", "\\\\h\\share", "con", "nul.txt", "file:///etc/passwd", "%7eroot/", "WEB-INF/",
                 "4097.bin.", "4097.bin%20", "4097.bin%2e", "4097.bin%2e%2e", "4097.bin::$DATA", "4097.BIN", "4097.bin;x",
                 "4097.bin;a=b", "4097.bin%0a", "4097.bin~", "%204097.bin", "%ef%bc%8f4097.bin", "4097.bin%e2%80%8b",
                 "4097%ef%bc%8ebin", "%ef%bc%94097.bin", "4097.bin%c0%80", "4097.bin%ff", "4097.bin\\", "4097.bin%5c.."]:
        yield "/" + path, ABSENT
        yield "//" + path, ABSENT
    for target in ["/4097.bin%00", "/4097.bin%00.html", "/%00", "file:///etc/passwd", "\\..\\" + SECRET]:
        yield target, BAD
    # NAME_MAX, PATH_MAX, and what is longer: ENAMETOOLONG is 404.
    for n in [255, 256, 257, 1000, 4094, 4095, 4096, 4097, 8000]:
        yield "/" + "l" * n, ABSENT
        yield "/list/" + "l" * n + "/x", ABSENT
        yield "/" + ("l" * 200 + "/") * (n // 201) + "x", ABSENT
    for target in ["/" + "./" * 4000 + "4097.bin", "/" + "x/../" * 1600 + "4097.bin", "/" * 8000 + "4097.bin",
                   "/" + "%2e/" * 2000 + "4097.bin", "/" + "y" * 4000 + "/../4097.bin", "/4097.bin/../4097.bin"]:
        yield target, {200}


LINKS = {  # below /links/
    "outside-relative": FORBIDDEN, "outside-absolute": FORBIDDEN, "outside-dir": FORBIDDEN, "outside-dir/": FORBIDDEN,
    "outside-dir/secret.txt": FORBIDDEN, "outside-dir/.": FORBIDDEN, "outside-dir//secret.txt": FORBIDDEN,
    "outside-dir/nothing": FORBIDDEN, "outside-and-back": FORBIDDEN, "inside-absolute": FORBIDDEN, "proc": FORBIDDEN,
    "proc-root": FORBIDDEN, "proc-root/etc/passwd": FORBIDDEN, "proc-cwd": FORBIDDEN, "proc-cwd/": FORBIDDEN,
    "proc-fd": FORBIDDEN, "slash": FORBIDDEN, "slash/": FORBIDDEN, "slash/etc/passwd": FORBIDDEN, "parents": FORBIDDEN,
    "parents/outside/secret.txt": FORBIDDEN, "root-itself": FORBIDDEN, "root-itself/4097.bin": FORBIDDEN,
    "many-parents": FORBIDDEN, "over-dir-inside": FORBIDDEN, "over-outside-dir": FORBIDDEN, "over-link": FORBIDDEN,
    "over-file": ABSENT, "with-dots": FORBIDDEN, "loop-a": FORBIDDEN, "loop-b/x": FORBIDDEN, "self": FORBIDDEN,
    "self/x": FORBIDDEN, "dangling": ABSENT, "dangling/x": ABSENT, "long": ABSENT, "chain-1": FORBIDDEN, "chain-1/x": FORBIDDEN,
    "chain-2": {200}, "chain-41": {200}, "same-dir": {200}, "up-inside": {200}, "dir-inside/": {200}, "dir-inside": {301},
    "index-outside/": FORBIDDEN, "index-outside/index.html": FORBIDDEN, "index-outside": {301},
}


def links():
    for name, statuses in LINKS.items():
        yield "/links/" + name, statuses
        yield "//links/.//" + name, statuses


# A browser takes //host, and /\host, for another host.
BEFORE = ["//", "///", "/.//", "/x/..//", "/%2f", "/%2f%2f", "/%2e/%2f", "/%2e%2f%2e%2f", "/\\", "/%5c", "/\\\\", "/%5c%5c",
          "/%5c/", "/%09/", "/%0d%0a/", "/%20/", "//h@", "/;//", "/?//", "/http://", "/http:%2f%2f", "http://localhost//",
          "http://localhost/%2f", "http://localhost", "/%ef%bc%8f", "/%c0%af", "/%e3%80%82"]
AFTER = ["evil.com", "evil.com/sub", "evil.com%2fsub", "evil.com/%2e", "evil.com/x/..", "evil.com/sub/..", "evil.com?//h",
         "evil.com?\\h", "evil.com/sub?%0d%0aX:%20y"]


def redirects():
    for before, after in product(BEFORE, AFTER):
        yield before + after, {200, 301, 400, 403, 404}


CORPUS = [row for rows in (climbs(), lookalikes(), others(), links(), redirects()) for row in rows]
