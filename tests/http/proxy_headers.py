"""PROXY headers (HAProxy, doc/proxy-protocol.txt), good ones and broken ones."""

import ipaddress
import struct

SIGNATURE = b"\r\n\r\n\0\r\nQUIT\n"


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def v1(source, port=4711):
    family = "TCP6" if ":" in source else "TCP4"
    to = "2001:db8::80" if family == "TCP6" else "203.0.113.80"
    return ("PROXY %s %s %s %d 80\r\n" % (family, source, to, port)).encode()


def raw2(command, family, body):
    return SIGNATURE + struct.pack("!BBH", command, family, len(body)) + body


def tlv(kind, value):
    return struct.pack("!BH", kind, len(value)) + value


def addresses(source, port=4711):
    source = ipaddress.ip_address(source)
    to = ipaddress.ip_address("203.0.113.80" if source.version == 4 else "2001:db8::80")
    return source.packed + to.packed + struct.pack("!HH", port, 80)


def v2(source, more=b"", port=4711):
    return raw2(0x21, 0x21 if ":" in source else 0x11, addresses(source, port) + more)


def v2_crc(source, more=b""):
    """With a checksum behind the other fields."""
    head = v2(source, more + tlv(3, bytes(4)))
    return head[:-4] + struct.pack("!I", crc32c(head))


def v2_crc_zero(source, count):
    """With so many checksums, which are all 0 and right, because of the last field."""
    head = v2(source, tlv(3, bytes(4)) * count + tlv(4, bytes(4)))[:-4]
    end = 0xFFFFFFFF
    for _ in range(32):
        end = (end ^ 0x82F63B78) << 1 | 1 if end & 0x80000000 else end << 1
    head += struct.pack("<I", crc32c(head) ^ 0xFFFFFFFF ^ end)
    assert crc32c(head) == 0
    return head


# (name, header, the client): None: the proxy itself.
GOOD = [
    ("v1-4", v1("192.0.2.1"), "192.0.2.1"),
    ("v1-6", v1("2001:db9::1"), "2001:db9::1"),
    ("v1-mapped", v1("::ffff:192.0.2.1"), "192.0.2.1"),
    ("v1-ports", b"PROXY TCP4 192.0.2.1 192.0.2.2 0 65535\r\n", "192.0.2.1"),
    ("v1-unknown", b"PROXY UNKNOWN\r\n", None),
    ("v1-unknown-more", b"PROXY UNKNOWN ffff:f...f:ffff 192.0.2.1 65535 65535\r\n", None),
    ("v1-longest", b"PROXY UNKNOWN " + b"x" * 91 + b"\r\n", None),
    ("v2-4", v2("192.0.2.1"), "192.0.2.1"),
    ("v2-6", v2("2001:db9::1"), "2001:db9::1"),
    ("v2-local", raw2(0x20, 0x00, b""), None),
    ("v2-local-4", raw2(0x20, 0x11, addresses("192.0.2.1")), None),
    ("v2-local-junk", raw2(0x20, 0xff, b"\x03\xff\xff"), None),
    ("v2-unspec", raw2(0x21, 0x00, b""), None),
    ("v2-unspec-more", raw2(0x21, 0x00, tlv(4, b"abc")), None),
    ("v2-datagram", raw2(0x21, 0x12, addresses("192.0.2.1")), None),
    ("v2-unix", raw2(0x21, 0x31, bytes(216)), "unix:"),
    ("v2-fields", v2("192.0.2.1", tlv(1, b"h2") + tlv(2, b"example.org") + tlv(4, bytes(9))),
     "192.0.2.1"),
    ("v2-ssl", v2("192.0.2.1", tlv(0x20, b"\1\0\0\0\0" + tlv(0x21, b"TLSv1.3"))), "192.0.2.1"),
    ("v2-crc", v2_crc("192.0.2.1"), "192.0.2.1"),
    ("v2-crc-6", v2_crc("2001:db9::1", tlv(2, b"example.org")), "2001:db9::1"),
    ("v2-crc-zero", v2_crc_zero("192.0.2.1", 1), "192.0.2.1"),
    ("v2-longest", v2("192.0.2.1", tlv(4, bytes(4096 - 16 - 12 - 3))), "192.0.2.1"),
]

