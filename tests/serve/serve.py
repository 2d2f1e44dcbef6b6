"""`tg serve` as its clients meet it. usage: serve.py TG MODEL.gguf
In: the tg of a build, a small model. Out: a line for each test, exit code 1 where one fails. N=.. (2000): malformed
requests. The server must say what is wrong with each request, and give the same text for the same request whatever
else is asked."""
import concurrent.futures, http.client, json, os, random, signal, socket, struct, subprocess, sys, tempfile, threading, time, traceback, zlib, base64

TG, MODEL = sys.argv[1:3]
model = MODEL
TEMPLATE = ("{% if bos_token != '<s>' or eos_token != '</s>' %}{{ raise_exception('tokens') }}{% endif %}{% for m in messages %}{% if m.role == 'system' %}{{ m.content }} {% else %}{{ m.content }}{% endif %}{% endfor %}"
            "{% if tools %} {{ tools[0].function.name }}{% endif %}")
ONCE = "Once upon a time"


def with_template(path, to):
    """The same gguf file with a chat template: a key-value more, of a size that keeps the data aligned."""
    data = open(path, "rb").read()
    key = b"tokenizer.chat_template"
    entry = lambda t: struct.pack("<Q", len(key)) + key + struct.pack("<IQ", 8, len(t)) + t
    text = TEMPLATE.encode()
    text = b"{#" + b"-" * (-len(entry(b"{##}" + text)) % 32) + b"#}" + text
    n = struct.unpack_from("<Q", data, 16)[0]
    open(to, "wb").write(data[:16] + struct.pack("<Q", n + 1) + entry(text) + data[24:])


class Server:
    def __init__(self, *options, models=None):
        command = [TG, "serve", *(models or [model]), "--port", "0", "--temperature", "0", "--tokens", "24", *options]
        self.log = tempfile.TemporaryFile("w+")
        self.process = subprocess.Popen(command, stderr=self.log, stdout=subprocess.DEVNULL)
        end = time.time() + 60
        while "http://" not in self.text() and self.process.poll() is None and time.time() < end:
            time.sleep(0.02)
        at = self.text().split("http://")
        assert len(at) == 2, self.text()
        self.port = int(at[1].split(":")[1].split(":")[0].split()[0].rstrip(":"))

    def text(self):
        self.log.seek(0)
        return self.log.read()

    def ask(self, method, path, body=None, headers=None, timeout=120):
        c = http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)
        data = body if body is None or isinstance(body, (bytes, str)) else json.dumps(body)
        c.request(method, path, data, headers or {})
        r = c.getresponse()
        got = r.read()
        c.close()
        return r.status, got, dict(r.getheaders())

    def complete(self, want=200, **asked):
        status, got, _ = self.ask("POST", "/v1/completions", {"prompt": ONCE, **asked})
        assert status == want, (status, got)
        return json.loads(got)

    def chat(self, want=200, headers=None, **asked):
        asked.setdefault("messages", [{"role": "user", "content": ONCE}])
        status, got, _ = self.ask("POST", "/v1/chat/completions", asked, headers)
        assert status == want, (status, got)
        return json.loads(got)

    def events(self, path, **asked):
        status, got, headers = self.ask("POST", path, {"stream": True, **asked})
        assert status == 200 and headers["Content-Type"] == "text/event-stream", (status, got)
        parts = got.decode().split("\n\n")
        assert parts[-1] == "" and parts[-2] == "data: [DONE]", parts[-2:]
        return [json.loads(p[len("data: "):]) for p in parts[:-2]]

    def metric(self, name):
        text = self.ask("GET", "/metrics")[1].decode()
        return float(dict(l.split() for l in text.splitlines() if not l.startswith("#"))[name])

    def stop(self, number=signal.SIGTERM):
        self.process.send_signal(number)
        code = self.process.wait(60)
        assert code == 0, (code, self.text())


def text(r):
    return r["choices"][0]["text"]


def test_places(s):
    assert s.ask("GET", "/health")[0] == 200
    names = json.loads(s.ask("GET", "/v1/models")[1])
    assert [m["id"] for m in names["data"]] == ["chat"] and names["object"] == "list"
    status, page, headers = s.ask("GET", "/")
    assert status == 200 and b"<!doctype html>" in page and "default-src 'none'" in headers["Content-Security-Policy"]
    assert json.loads(s.ask("GET", "/v1/models/chat")[1]) == names["data"][0]
    for nothing in ("/nothing", "/v1/models/", "/v1/models/other", "/v1/models/chat/x", "/v1/completions/x"):
        assert s.ask("GET", nothing)[0] == 404, nothing
    for path, allow in (("/", "GET, HEAD"), ("/metrics", "GET, HEAD"), ("/v1/models/chat", "GET, HEAD"), ("/v1/completions", "POST")):
        status, got, headers = s.ask("DELETE", path)
        assert status == 405 and headers["Allow"] == allow and json.loads(got)["error"], (path, headers)
    assert s.ask("GET", "/v1/completions")[0] == s.ask("POST", "/v1/models/chat", "{}")[0] == 405
    assert s.ask("HEAD", "/health")[:2] == (200, b"")


def test_completion(s):
    r = s.complete()
    want = subprocess.run([TG, "run", model, "--prompt", ONCE, "--temperature", "0", "--tokens", "24"], capture_output=True, text=True).stdout
    assert text(r) + "\n" == want, (text(r), want)
    assert r["object"] == "text_completion" and r["choices"][0]["finish_reason"] == "length"
    u = r["usage"]
    assert u["completion_tokens"] == 24 and u["total_tokens"] == u["prompt_tokens"] + 24
    e = s.events("/v1/completions", prompt=ONCE, stream_options={"include_usage": True})
    assert "".join(c["text"] for x in e for c in x["choices"]) == text(r)
    assert e[-1]["usage"]["completion_tokens"] == 24 and e[-2]["choices"][0]["finish_reason"] == "length"
    assert text(s.complete(stop=[" girl"])) == text(r).split(" girl")[0]
    assert text(s.complete(max_tokens=3)) == text(r)[:len(text(s.complete(max_tokens=3)))]
    ids = [1, 403, 407, 261, 378]
    assert text(s.complete(prompt=ids)) == text(r) and s.complete(prompt=ids)["usage"]["prompt_tokens"] == 5


