"""
What a fuzzer says to the relay: good calls, odd pieces that parsers are known to stumble over, and mixtures of them.

Every input is drawn from the seed and its own number, so one that found something can be made again by itself.
"""

import json
import random
import re
import struct
import zlib

_UNFIT = bytes([*range(0x21), *range(0x7F, 0x100), *b"#"])
_FRAMING = {b"Content-", b"Transfer", b"Expect: ", b"Connecti", b"Upgrade:", b"Host: ev"}

METHODS = [
    *(
        b"GET",
        b"POST",
        b"HEAD",
        b"OPTIONS",
        b"PUT",
        b"DELETE",
        b"PATCH",
        b"TRACE",
        b"CONNECT",
        b"PRI",
        b"get",
        b"G\xff",
    ),
    *(b"", b" ", b"GET\t", b"PROPFIND", b"X" * 200, b"M-SEARCH", b"SOURCE"),
]
TARGETS = [
    *(b"/", b"/health", b"/generate", b"/task/t", b"/task/t/result?index=0", b"/task/t/events", b"/tasks?limit=1"),
    *(b"/task/t/cancel", b"/task/t/resolve", b"/tasks?state=done,queued&cursor=YmVmb3JlOjE", b"/events", b"/assets"),
    *(b"/accounts", b"/accounts/sim/resume", b"/accounts/sim/check", b"/cache", b"/cache/verify", b"/cache/clear"),
    *(b"/stats", b"/metrics"),
    *(
        b"/file/t/0/" + b"0" * 64 + b".mp4",
        b"/file/t/0/x.mp4",
        b"/file/t/0/sim",
        b"/openai/v1/videos",
        b"/openai/v1/videos?proof=" + b"0" * 64,
        b"/shutdown?proof=" + b"0" * 64,
        b"/openai",
        b"/openai/",
        b"/sim/v1/videos/t",
    ),
    *(b"/openapi.json", b"/proof", b"/login", b"/login?code=" + b"A" * 43, b"/login/code", b"/shutdown", b"/nowhere"),
    *(b"//health", b"/./health", b"/../etc/passwd", b"/%2e%2e/", b"/task/%00", b"/task/%ff%fe", b"/task/" + b"a" * 300),
    *(b"*", b"http://evil.example/", b"http://127.0.0.1/health", b"evil.example:443", b"/\xff", b"/a b", b"/#", b"?"),
    *(
        b"/task/t?wait=99999",
        b"/task/t?wait=1e9&wait=2",
        b"/tasks?limit=%31",
        b"/tasks?cursor=%00",
        b"/x?" + b"a=b&" * 900,
    ),
    *(b"/tasks?limit=" + b"9" * 5000, b"/" + b"a" * 8200, b"/" + b"a/" * 2000, b"/task/{id}", b"/\x00", b"\\health"),
    *(
        b"/openai/ws",
        b"/sim/v1/ws?clientId=a",
        b"/ws",
        b"/openai/~" + b"0" * 64 + b"/v1/videos",
        b"/openai/~",
        b"/~/%7e",
    ),
]
VERSIONS = [b"HTTP/1.1"] * 12 + [
    b"HTTP/1.0",
    b"HTTP/0.9",
    b"HTTP/2.0",
    b"HTTP/1.2",
    b"HTTP/1.",
    b"http/1.1",
    b"",
    b"XTTP/1.1",
]
HEADERS = [
    *(b"Content-Length: 0", b"Content-Length: 5", b"Content-Length: -1", b"Content-Length: +5", b"Content-Length: 0x5"),
    *(b"Content-Length: 99999999999999999999", b"Content-Length: 5, 5", b"Content-Length:", b"Content-Length: 1_0"),
    *(
        b"Content-Length: 1048577",
        b"Content-Length: \xb2",
        b"Transfer-Encoding: chunked",
        b"Transfer-Encoding: chunked",
    ),
    *(b"Transfer-Encoding: gzip, chunked", b"Transfer-Encoding: chunked, chunked", b"Transfer-Encoding: \x0bchunked"),
    *(b"Transfer-Encoding : chunked", b"Transfer-Encoding: xchunked", b"Transfer-Encoding: identity", b"TE: trailers"),
    *(b"Content-Type: application/json", b"Content-Type: text/plain", b"Content-Type: multipart/form-data; boundary=x"),
    *(b"Content-Type: application/json; charset=utf-16", b"Content-Type: image/png", b"Content-Encoding: gzip"),
    *(
        b"Expect: 100-continue",
        b"Expect: 200-ok",
        b"Connection: close",
        b"Connection: keep-alive",
        b"Connection: Upgrade",
    ),
    *(b"Upgrade: websocket", b"Upgrade: h2c", b"HTTP2-Settings: AAMAAABkAAQAAP__", b"Sec-WebSocket-Key: AAAA"),
    *(
        b"Range: bytes=0-",
        b"Range: bytes=-1",
        b"Range: bytes=99999999999999999999-",
        b"Range: bytes=0-1,2-3",
        b"If-Range: x",
    ),
    *(
        b"If-None-Match: *",
        b'If-None-Match: "' + b"a" * 3000,
        b"Last-Event-ID: 5",
        b"Last-Event-ID: -1",
        b"Last-Event-ID: \xff",
    ),
    *(b"Idempotency-Key: k", b"Idempotency-Key: " + b"k" * 300, b"Idempotency-Key: \xc3\xa9", b"X-Vidrelay-App: a\tb"),
    *(
        b"X-Client-Request-Id: r",
        b"x-stainless-retry-count: 1",
        b"x-stainless-retry-count: 99999999999",
        b"Cookie: a=b",
    ),
    *(
        b"X-Vidrelay-Page: x",
        b"Origin: null",
        b"Origin: http://evil.example",
        b"Sec-Fetch-Site: cross-site",
        b"Host: evil",
    ),
    *(b"X-Forwarded-For: 1.1.1.1", b"X-HTTP-Method-Override: DELETE", b": empty", b"No colon", b" folded", b"\tfolded"),
    *(
        b"X: a\x00b",
        b"X: a\rb",
        b"X: a\nb",
        b"X\x00: a",
        b"X : a",
        b"X: " + b"a" * 17_000,
        b"\xff\xfe: x",
        b"X:" + b" " * 9000,
    ),
]
HARMLESS = [line for line in HEADERS if re.fullmatch(rb"[A-Za-z-]+: [ -~]{0,400}", line) and line[:8] not in _FRAMING]
BODIES = [
    *(
        b"",
        b"{}",
        b"[]",
        b"null",
        b'"x"',
        b"5",
        b"{",
        b"\xff",
        b"\xef\xbb\xbf{}",
        b'{"prompt": "a"}',
        b'{"prompt": ""}',
    ),
    *(
        b'{"prompt": "a", "prompt": "b"}',
        b'{"prompt": "\\ud800"}',
        b'{"prompt": "\\u0000"}',
        b'{"prompt": NaN}',
        b"[" * 5000,
    ),
    *(b'{"a":' * 5000, b'{"prompt": 1e999}', b'{"seed": ' + b"9" * 5000 + b"}", '{"prompt": "x"}'.encode("utf-16")),
    *(b'{"prompt": "a", "base_url": "http://evil"}', b'{"prompt": "a", "references": [{"path": "/dev/zero"}]}'),
    *(b'{"prompt": "a", "references": [{"path": "/etc/passwd"}]}', b'{"prompt": "a", "account": "nobody"}'),
    *(b'{"prompt": "a", "references": [{"url": "file:///etc/passwd"}]}', b'{"prompt": "a", "extra": {"\\u0000": 1}}'),
    *(
        b'{"action": "retry"}',
        b'{"action": "adopt", "remoteId": "../x"}',
        b'{"nonce": "' + b"0" * 64 + b'", "mac": "x"}',
    ),
    *(b'{"code": "' + b"A" * 43 + b'"}', b"prompt=a", b"--x\r\n\r\n--x--", b"\x89PNG\r\n\x1a\n", b"GIF89a", b"<svg/>"),
]
PIECES = [
    *(b"\r\n", b"\n", b"\r", b"\r\n\r\n", b"\x00", b"\xff", b" ", b"\t", b":", b";", b",", b'"', b"%", b"\\", b"\x7f"),
    *(b"0\r\n\r\n", b"5\r\nhello\r\n", b"ffffffffffffffff\r\n", b"-1\r\n", b"0;" + b"x" * 100 + b"\r\n", b"HTTP/1.1"),
    *(b"GET / HTTP/1.1\r\n\r\n", b"\xe2\x80\x8b", b"\xed\xa0\x80", b"%00", b"../", b"Host: x\r\n", b"' OR 1=1 --"),
]