BROKEN = [
    ("v1-lf", v1("192.0.2.1").replace(b"\r", b"")),
    ("v1-cr-inside", b"PROXY TCP4 192.0.2.1 192.0.2.2 1 2\r \r\n"),
    ("v1-too-long", b"PROXY UNKNOWN " + b"x" * 92 + b"\r\n"),
    ("v1-endless", b"PROXY TCP4 " + b"1" * 200),
    ("v1-tcp5", b"PROXY TCP5 192.0.2.1 192.0.2.2 1 2\r\n"),
    ("v1-lower", b"PROXY tcp4 192.0.2.1 192.0.2.2 1 2\r\n"),
    ("v1-4-is-6", b"PROXY TCP4 2001:db8::1 2001:db8::2 1 2\r\n"),
    ("v1-6-is-4", b"PROXY TCP6 192.0.2.1 192.0.2.2 1 2\r\n"),
    ("v1-mixed", b"PROXY TCP6 2001:db8::1 192.0.2.2 1 2\r\n"),
    ("v1-spaces", b"PROXY TCP4  192.0.2.1 192.0.2.2 1 2\r\n"),
    ("v1-space-at-end", b"PROXY TCP4 192.0.2.1 192.0.2.2 1 2 \r\n"),
    ("v1-five", b"PROXY TCP4 192.0.2.1 192.0.2.2 1 2 3\r\n"),
    ("v1-three", b"PROXY TCP4 192.0.2.1 192.0.2.2 1\r\n"),
    ("v1-port", b"PROXY TCP4 192.0.2.1 192.0.2.2 65536 2\r\n"),
    ("v1-port-0", b"PROXY TCP4 192.0.2.1 192.0.2.2 1 02\r\n"),
    ("v1-port-sign", b"PROXY TCP4 192.0.2.1 192.0.2.2 +1 2\r\n"),
    ("v1-octal", b"PROXY TCP4 192.0.02.1 192.0.2.2 1 2\r\n"),
    ("v1-name", b"PROXY TCP4 localhost 192.0.2.2 1 2\r\n"),
    ("v1-zone", b"PROXY TCP6 fe80::1%1 fe80::2 1 2\r\n"),
    ("v1-unknownx", b"PROXY UNKNOWNX\r\n"),
    ("v1-empty", b"PROXY \r\n"),
    ("v1-nul", b"PROXY TCP4 192.0.2.1\0 192.0.2.2 1 2\r\n"),
    ("v2-version-1", raw2(0x11, 0x11, addresses("192.0.2.1"))),
    ("v2-command-2", raw2(0x22, 0x11, addresses("192.0.2.1"))),
    ("v2-family-4", raw2(0x21, 0x41, bytes(300))),
    ("v2-transport-3", raw2(0x21, 0x13, addresses("192.0.2.1"))),
    ("v2-short-4", raw2(0x21, 0x11, addresses("192.0.2.1")[:-1])),
    ("v2-short-6", raw2(0x21, 0x21, addresses("192.0.2.1"))),
    ("v2-short-unix", raw2(0x21, 0x31, bytes(215))),
    ("v2-field-cut", v2("192.0.2.1", b"\x04\x00")),
    ("v2-field-long", v2("192.0.2.1", b"\x04\x00\x05abcd")),
    ("v2-crc-wrong", v2_crc("192.0.2.1")[:-1] + b"\0"),
    ("v2-crc-short", v2("192.0.2.1", tlv(3, b"abc"))),
    ("v2-crc-twice", v2_crc_zero("192.0.2.1", 2)),
    ("v2-too-long", v2("192.0.2.1", tlv(4, bytes(4096 - 16 - 12 - 2)))),
    ("v2-65535", SIGNATURE + b"\x21\x11\xff\xff"),
]
assert v2_crc("192.0.2.1")[-1] != 0