def test_chat(s):
    r = s.chat()
    c = r["choices"][0]
    assert r["object"] == "chat.completion" and c["message"]["role"] == "assistant" and c["message"]["content"] == text(s.complete())
    e = s.events("/v1/chat/completions", messages=[{"role": "user", "content": ONCE}])
    assert e[0]["choices"][0]["delta"] == {"role": "assistant", "content": ""}
    assert "".join(x["choices"][0]["delta"].get("content", "") for x in e) == c["message"]["content"]
    assert e[-1]["choices"][0]["finish_reason"] == "length" and {x["id"] for x in e} == {e[0]["id"]}
    both = s.chat(messages=[{"role": "system", "content": "Once"}, {"role": "user", "content": [{"type": "text", "text": "upon a "}, {"type": "text", "text": "time"}]}])
    assert both["choices"][0]["message"]["content"] == c["message"]["content"]
    many = [{"type": "text", "text": "ab"}] * 300000  # joined in one go, or it would take an hour
    assert "more than the context" in s.chat(400, messages=[{"role": "user", "content": many}])["error"]["message"]
    tool = [{"type": "function", "function": {"name": "weather", "parameters": {}}}]
    assert s.chat(tools=tool)["usage"]["prompt_tokens"] > r["usage"]["prompt_tokens"]
    assert s.chat(tools=tool, tool_choice="none")["usage"]["prompt_tokens"] == r["usage"]["prompt_tokens"]


# a model of 260K parameters calls no tool by itself: this grammar leaves it the city
CALL = r'root ::= "<tool_call>{\"name\": \"weather\", \"arguments\": {\"city\": \"" [a-z]{1,5} "\"}}</tool_call>"'
TOOLS = [{"type": "function", "function": {"name": "weather", "parameters": {"type": "object", "properties": {"city": {"type": "string"}}}}}]


def test_tools(s):
    """A call of a tool, whole and as a stream."""
    asked = {"tools": TOOLS, "grammar": CALL, "max_tokens": 200, "temperature": 1, "seed": 3}
    c = s.chat(**asked)["choices"][0]
    call = c["message"]["tool_calls"][0]
    assert c["finish_reason"] == "tool_calls" and call["type"] == "function" and call["id"] and not c["message"]["content"], c
    city = json.loads(call["function"]["arguments"])["city"]
    assert call["function"]["name"] == "weather" and 1 <= len(city) <= 5
    e = s.events("/v1/chat/completions", messages=[{"role": "user", "content": ONCE}], **asked)
    calls = [t for x in e for t in x["choices"][0]["delta"].get("tool_calls", [])]
    assert len(calls) == 1 and calls[0]["index"] == 0 and json.loads(calls[0]["function"]["arguments"]) == {"city": city}, calls
    assert e[-1]["choices"][0]["finish_reason"] == "tool_calls"
    assert not any(x["choices"][0]["delta"].get("content") for x in e)


def test_options(s):
    two = s.complete(temperature=1, seed=5, n=3)["choices"]
    assert [c["index"] for c in two] == [0, 1, 2] and two[0]["text"] != two[1]["text"]
    assert two[1]["text"] == text(s.complete(temperature=1, seed=6))
    assert text(s.complete(temperature=1, seed=5)) == two[0]["text"]
    prompts = [ONCE, [1, 403, 407], "The dog"]
    several = s.complete(prompt=prompts, n=2, temperature=1, seed=5)
    alone = [s.complete(prompt=p, n=2, temperature=1, seed=5) for p in prompts]
    assert [c["text"] for c in several["choices"]] == [c["text"] for a in alone for c in a["choices"]]
    assert [c["index"] for c in several["choices"]] == list(range(6))
    for count in ("prompt_tokens", "completion_tokens", "total_tokens"):
        assert several["usage"][count] == sum(a["usage"][count] for a in alone), count
    streamed = [c for e in s.events("/v1/completions", prompt=prompts, n=2, temperature=1, seed=5) for c in e["choices"]]
    assert ["".join(c["text"] for c in streamed if c["index"] == i) for i in range(6)] == [c["text"] for c in several["choices"]]
    idle = {"user": "me", "metadata": {"a": "b"}, "store": False, "echo": False, "best_of": None, "suffix": "", "service_tier": "auto", "mirostat": None, "audio": None}
    assert text(s.complete(**idle)) == text(s.complete())
    logs = s.complete(logprobs=3, max_tokens=4)["choices"][0]["logprobs"]
    assert len(logs["tokens"]) == 4 and all(len(t) == 3 for t in logs["top_logprobs"]) and all(p <= 0 for p in logs["token_logprobs"])
    assert logs["token_logprobs"][0] == max(logs["top_logprobs"][0].values())
    one = s.chat(logprobs=True, top_logprobs=2, max_tokens=2)["choices"][0]["logprobs"]["content"]
    assert len(one) == 2 and len(one[0]["top_logprobs"]) == 2 and bytes(one[0]["bytes"])
    biased = s.chat(logprobs=True, max_tokens=1, logit_bias={"403": 100})["choices"][0]["logprobs"]["content"][0]["token"]
    assert biased.endswith("Once") and not one[0]["token"].endswith("Once")