def tiny_png() -> bytes:
    """
    The smallest picture there is.
    """

    def chunk(name: bytes, body: bytes) -> bytes:
        return struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))

    rows = chunk(b"IDAT", zlib.compress(b"\0\0\0\0"))
    return (
        b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", 1, 1, 8, 2, 0, 0, 0)) + rows + chunk(b"IEND", b"")
    )


class Requests:
    """
    The inputs of one seed for one relay.
    """

    def __init__(self, seed: int, port: int, token: str) -> None:
        """
        Speak to the relay at `port`, with its `token` where a call shall get past the gate.
        """
        self._seed, self._token = seed, token.encode()
        self._own = b"Host: 127.0.0.1:%d\r\nX-Local-Token: %b\r\n" % (port, self._token)
        self._hosts = [b"127.0.0.1:%d" % port, b"localhost:%d" % port, b"[::1]:%d" % port, b"evil.example", b""]
        self._targets = [target for target in TARGETS if not set(target) & set(_UNFIT) and target.startswith(b"/")]
        self._good = self._good_calls()

    def proper(self) -> bytes:
        """
        A call that must be answered 200, and closes its connection.
        """
        return b"GET /health HTTP/1.1\r\n" + self._own + b"Connection: close\r\n\r\n"

    def make(self, number: int) -> bytes:
        """
        The input of that number.
        """
        chance = random.Random(self._seed * 1_000_003 + number)
        data = chance.choice((self._mutated, self._sound, self._sound, self._composed, self._piped))(chance)
        # The one call that must not get through.
        return data.replace(self._token, b"x") if b"shutdown" in data else data

    def _good_calls(self) -> list[bytes]:
        gets = [target for target in TARGETS[:28] if target != b"/shutdown"]
        calls = [
            b"%b %b HTTP/1.1\r\n%b\r\n" % (verb, target, self._own) for target in gets for verb in (b"GET", b"HEAD")
        ]
        bodies = [
            (b"/generate", json.dumps({"prompt": "a", "duration": 4, "metadata": {"n": 1}, "extra": {}}).encode()),
            (b"/generate", b'{"prompt": "a", "account": "nobody"}'),
            *((b"/generate", body) for body in BODIES[:20]),
            *((path, b"{}") for path in (b"/task/t/cancel", b"/accounts/sim/resume", b"/cache/verify", b"/login/code")),
            (b"/task/t/resolve", b'{"action": "retry"}'),
            (b"/proof", b'{"nonce": "' + b"0" * 64 + b'", "mac": "' + b"0" * 64 + b'"}'),
            (b"/login", b'{"code": "' + b"A" * 43 + b'"}'),
            (b"/assets", b"no picture at all"),
            (b"/assets", tiny_png()),
        ]
        for path, body in bodies:
            head = b"POST %b HTTP/1.1\r\n%b" % (path, self._own)
            calls.append(head + b"Content-Length: %d\r\n\r\n%b" % (len(body), body))
            half = len(body) // 2
            chunks = b"".join(b"%x\r\n%b\r\n" % (len(part), part) for part in (body[:half], body[half:]) if part)
            calls.append(head + b"Transfer-Encoding: chunked\r\n\r\n" + chunks + b"0\r\n\r\n")
        return calls

    def _mutated(self, chance: random.Random) -> bytes:
        """
        A good call with one to four things done to it.
        """
        data = chance.choice(self._good)
        for _ in range(chance.choice((1, 1, 1, 2, 2, 3, 4))):
            data = self._mutate(chance, data)
        return data

    def _mutate(self, chance: random.Random, data: bytes) -> bytes:
        at = chance.randrange(len(data) + 1)
        to = min(len(data), at + chance.choice((1, 1, 2, 8, 40)))
        match chance.randrange(11):
            case 0:
                return data[:at] + bytes([chance.randrange(256)]) + data[to:]
            case 1:
                return data[:at] + data[to:]
            case 2:
                return data[:to] + data[at:to] * chance.choice((1, 1, 3, 300)) + data[to:]
            case 3 | 4:
                return data[:at] + chance.choice(PIECES) + data[at:]
            case 5:
                return data[:at]
            case 6:
                other = chance.choice(self._good)
                return data[:at] + other[chance.randrange(len(other)) :]
            case 7:
                return data.replace(
                    b"\r\n", chance.choice((b"\n", b"\r", b"\r\r\n", b"\n\r")), chance.choice((-1, 1, 2))
                )
            case 8:
                line = data.find(b"\r\n")
                return data[: line + 2] + chance.choice(HEADERS) + b"\r\n" + data[line + 2 :]
            case 9:
                return data.replace(self._own, b"Host: %b\r\n" % chance.choice(self._hosts))
            case _:
                return data.swapcase() if chance.random() < 0.2 else data[:at] + data[at:to][::-1] + data[to:]

    def _sound(self, chance: random.Random) -> bytes:
        """
        A call that no parser minds, so that it comes to its route: only what it asks for and says is odd.
        """
        target = chance.choice(self._targets)
        if chance.random() < 0.4:
            target = self._mutate(chance, target).translate(None, _UNFIT)
        body = self._mutate(chance, chance.choice(BODIES)) if chance.random() < 0.5 else chance.choice(BODIES)
        head = b"%b %b HTTP/1.1\r\n%b" % (chance.choice(METHODS[:2] * 3 + METHODS[:7]), target or b"/", self._own)
        lines = b"".join(line + b"\r\n" for line in chance.sample(HARMLESS, k=chance.randint(0, 2)))
        return b"%b%bContent-Length: %d\r\n\r\n%b" % (head, lines, len(body), body)

    def _composed(self, chance: random.Random) -> bytes:
        """
        A call put together from odd pieces.
        """
        line = b" ".join((chance.choice(METHODS[:4] * 5 + METHODS), chance.choice(TARGETS), chance.choice(VERSIONS)))
        lines = [line, *chance.choices(HEADERS, k=chance.choice((0, 1, 1, 2, 3, 70)))]
        lines.insert(chance.randint(1, len(lines)), self._own[:-2] if chance.random() < 0.8 else b"Host: x")
        body = chance.choice(BODIES)
        kind = chance.randrange(4)
        if kind == 0:
            lines.append(b"Content-Length: %d" % (len(body) + chance.choice((0, 0, 0, 1, -1, 1000))))
        elif kind == 1:
            lines.append(b"Transfer-Encoding: chunked")
            size = chance.choice((b"%x", b"%X", b"0x%x", b"+%x", b"%x;a=b", b"%x ", b"00000000%x", b"%d")) % len(body)
            body = size + b"\r\n" + body + b"\r\n" + chance.choice((b"0\r\n\r\n", b"0\r\nX: y\r\n\r\n", b"0\r\n", b""))
        return b"\r\n".join(lines) + b"\r\n\r\n" + body

    def _piped(self, chance: random.Random) -> bytes:
        """
        Several calls at once, of which one is odd.
        """
        calls = chance.choices(self._good, k=chance.randint(1, 3))
        calls.insert(chance.randint(0, len(calls)), chance.choice((self._mutated, self._composed))(chance))
        return b"".join(calls)
