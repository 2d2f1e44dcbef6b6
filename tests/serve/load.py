"""`tg serve` under many clients for a while. usage: load.py TG MODEL.gguf [SECONDS [MALFORMED [CLIENTS]]]   (120, 100000, 64)
In: the tg of a build (of sanitizers, best), a small model. Out: what was done, exit code 1 where something was wrong.
Clients ask plainly, in streams, read slowly, hang up in mid-stream, or send nonsense, all at once. Every reply that was
accepted is whole and equal to the same request alone; the server says that nothing is left, and ends without a complaint."""
import json, random, socket, sys, threading, time

from serve import MODEL, ONCE, Server

SECONDS, MALFORMED, CLIENTS = (int(v) if v else d for v, d in zip(sys.argv[3:6] + [""] * 3, (120, 100000, 64)))
HEAD = b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: %d\r\n\r\n"
done, wrong, lock = {}, [], threading.Lock()


def count(what):
    with lock:
        done[what] = done.get(what, 0) + 1


def requests():
    """Short and long ones, drawn and not, some that begin alike over whole blocks of the cache"""
    rng, long = random.Random(5), "Tom and Mia went to the park. They saw a big dog. The dog was sad. " * 6
    starts = ["Once", ONCE, "The dog", "x", long, long + " Then", long[:200], long[:350]]
    return [{"prompt": rng.choice(starts) + rng.choice(["", " and", " in the park"]), "temperature": rng.choice([0, 1]), "seed": rng.randrange(9),
             "max_tokens": rng.randrange(1, 50), "logprobs": 1} for _ in range(40)]


def send(s, body, receive=None):
    c = socket.create_connection(("127.0.0.1", s.port), timeout=120)
    if receive:
        c.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive)
    c.sendall(HEAD % len(body) + body)
    return c


def streamed(s, asked, slow, leave):
    """The choices of a stream: text, logprobs; None: it was refused, or left."""
    c, got = send(s, json.dumps({**asked, "stream": True}).encode(), 4096 if slow else None), b""
    while True:
        part = c.recv(256 if slow else 65536)
        if not part:
            break
        got += part
        if leave and len(got) > leave:
            c.close()
            count("left")
            return None
        if slow:
            time.sleep(0.002)
    c.close()
    if b" 429 " in got[:20]:
        return count("told to wait")
    events = [l[6:] for l in plain(got).decode().splitlines() if l.startswith("data: ")]
    assert events and events[-1] == "[DONE]", got[-300:]
    choices = [c for e in events[:-1] for c in json.loads(e)["choices"]]
    return "".join(c["text"] for c in choices), sum((c["logprobs"]["token_logprobs"] for c in choices if c["logprobs"]), [])


def plain(got):
    """A chunked body, put together"""
    head, _, rest = got.partition(b"\r\n\r\n")
    if b"chunked" not in head:
        return rest
    body = b""
    while rest:
        size, _, rest = rest.partition(b"\r\n")
        n = int(size, 16)
        body, rest = body + rest[:n], rest[n + 2:]
        if not n:
            return body
    raise AssertionError("a stream without an end")


def whole(s, asked):
    status, got, _ = s.ask("POST", "/v1/completions", asked)
    if status == 429:
        return count("told to wait")
    assert status == 200, (status, got)
    c = json.loads(got)["choices"][0]
    return c["text"], c["logprobs"]["token_logprobs"]


def nonsense(s, rng):
    good = json.dumps({"prompt": ONCE, "max_tokens": 2, "stop": ["x"], "logit_bias": {"5": 1}, "seed": 3}).encode()
    body = bytearray(good)
    for _ in range(rng.randrange(1, 6)):
        at = rng.randrange(len(body))
        body[at:at + rng.randrange(3)] = rng.choice([b"", b"[", b"{", b'"', b"1e999", b"null", b"\\u0000", b"-", b"9" * 40, b"\xff", bytes([rng.randrange(256)])])
        body = body or bytearray(b"{")
    request = bytearray(HEAD % len(body) + bytes(body))
    if rng.random() < 0.2:
        request[rng.randrange(len(request))] = rng.randrange(256)
    c = socket.create_connection(("127.0.0.1", s.port), timeout=120)
    try:
        c.sendall(request)
        if rng.random() > 0.1:
            c.shutdown(socket.SHUT_WR)
            got = c.recv(65536)
            assert not got or got.startswith(b"HTTP/1."), got
    except OSError:
        pass
    c.close()
    count("malformed")


def client(s, i, asked, alone, end):
    rng = random.Random(i)
    try:
        while time.time() < end or done.get("malformed", 0) < MALFORMED:
            kind, at = rng.randrange(5), rng.randrange(len(asked))
            if i % 2 or time.time() > end:
                nonsense(s, rng)
                continue
            got = whole(s, asked[at]) if kind < 2 else streamed(s, asked[at], kind == 3, rng.randrange(300, 3000) if kind == 4 else 0)
            if got is not None:
                assert got == alone[at], (asked[at], got, alone[at])
                count("right")
    except Exception as e:
        with lock:
            wrong.append("%s: %s" % (type(e).__name__, str(e)[:800]))


def main():
    s = Server("--slots", "8", "--queue", "24", models=[MODEL])
    asked = requests()
    alone = [whole(s, a) for a in asked]
    end = time.time() + SECONDS
    clients = [threading.Thread(target=client, args=(s, i, asked, alone, end)) for i in range(CLIENTS)]
    [c.start() for c in clients]
    [c.join() for c in clients]
    end = time.time() + 60
    while (s.metric("tg_requests_active") or s.metric("tg_requests_queued")) and time.time() < end:
        time.sleep(0.1)
    left = s.metric("tg_requests_active"), s.metric("tg_requests_queued")
    assert [whole(s, a) for a in asked] == alone
    s.stop()
    print("%d clients:" % CLIENTS, ", ".join("%d %s" % (n, what) for what, n in sorted(done.items())), "| left %g, %g" % left)
    for w in wrong[:5]:
        print(w)
    complaint = [l for l in s.text().splitlines() if "Sanitizer" in l or "runtime error" in l]
    print(*complaint[:5], sep="\n")
    sys.exit(bool(wrong or complaint or left != (0, 0)))


main()
