"""What differs from what a judge expects, and why that is no fault."""

from verdict import Reason

REASONS = (
    Reason("REDbot", r"^/(%00|\.\.%2f).*didn't understand", "NUL and `..%2f` in a target get a 400"),
    Reason("httplint", r"Range: bytes=0-1,3-4: *This response is partial, but doesn't have a Content-Range",
           "a `multipart/byteranges` response has `Content-Range` in its parts (RFC 9110, 15.3.7.2)"),
    Reason("tlsfuzzer", r"scripts pass with neither$",
           "the others fail with nginx and the same ciphers too"),
    Reason("tlsfuzzer", r"passes with nginx only: tls13-(ecdhe-curves|ffdhe-sanity|serverhello-random|"
           r"unrecognised-groups)$",
           "4 scripts use groups that the server does not offer: x448, P-521, ffdhe"),
    Reason("nginx-tests", r"tests fail without the module too$",
           "the others fail without the module too"),
    Reason("h2spec", r"answered by HTTP/1", "in clear text an invalid preface is an HTTP/1 request, and gets a 400"),
)
