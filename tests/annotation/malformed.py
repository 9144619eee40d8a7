"""Requests that are no sound HTTP, each with secrets in its line, headers and body.

requests = [malformed(n, address, cookie) for n in range(300)]
"""

import json
import random

SECRET = "planted"


def malformed(number: int, address: str, cookie: str) -> bytes:
    """One of them; each number is another. A session's `cookie` is in most, and in the line, in
    headers and in the body stands the word `SECRET`."""
    rng = random.Random(number)
    secret, host = f"{SECRET}-{number:06}-{rng.getrandbits(64):x}", address.partition("://")[2]
    event = {"client_id": secret[:40], "screen": "s1", "field": "harm", "label": secret}
    body = json.dumps({"events": [event | {"remark": secret}]}).encode()
    line = f"POST /api/events?{secret} HTTP/1.1".encode()
    headers = [
        f"Host: {host}", f"Origin: {address}", "X-Judgebench: 1", "Content-Type: application/json",
        f"Cookie: {cookie}; other={secret}", f"X-Label: {secret}", f"Content-Length: {len(body)}",
    ]  # fmt: skip
    headers = rng.sample(headers, len(headers))
    sent = [header.encode() for header in headers]
    place, end = rng.randrange(len(sent)), b"\r\n"
    control = bytes([rng.choice([*range(9), 11, 12, *range(14, 32), 127])])
    by_chunks = [one for one in sent if not one.startswith(b"Content-Length")]
    by_chunks.append(b"Transfer-Encoding: chunked")
    match number % 24:
        case 0:
            sent[place] = sent[place] + control
        case 1:
            sent[place] = sent[place] + b"x" * rng.randrange(9_000, 20_000)
        case 2:
            sent = [one.replace(b":", rng.choice([b" :", b"\t:", b""]), 1) for one in sent]
        case 3:
            end = rng.choice([b"\n", b"\r", b"\r\r\n", b"\n\r"])
        case 4:
            sent, body = by_chunks, rng.choice([b"zz\r\n", b"-1\r\n", b"5\r\n", b"\n"]) + body
        case 5:
            more = b"y" * rng.choice([9, 9_999])
            sent, body = by_chunks, b"%x;%s\r\n%s" % (len(body), more, body)
        case 6:
            length = rng.choice(["-5", "+5", "1e3", "0x10", "9" * 400, "", "5, 6", secret])
            sent[place] = f"Content-Length: {length}".encode()
        case 7:
            sent.append(b"Content-Length: 3")
        case 8:
            sent.append(b"Transfer-Encoding: " + rng.choice([b"chunked", secret.encode()]))
        case 9:
            version = rng.choice(["", " HTTP/0.9", " HTTP/9.9", " http/1.1", " HTTP/1.1 x", " x"])
            line = f"GET /{secret}{version}".encode()
        case 10:
            line = rng.choice([b"", secret.encode(), b"\x16\x03\x01\x02", b"P{ST "]) + line
        case 11:
            target = rng.choice(["http://[::1", "//", "http://x:y/", "/%zz", "*", ""]) + secret
            line = f"GET {target} HTTP/1.1".encode()
        case 12:
            sent[place] = b" " + sent[place]
        case 13:
            sent[place] = rng.choice([b":", b"", b"\xff", b"(a)", b"a b"]) + sent[place]
        case 14:
            sent[place] = sent[place] + rng.choice([b"\xff\xfe", b"\r", b"\n", b"\x00"]) + b"after"
        case 15:
            sent.append(f"Cookie: a b={secret}; \x01={secret}; =; {cookie}".encode())
        case 16:
            body = rng.choice([b"\xff" + body, b"[" * 5_000 + body, body[:-3] + b"1e999"])
            sent = [one for one in sent if not one.startswith(b"Content-Length")]
            sent.append(b"Content-Length: %d" % len(body))
        case 17:
            sent.append(b"Upgrade: websocket\r\nConnection: upgrade\r\nSec-WebSocket-Key: x")
        case 18:
            sent.append(b"Expect: " + secret.encode())
        case 19:
            sent.append(b"Content-Encoding: " + rng.choice([b"gzip", b"br", secret.encode()]))
        case 20:
            body += line + end + sent[place] + control + end  # a second request, behind the first
        case 21:
            sent *= 40
        case _:
            pass
    whole = end.join([line, *sent, b"", body])
    if number % 24 == 22:
        whole = whole[: rng.randrange(len(whole))]
    if number % 24 == 23:
        at = rng.sample(range(len(whole)), 5)
        whole = bytes(rng.randrange(256) if i in at else byte for i, byte in enumerate(whole))
    return whole