def test_bytes(s):
    """Replies of bytes that are no text: each that is none is U+FFFD, in a stream too, and logprobs have the bytes themselves."""
    biased = {str(3 + b): 22 for b in b"\xc3\xa9\xe2\x96\x81\xf0\x9f"} # <0x00> is token 3
    for seed in range(12):
        asked = {"max_tokens": 40, "min_p": 0, "temperature": 1.2, "seed": seed, "logit_bias": biased}
        c = s.complete(logprobs=3, **asked)["choices"][0]
        streamed = [x["choices"][0] for x in s.events("/v1/completions", prompt=ONCE, logprobs=3, **asked)]
        assert "".join(x["text"] for x in streamed) == c["text"] and "\ufffd" in c["text"], (seed, c["text"])
        logs = [x["logprobs"] for x in streamed if x["logprobs"]]
        assert {k: sum((l[k] for l in logs), []) for k in logs[0]} == c["logprobs"]
        chat = s.chat(logprobs=True, top_logprobs=3, **asked)["choices"][0]
        assert chat["message"]["content"] == c["text"]
        parts = [bytes(t["bytes"]) for t in chat["logprobs"]["content"]]
        said = b"".join(parts).decode("utf-8", "replace") # the same but for how it shows an end within a character
        assert said.rstrip("\ufffd") == c["text"].rstrip("\ufffd"), (seed, said, c["text"])
        assert [t["token"] for t in chat["logprobs"]["content"]] == c["logprobs"]["tokens"] == [p.decode("utf-8", "replace") for p in parts]
        for t in chat["logprobs"]["content"]:
            assert any(bytes(o["bytes"]) == bytes(t["bytes"]) for o in t["top_logprobs"]) or t["logprob"] <= t["top_logprobs"][-1]["logprob"]
        for at, t in zip(c["logprobs"]["text_offset"], c["logprobs"]["tokens"]):
            assert "\ufffd" in t or c["text"][at:].startswith(t), (seed, at, t)
    logs = s.complete(logprobs=2)["choices"][0]["logprobs"]
    assert "".join(logs["tokens"]) == text(s.complete()) and " a" in logs["tokens"]
    assert all(text(s.complete())[at:].startswith(t) for at, t in zip(logs["text_offset"], logs["tokens"]))
    assert [t for top, t in zip(logs["top_logprobs"], logs["tokens"]) if t not in top] == []


def test_formats(s):
    schema = {"type": "object", "properties": {"name": {"type": "string", "maxLength": 9}, "age": {"type": "integer", "minimum": 0}, "pets": {"type": "array", "items": {"enum": ["cat", "dog"]}, "maxItems": 2}},
              "required": ["name", "age", "pets"], "additionalProperties": False}
    asked = {"response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": schema}}, "max_tokens": 200}
    for seed in range(4):
        r = s.chat(temperature=1.5, seed=seed, **asked)["choices"][0]
        v = json.loads(r["message"]["content"])
        assert list(v) == ["name", "age", "pets"] and len(v["name"]) <= 9 and v["age"] >= 0 and set(v["pets"]) <= {"cat", "dog"} and r["finish_reason"] == "stop", v
        e = s.events("/v1/chat/completions", messages=[{"role": "user", "content": ONCE}], temperature=1.5, seed=seed, **asked)
        assert "".join(x["choices"][0]["delta"].get("content", "") for x in e) == r["message"]["content"]
    assert text(s.complete(response_format={"type": "json_object"}, temperature=1))[0] == "{"
    assert text(s.complete(grammar='root ::= "yes" | "no"')) in ("yes", "no")
    assert "line 1" in s.complete(400, grammar="root ::= ]")["error"]["message"]
    assert "'pattern'" in s.complete(400, response_format={"type": "json_schema", "json_schema": {"schema": {"type": "string", "pattern": "x"}}})["error"]["message"]
    assert text(s.complete()).startswith(",")


WRONG = [(b"", "JSON"), (b'{"prompt": "' + "\u00e9".encode() * 500, "JSON"), (b'{"prompt": x' + "\u00e9".encode() * 500, "JSON"), (b"{", "JSON"), (b"[]", "object"), ({}, "prompt"), ({"prompt": 5}, "prompt"), ({"prompt": []}, "prompt"),
         ({"prompt": [1, "x"]}, "prompt"), ({"prompt": [-1]}, "token"), ({"prompt": [99999]}, "token"), ({"prompt": "x", "n": 0}, "'n'"),
         ({"prompt": "x", "n": 1000}, "'n'"), ({"prompt": "x", "temperature": -1}, "'temperature'"), ({"prompt": "x", "temperature": "hot"}, "'temperature'"),
         ({"prompt": "x", "stream": 1}, "'stream'"), ({"prompt": "x", "stop": [1]}, "'stop'"), ({"prompt": "x", "stop": ["a"] * 99}, "'stop'"),
         ({"prompt": "x", "seed": 1.5}, "'seed'"), ({"prompt": "x", "logit_bias": [1]}, "'logit_bias'"), ({"prompt": "x", "logit_bias": {"x": 1}}, "'logit_bias'"),
         ({"prompt": "x", "logit_bias": {"99999": 1}}, "99999"), ({"prompt": "x", "response_format": {"type": "yaml"}}, "'response_format'"),
         ({"prompt": "x", "response_format": {"type": "json_schema"}}, "'response_format'"), ({"prompt": "x", "grammar": 5}, "'grammar'"), ({"prompt": "x", "suffix": "y"}, "'suffix'"), ({"prompt": "x", "echo": True}, "'echo'"), ({"prompt": "x", "best_of": 3}, "'best_of'"),
         ({"prompt": "x", "tools": TOOLS}, "'tools'"), ({"prompt": "x", "mirostat": 2}, "'mirostat'"), ({"prompt": "x", "\u00e9" * 40: 2}, "is not taken here"), ({"prompt": "x", "stream_options": 5}, "'stream_options'"),
         ({"prompt": ["a", 5]}, "'prompt'"), ({"prompt": ["a", []]}, "'prompt'"), ({"prompt": ["a"] * 200, "n": 16}, "'n'"), ({"prompt": ["a", "a b " * 4000]}, "context"), ({"prompt": ["a", [99999]]}, "token"), ({"prompt": "x", "max_tokens": 0}, "'max_tokens'"), ({"prompt": "x", "max_completion_tokens": 0}, "'max_completion_tokens'"), ({"prompt": "x", "model": 7}, "'model'"), ({"prompt": "a b " * 4000}, "context")]
WRONG_CHAT = [({}, "messages"), ({"messages": []}, "messages"), ({"messages": [5]}, "messages"), ({"messages": [{"role": "user"}]}, "messages"),
              ({"messages": [{"role": "user", "content": [{"type": "image_url"}]}]}, "neither a text nor an image_url"), ({"messages": [{"role": "user", "content": "x"}], "tools": {}}, "tools")] + [({"messages": [{"role": "user", "content": "x"}], **more}, "'%s'" % list(more)[-1]) for more in (
                  {"tools": [5]}, {"tools": [{"type": "function"}]}, {"tools": [{"function": {"name": 5}}]}, {"tools": TOOLS, "tool_choice": "required"},
                  {"tools": TOOLS, "tool_choice": {"type": "function", "function": {"name": "weather"}}}, {"functions": [{"name": "x"}]}, {"function_call": "auto"},
                  {"modalities": ["text", "audio"]}, {"audio": {"voice": "x"}}, {"reasoning_effort": "high"}, {"parallel_tool_calls": False}, {"top_logprobs": 3}, {"echo": True}, {"prompt": "x"})]


def test_embeddings(s):
    def vectors(want=200, **asked):
        status, got, _ = s.ask("POST", "/v1/embeddings", asked)
        assert status == want, got
        return json.loads(got)
    dot = lambda a, b: sum(x * y for x, y in zip(a, b))
    r = vectors(input=["A dog ran in the park.", "A dog ran to the park.", "123", [1, 403, 407]])
    v = [d["embedding"] for d in r["data"]]
    assert [d["index"] for d in r["data"]] == [0, 1, 2, 3] and all(abs(dot(a, a) - 1) < 1e-4 for a in v)
    assert dot(v[0], v[1]) > dot(v[0], v[2]) and r["usage"]["prompt_tokens"] > 10
    assert vectors(input="123")["data"][0]["embedding"] == v[2] and vectors(input=[1, 403, 407])["data"][0]["embedding"] == v[3]
    import base64
    coded = base64.b64decode(vectors(input="123", encoding_format="base64")["data"][0]["embedding"])
    assert max(abs(a - b) for a, b in zip(struct.unpack("<%df" % len(v[2]), coded), v[2])) < 1e-7
    for bad in ({}, {"input": []}, {"input": 5}, {"input": [[]]}, {"input": [["x"]]}, {"input": "x", "dimensions": 5}, {"input": "x", "encoding_format": "z"}):
        assert vectors(400, **bad)["error"]["message"]
    assert "context" in vectors(400, input="a b " * 4000)["error"]["message"] and "token" in vectors(400, input=[99999])["error"]["message"]


def test_wrong(s):
    for path, list_ in (("/v1/completions", WRONG), ("/v1/chat/completions", WRONG_CHAT)):
        for body, word in list_:
            status, got, _ = s.ask("POST", path, body)
            e = json.loads(got)["error"]
            assert status == 400 and word in e["message"] and e["type"] == "invalid_request_error", (body, status, got)
    assert text(s.complete()).startswith(",")


def test_long(s):
    """A text that is far too long is refused by its beginning, so that it holds up nobody."""
    for unit in (ONCE + " ", " ", "a", "\u00e9", "1\n"):
        long = unit * (8000000 // len(unit.encode()))
        for path, asked in (("completions", {"prompt": long}), ("chat/completions", {"messages": [{"role": "user", "content": long}]}), ("embeddings", {"input": ["x", long]})):
            begin = time.time()
            status, got, _ = s.ask("POST", "/v1/" + path, json.dumps(asked, ensure_ascii=False).encode())
            assert status == 400 and b"a prompt of more than" in got and b"context of 512" in got and time.time() - begin < 20, (path, unit, status, got, time.time() - begin)
    assert text(s.complete()).startswith(",")


def test_others(s):
    """Pages of other sites, and names that lead here, are refused."""
    for h in ({"Host": "evil.example"}, {"Host": "localhost.evil.example"}, {"Host": "127.0.0.1x"}, {"Origin": "http://evil.example"}, {"Origin": "null"}):
        assert s.ask("GET", "/health", headers=h)[0] == 403, h
        assert s.ask("POST", "/v1/completions", {"prompt": "x"}, h)[0] == 403, h
    assert s.ask("GET", "/health", headers={"Host": "localhost:1"})[0] == 200
    assert s.ask("GET", "/health", headers={"Host": "localhost:1", "Origin": "http://localhost:1"})[0] == 200


def test_sizes(s):
    c = socket.create_connection(("127.0.0.1", s.port))
    c.sendall(b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999999999\r\n\r\n")
    assert b" 413 " in c.recv(200)
    c.close()
    c = socket.create_connection(("127.0.0.1", s.port))
    c.sendall(b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n")
    try: # without an end: the connection is closed
        for _ in range(20):
            c.sendall(b"100000\r\n" + b"x" * 0x100000 + b"\r\n")
        assert not c.recv(100)
    except OSError:
        pass
    c.close()
    assert text(s.complete()).startswith(",")


def test_malformed(s, n):
    rng = random.Random(1)
    good = json.dumps({"prompt": ONCE, "max_tokens": 2, "stop": ["x", "y"], "logit_bias": {"5": 1}, "seed": 3, "n": 1}).encode()
    head = b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\nConnection: close\r\n\r\n"
    for i in range(n):
        body = bytearray(good)
        for _ in range(rng.randrange(1, 6)):
            at = rng.randrange(len(body))
            kind = rng.randrange(4)
            if kind == 0: body[at] = rng.randrange(256)
            elif kind == 1: del body[at:at + rng.randrange(1, 9)]
            elif kind == 2: body[at:at] = rng.choice([b"[", b"{", b'"', b"1e999", b"null", b"\\u0000", b"-", b"9" * 40, b"\xff"])
            else: body[at:at + 4] = body[:rng.randrange(1, 30)]
            if not body: body = bytearray(b"{")
        request = bytearray((head % len(body)) + bytes(body))
        if rng.random() < 0.2: request[rng.randrange(len(request))] = rng.randrange(256)
        c = socket.create_connection(("127.0.0.1", s.port), timeout=30)
        c.sendall(request)
        if rng.random() < 0.1:
            c.close()
            continue
        c.shutdown(socket.SHUT_WR)
        try:
            got = c.recv(65536)
            assert not got or got.startswith(b"HTTP/1."), got
        except OSError:
            pass
        c.close()
    assert text(s.complete()).startswith(",")


def test_together(s, clients=24):
    """The same requests alone and all at once, some of them read slowly, some left in the middle."""
    rng = random.Random(2)
    starts = ["Once", ONCE, "The dog", "Lily was", "One day, a boy", "x", "Tom and Mia went to the"]
    asked = [{"prompt": rng.choice(starts) + rng.choice(["", " and", " in the big park with a red ball that she liked"]), "temperature": rng.choice([0, 1]),
              "seed": rng.randrange(5), "max_tokens": rng.randrange(1, 60)} for _ in range(clients)]
    alone = [text(s.complete(**a)) for a in asked]

    def one(i):
        kind = i % 4
        if kind == 0: return text(s.complete(**asked[i])) == alone[i]
        if kind == 1: return "".join(c["text"] for e in s.events("/v1/completions", **asked[i]) for c in e["choices"]) == alone[i]
        c = socket.create_connection(("127.0.0.1", s.port), timeout=60)
        c.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        body = json.dumps({**asked[i], "stream": True}).encode()
        c.sendall(b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
        got = b""
        while True: # slowly, or not to the end
            part = c.recv(256)
            if not part: break
            got += part
            if kind == 3 and len(got) > 400:
                c.close()
                return True
            time.sleep(0.002)
        c.close()
        return got.rstrip().endswith(b"data: [DONE]\n\n\r\n0") or b"[DONE]" in got
    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        results = list(pool.map(one, range(clients)))
    assert all(results), results
    end = time.time() + 30
    while s.metric("tg_requests_active") and time.time() < end:
        time.sleep(0.05)
    assert s.metric("tg_requests_active") == 0 and s.metric("tg_requests_queued") == 0


def test_leave(s):
    """A client that ends its sending alone gets its stream; one that leaves ends its reply, whether a stream or not."""
    def begin(stream, n):
        c = socket.create_connection(("127.0.0.1", s.port), timeout=60)
        body = json.dumps({"prompt": ONCE, "max_tokens": n, "stream": stream}).encode()
        c.sendall(b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
        return c
    for n in (1, 200):
        c = begin(True, n)
        c.shutdown(socket.SHUT_WR)
        r = http.client.HTTPResponse(c)
        r.begin()
        parts = r.read().decode().split("\n\n")
        c.close()
        said = [json.loads(p[len("data: "):]) for p in parts if p.startswith("data: {")]
        assert "data: [DONE]" in parts and "".join(e["choices"][0]["text"] for e in said) == text(s.complete(max_tokens=n)), parts[-3:]
    for stream in (True, False):
        before = s.metric("tg_tokens_total")
        for c in [begin(stream, 500) for _ in range(8)]:
            time.sleep(0.02)
            c.close()
        end = time.time() + 30
        while (s.metric("tg_requests_active") or s.metric("tg_requests_queued")) and time.time() < end:
            time.sleep(0.02)
        assert s.metric("tg_requests_active") == 0 and s.metric("tg_tokens_total") - before < 8 * 450, (stream, s.metric("tg_tokens_total") - before)


def test_prefix(s):
    """Whole blocks of a prompt (128 tokens) that the cache has are not read again, in the same slot or another."""
    long = "Once upon a time there was a little girl named Lily. She loved to play outside in the park with her dog. " * 4
    cached = lambda r: r["usage"]["prompt_tokens_details"]["cached_tokens"]
    a = s.complete(prompt=long, max_tokens=4)
    b = s.complete(prompt=long, max_tokens=4)
    assert text(a) == text(b) and cached(b) == (b["usage"]["prompt_tokens"] - 1) // 128 * 128 > 0, cached(b)
    assert cached(s.complete(prompt=long + text(a) + " The end", max_tokens=4)) == cached(b)


def test_bits(s, models=None):
    """The same request gives the same bytes: logprobs tell of the last bits. Alone, again with what the cache has of it,
    among others at different places of theirs, by each of several choices' seeds, and by a server of one thread."""
    base = "Lily and Tom went to the park. They saw a big dog and a small cat. The cat was sad. " * 4
    asked = [{"prompt": base[:n] + end, "max_tokens": 40, "temperature": 1, "seed": i, "logprobs": 2}
             for i, (n, end) in enumerate([(8, ""), (90, " The"), (340, ""), (340, " Then"), (200, " But"), (20, " a"), (340, " Then they"), (3, "")])]
    said = lambda on, a: on.complete(**a)["choices"]
    first = [said(s, a) for a in asked]
    rng = random.Random(3)
    for turn in range(3):
        order = asked * 3
        rng.shuffle(order)
        with concurrent.futures.ThreadPoolExecutor(len(asked) + 5 * turn) as pool:
            got = list(pool.map(lambda a: said(s, a), order))
        for a, g in zip(order, got):
            assert g == first[asked.index(a)], (turn, a, g, first[asked.index(a)])
    several = said(s, {**asked[2], "n": 3})
    assert several[0] == first[2][0] and several[2]["logprobs"] == said(s, {**asked[2], "seed": asked[2]["seed"] + 2})[0]["logprobs"]
    other = Server("--threads", "1", "--slots", "3", models=models)
    try:
        assert said(other, asked[6]) == first[6] and said(other, asked[3]) == first[3]
    finally:
        other.stop()


def test_key():
    s = Server("--key", "secret")
    try:
        assert s.ask("GET", "/health")[0] == 200 and s.ask("GET", "/")[0] == 200
        for h in ({}, {"Authorization": "Bearer wrong"}, {"Authorization": "Bearer secretx"}, {"Authorization": "Bearer "}, {"Authorization": "secret"}):
            assert s.ask("GET", "/v1/models", headers=h)[0] == 401, h
            assert s.ask("POST", "/v1/completions", {"prompt": "x"}, h)[0] == 401
        assert s.ask("GET", "/v1/models", headers={"Authorization": "Bearer secret"})[0] == 200
        s.chat(headers={"Authorization": "bearer secret"})
    finally:
        s.stop()
    for options in (["--host", "0.0.0.0"], ["--host", "0.0.0.0", "--key", ""], ["--key", ""]):
        r = subprocess.run([TG, "serve", model, "--port", "0", *options], capture_output=True, text=True, timeout=60)
        assert r.returncode == 2 and "--key" in r.stderr, (options, r)
    r = subprocess.run([TG, "serve", model, "--port", "0", "--grammar", model, "--schema", model], capture_output=True, text=True, timeout=60)
    assert r.returncode == 2 and "cannot both be" in r.stderr, r


def test_queue():
    """One slot, two that may wait: the others are told to come later; the accepted ones are whole."""
    s = Server("--slots", "1", "--queue", "2")
    try:
        want = text(s.complete(max_tokens=300))
        statuses, lock = [], threading.Lock()

        def one(_):
            status, got, headers = s.ask("POST", "/v1/completions", {"prompt": ONCE, "max_tokens": 300})
            with lock:
                statuses.append(status)
            assert status in (200, 429) and (status == 429 or json.loads(got)["choices"][0]["text"] == want)
            assert status == 200 or headers["Retry-After"]
        with concurrent.futures.ThreadPoolExecutor(24) as pool:
            list(pool.map(one, range(48)))
        assert 200 in statuses and 429 in statuses, statuses
    finally:
        s.stop()


def test_models():
    s = Server("--threads", "1", models=[model, MODEL])
    try:
        name = os.path.basename(MODEL)[:-5]
        alone = subprocess.run([TG, "run", MODEL, "--prompt", ONCE, "--temperature", "0", "--tokens", "24"], capture_output=True, text=True).stdout
        assert text(s.complete(model=name)) + "\n" == alone # with another number of threads
        assert [m["id"] for m in json.loads(s.ask("GET", "/v1/models")[1])["data"]] == ["chat", name]
        assert s.complete(model=name)["model"] == name and s.complete(model="chat")["model"] == "chat"
        assert "/v1/models" in s.complete(want=404, model="gpt")["error"]["message"]
        assert "no chat template" in s.chat(want=400, model=name)["error"]["message"]
    finally:
        s.stop()


def test_lora():
    """A server with an adapter says what tg run says with it."""
    with tempfile.TemporaryDirectory() as at:
        open(at + "/texts", "w").write(json.dumps({"prompt": ONCE, "completion": " the cat sat"}))
        subprocess.run([TG, "train", "lora", MODEL, "--data", at + "/texts", "-o", at + "/lora", "--length", "12", "--epochs", "40", "--batch", "1",
                        "--lr", "0.01"], check=True, capture_output=True)
        alone = subprocess.run([TG, "run", MODEL, "--prompt", ONCE, "--temperature", "0", "--tokens", "8", "--lora", at + "/lora"], capture_output=True, text=True).stdout
        s = Server("--lora", at + "/lora")
        try:
            assert text(s.complete(max_tokens=8)) + "\n" == alone and alone.startswith(" the cat"), alone
        finally:
            s.stop()


def test_end():
    """A reply that is being made is whole; what waits is told; a second signal does not wait."""
    s = Server("--slots", "1")
    got = []
    t = threading.Thread(target=lambda: got.append(s.complete(max_tokens=400)))
    t.start()
    while not s.metric("tg_requests_active") and t.is_alive():
        time.sleep(0.005)
    s.stop(signal.SIGINT)
    t.join()
    assert got and got[0]["usage"]["completion_tokens"] <= 400


def test_port(s):
    """A second server does not take the requests of the first."""
    second = subprocess.run([TG, "serve", model, "--port", str(s.port)], stderr=subprocess.PIPE, text=True, timeout=60)
    assert second.returncode == 1 and "Address already in use" in second.stderr, second


def test_openai(s):
    """The client that people use, where Python has it."""
    import openai
    c = openai.OpenAI(base_url="http://127.0.0.1:%d/v1" % s.port, api_key="none")
    said = [{"role": "user", "content": ONCE}]
    r = c.chat.completions.create(model="chat", messages=said, max_tokens=8, logprobs=True, top_logprobs=2)
    assert r.choices[0].finish_reason == "length" and r.usage.completion_tokens == 8 and len(r.choices[0].logprobs.content) == 8
    parts = list(c.chat.completions.create(model="chat", messages=said, max_tokens=8, stream=True, stream_options={"include_usage": True}))
    assert "".join(p.choices[0].delta.content or "" for p in parts if p.choices) == r.choices[0].message.content and parts[-1].usage.completion_tokens == 8
    assert c.completions.create(model="chat", prompt=ONCE, max_tokens=3).choices[0].text == ", there was"
    assert [m.id for m in c.models.list()] == ["chat"] and c.models.retrieve("chat").id == "chat"
    assert len(c.embeddings.create(model="chat", input=["a", "b"]).data) == 2
    schema = {"type": "object", "properties": {"age": {"type": "integer", "minimum": 0}}, "required": ["age"], "additionalProperties": False}
    asked = {"model": "chat", "messages": said, "max_tokens": 100, "response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": schema}}}
    r = c.chat.completions.create(**asked)
    assert list(json.loads(r.choices[0].message.content)) == ["age"] and r.choices[0].finish_reason == "stop"
    parts = c.chat.completions.create(stream=True, **asked)
    assert "".join(p.choices[0].delta.content or "" for p in parts if p.choices) == r.choices[0].message.content
    asked = {"model": "chat", "messages": said, "max_tokens": 200, "tools": TOOLS, "extra_body": {"grammar": CALL}}
    r = c.chat.completions.create(**asked)
    call = r.choices[0].message.tool_calls[0]
    assert r.choices[0].finish_reason == "tool_calls" and call.function.name == "weather" and json.loads(call.function.arguments)["city"]
    calls = [t for p in c.chat.completions.create(stream=True, **asked) if p.choices for t in p.choices[0].delta.tool_calls or []]
    assert "".join(t.function.arguments or "" for t in calls) == call.function.arguments
    answer = said + [{"role": "assistant", "tool_calls": [call.model_dump()]}, {"role": "tool", "tool_call_id": call.id, "content": "sun"}]
    assert c.chat.completions.create(model="chat", messages=answer, max_tokens=3, tools=TOOLS).choices[0].message.content
    try:
        c.chat.completions.create(model="chat", messages=said, temperature=-1)
        assert False
    except openai.BadRequestError as e:
        assert "temperature" in str(e)


def test_packed():
    """The same of quantised weights, which have programs of 1, 2, 4 .. rows."""
    packed = MODEL.replace("-f32", "-q8_0")
    if packed == MODEL or not os.path.exists(packed):
        return
    s = Server(models=[packed])
    try:
        test_bits(s, [packed])
    finally:
        s.stop()


def test_draft():
    """Guessed tokens change no reply: not one alone, not eight at once."""
    asked = [dict(temperature=t, seed=i, max_tokens=40, logprobs=2, prompt=p) for i, (t, p) in enumerate(
        [(0, ONCE), (1, ONCE), (0.7, "a b a b a b"), (0, "One day, One day,"), (1, "The cat"), (0, "The dog"), (1, "a a a"), (0.5, ONCE)])]
    of = lambda s, a: [(c["text"], c["logprobs"], c["finish_reason"]) for c in s.complete(**a)["choices"]]
    plain = Server("--slots", "8")
    want = [of(plain, a) for a in asked]
    plain.stop()
    for draft in ("lookup", MODEL):
        s = Server("--slots", "8", "--draft", draft)
        try:
            assert [of(s, a) for a in asked] == want, draft
            with concurrent.futures.ThreadPoolExecutor(8) as pool:
                assert list(pool.map(lambda a: of(s, a), asked)) == want, draft
            assert s.metric("tg_guessed_tokens_total") >= s.metric("tg_accepted_tokens_total") >= 0
        finally:
            s.stop()


def test_encoders():
    """An encoder has embeddings, a reranker scores, and neither generates."""
    folders = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "goldens", "llm", "hf")
    want = json.load(open(os.path.join(folders, "bert-rank", "expected.json")))["pairs"]
    s = Server("--slots", "3", models=[os.path.join(folders, n) for n in ("bert", "bert-rank")])
    ask = lambda path, **asked: s.ask("POST", "/v1/" + path, asked)
    try:
        several = json.loads(ask("embeddings", model="bert", input=["a dog", "the cat sat", "a"])[1])["data"]
        alone = [json.loads(ask("embeddings", model="bert", input=t)[1]) for t in ("a dog", "the cat sat", "a")]
        assert [d["embedding"] for d in several] == [d["data"][0]["embedding"] for d in alone] and alone[2]["usage"]["prompt_tokens"] == 3
        assert len({tuple(d["embedding"]) for d in several}) == 3 and len(several[0]["embedding"]) == 16
        for p in want:
            r = json.loads(ask("rerank", model="bert-rank", query=p["query"], documents=[p["document"], {"text": "mats"}, "a"])[1])
            scores = {d["index"]: d["relevance_score"] for d in r["results"]}
            assert abs(scores[0] - p["score"]) < 1e-4 * (1 + abs(p["score"])) and sorted(scores) == [0, 1, 2], (r, p)
            assert [d["relevance_score"] for d in r["results"]] == sorted(scores.values(), reverse=True) and r["usage"]["total_tokens"] > p["tokens"]
            best = json.loads(ask("rerank", model="bert-rank", query=p["query"], documents=[p["document"], "mats", "a"], top_n=2)[1])
            assert best["results"] == r["results"][:2]
        for path, word, asked in (("rerank", "'query'", dict(model="bert-rank", documents=["a"])), ("rerank", "'documents'", dict(model="bert-rank", query="a", documents=[])),
                                  ("rerank", "'documents'", dict(model="bert-rank", query="a", documents=[[1]])), ("rerank", "'top_n'", dict(model="bert-rank", query="a", documents=["a"], top_n=0)),
                                  ("rerank", "'return_documents'", dict(model="bert-rank", query="a", documents=["a"], return_documents=True)), ("rerank", "no reranker", dict(model="bert", query="a", documents=["a"])),
                                  ("embeddings", "/v1/rerank", dict(model="bert-rank", input="a")), ("completions", "generates nothing", dict(model="bert", prompt="a")),
                                  ("embeddings", "more than the context of 64", dict(model="bert", input="a " * 100)), ("rerank", "more than the context of 64", dict(model="bert-rank", query="a " * 40, documents=["a " * 40])),
                                  ("rerank", "more than the context of 64", dict(model="bert-rank", query="a", documents=["a " * 1000000]))):
            status, got, _ = ask(path, **asked)
            assert status == 400 and word in json.loads(got)["error"]["message"], (path, asked, status, got)
    finally:
        s.stop()


def png(width, height, rgb, claimed=None):
    """A PNG as a data: URI; claimed: what its head says of its size."""
    part = lambda name, data: struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
    rows = b"".join(b"\0" + rgb[3 * width * y : 3 * width * (y + 1)] for y in range(height))
    data = b"\x89PNG\r\n\x1a\n" + part(b"IHDR", struct.pack(">IIBBBBB", *(claimed or (width, height)), 8, 2, 0, 0, 0)) + part(b"IDAT", zlib.compress(rows)) + part(b"IEND", b"")
    return "data:image/png;base64," + base64.b64encode(data).decode()


def test_pictures():
    """Pictures in messages: what is shown counts, the same is the same, and what is none is refused."""
    folder = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "goldens", "llm", "vision")
    noise = random.Random(5)
    first, other = (png(30, 20, noise.randbytes(1800)) for _ in range(2))
    part = lambda uri: {"type": "image_url", "image_url": {"url": uri}}
    said = lambda *parts: [{"role": "user", "content": [{"type": "text", "text": p} if not p.startswith(("data:", "http")) else part(p) for p in parts]}]
    replies, tower = {}, lambda name: ["--mmproj", os.path.join(folder, name + "-mmproj.gguf")]
    for name, tokens in ("llava", 16), ("gemma3", 16), ("idefics3", 4):
        path = os.path.join(folder, name)
        s = Server("--mmproj", path + "-mmproj.gguf", "--slots", "3", models=[path + ".gguf"])
        try:
            ask = lambda *parts, **o: s.chat(messages=said(*parts), logprobs=True, max_tokens=6, **o)
            what = lambda r: r["choices"]
            assert json.loads(s.ask("GET", "/v1/models")[1])["data"][0]["pictures"]
            alone, second, plain = ask(first, "abc"), ask(other, "abc"), s.chat(messages=[{"role": "user", "content": "abc"}], logprobs=True, max_tokens=6)
            assert what(alone) != what(second) != what(plain) != what(alone), name
            assert alone["usage"]["prompt_tokens"] >= plain["usage"]["prompt_tokens"] + tokens
            with concurrent.futures.ThreadPoolExecutor(6) as pool: # among others, again, and in other slots
                for want, got in zip([alone, second] * 6, pool.map(lambda i: ask((first, other)[i % 2], "abc"), range(12))):
                    assert what(want) == what(got), name
            both = ask("a", first, "b", other, "c")
            assert both["usage"]["prompt_tokens"] >= 2 * tokens and what(both) != what(ask("a", other, "b", first, "c"))
            assert what(s.chat(messages=[{"role": "user", "content": [{"type": "image_url", "image_url": first}, {"type": "text", "text": "abc"}]}], logprobs=True, max_tokens=6)) == what(alone)
            # what looks like a mark shows nothing, with a picture and without one
            for mark in "<image>", "<start_of_image>", "<__media__>":
                assert s.chat(messages=[{"role": "user", "content": mark + "abc"}], max_tokens=2)["usage"]["prompt_tokens"] < alone["usage"]["prompt_tokens"] + len(mark)
                ask(first, mark + "abc")
            huge, cut = png(2, 2, bytes(12), (16000, 16000)), first[: len(first) // 2 // 4 * 4]
            for word, parts in (("data: URI", ["http://127.0.0.1/a.png"]), ("too large", [huge]), ("neither PNG", ["data:image/png;base64,AAAA"]), ("no base64", ["data:image/png;base64,A*AA"]),
                                ("base64", ["data:image/png;base64,"]), ("no data: URI", ["data:text/html;base64,AAAA"]), ("16 pictures", [first] * 17), ("", [cut])):
                error = ask(*parts, want=400)["error"]["message"]
                assert word in error, (word, error)
            assert "neither a text" in s.chat(400, messages=[{"role": "user", "content": [{"type": "input_audio", "input_audio": {}}]}])["error"]["message"]
            assert what(ask(first, "abc")) == what(alone)
            replies[name] = alone
        finally:
            s.stop()
    s = Server("--tiles", "4", *tower("idefics3"), models=[os.path.join(folder, "idefics3.gguf")])
    try:  # four tiles of four tokens, with text between them
        ask = lambda *parts: s.chat(messages=said(*parts), logprobs=True, max_tokens=6)
        alone, second = ask(first, "abc"), ask("a", other, "b")
        assert alone["usage"]["prompt_tokens"] > replies["idefics3"]["usage"]["prompt_tokens"] + 16 and alone["choices"] != replies["idefics3"]["choices"]
        for _ in range(3):
            assert [ask(first, "abc")["choices"], ask("a", other, "b")["choices"]] == [alone["choices"], second["choices"]]
    finally:
        s.stop()
    # each of several models has what stands after its file
    file = lambda name: os.path.join(folder, name + ".gguf")
    s = Server(models=[file("llava"), *tower("llava"), model, file("idefics3"), *tower("idefics3")])
    try:
        for name in "llava", "idefics3":
            assert s.chat(model=name, messages=said(first, "abc"), logprobs=True, max_tokens=6)["choices"] == replies[name]["choices"], name
        assert [m["pictures"] for m in json.loads(s.ask("GET", "/v1/models")[1])["data"]] == [True, False, True]
    finally:
        s.stop()
    for why, given in (("before all models", [*tower("llava"), file("llava"), file("gemma3")]), ("are of one model", [file("llava"), *tower("llava"), *tower("llava"), file("gemma3")]),
                       ("--tiles wants --mmproj", [file("llava"), "--tiles", "4"])):
        p = subprocess.run([TG, "serve", "--port", "0", *given], stderr=subprocess.PIPE, text=True)
        assert p.returncode == 2 and why in p.stderr, p
    s = Server(models=[os.path.join(folder, "llava.gguf")])
    try:
        assert "--mmproj" in s.chat(400, messages=said(first, "abc"))["error"]["message"]
        assert not json.loads(s.ask("GET", "/v1/models")[1])["data"][0]["pictures"]
    finally:
        s.stop()


def main():
    global model
    with tempfile.TemporaryDirectory() as folder:
        model = os.path.join(folder, "chat.gguf")
        with_template(MODEL, model)
        server = Server()
        tests = [(f.__name__, lambda f=f: f(server)) for f in (test_places, test_completion, test_chat, test_tools, test_options, test_bytes, test_formats, test_embeddings, test_port, test_wrong, test_long, test_others, test_sizes, test_together, test_leave, test_prefix, test_bits)]
        tests.append(("test_malformed", lambda: test_malformed(server, int(os.environ.get("N", "2000")))))
        try:
            import openai
            tests.append(("test_openai", lambda: test_openai(server)))
        except ImportError:
            print("no openai client in this Python: its test is left out")
        tests.append(("the server ends", server.stop))
        tests += [(f.__name__, f) for f in (test_packed, test_draft, test_encoders, test_pictures, test_key, test_queue, test_models, test_lora, test_end)]
        failed = 0
        for name, run in tests:
            try:
                run()
                print(name, "ok", flush=True)
            except Exception as e: # the next ones may still say something
                failed += 1
                print(name, "FAILED:", type(e).__name__, str(e)[:600], "line", [t.lineno for t in traceback.extract_tb(e.__traceback__)], flush=True)
        if server.process.poll() is None: server.process.kill()
        sys.exit(failed > 0)


if __name__ == "__main__":
    main()
