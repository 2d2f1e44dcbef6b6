#!/usr/bin/env python3
"""Prints tests/goldens/llm/lora.txt: what PyTorch's losses are when stories260K learns tiny Shakespeare by low-rank
adapters of q and v, 50 steps of AdamW. Model, tokenizer and adapters are written here from their descriptions; first
line: a hash of the tokens, so that another tokenization is told from another loss.

    python3 tests/llm/make_lora.py DATA > tests/goldens/llm/lora.txt     (DATA: the folder with stories260K)
"""
import math
import struct
import sys

import numpy as np
import torch

RANK, ALPHA, BATCH, LENGTH, STEPS, RATE, BYTES = 4, 8.0, 4, 64, 50, 5e-3, 40000


def model(path):
    data = open(path, "rb").read()
    dim, hidden, layers, heads, kv, vocab, _ = struct.unpack_from("<7i", data)
    at = 28

    def take(*shape):
        nonlocal at
        n = math.prod(shape)
        t = torch.from_numpy(np.frombuffer(data, "<f4", n, at).reshape(shape).copy())
        at += 4 * n
        return t

    k = dim * kv // heads
    w = {"table": take(vocab, dim), "norm1": take(layers, dim), "q": take(layers, dim, dim), "k": take(layers, k, dim),
         "v": take(layers, k, dim), "o": take(layers, dim, dim), "norm2": take(layers, dim), "gate": take(layers, hidden, dim),
         "down": take(layers, dim, hidden), "up": take(layers, hidden, dim), "norm": take(dim)}
    return w, dict(dim=dim, layers=layers, heads=heads, kv=kv, vocab=vocab)


def tokenize(path, text):
    """SentencePiece's byte pairs: the two neighbours whose piece has the best score join first."""
    data, at, score, id_of = open(path, "rb").read(), 4, [], {}
    while at < len(data):
        s, n = struct.unpack_from("<fi", data, at)
        piece = data[at + 8 : at + 8 + n]
        id_of.setdefault(piece.decode(), len(score))
        score.append(s)
        at += 8 + n
    ids, piece = [], [c for c in " " + text]
    assert all(c in id_of for c in piece if c != "\n")
    for word in split(piece):
        while True:
            best = None
            for i in range(len(word) - 1):
                j = id_of.get(word[i] + word[i + 1])
                if j is not None and (best is None or score[j] > score[best[1]]):
                    best = (i, j)
            if best is None:
                break
            word[best[0] : best[0] + 2] = [word[best[0]] + word[best[0] + 1]]
        ids += [id_of[p] if p in id_of else id_of["<0x%02X>" % ord(p)] for p in word]
    return [1] + ids


def split(chars):
    """No piece has a blank behind its first letter, so what is before a blank can be done alone."""
    word = []
    for c in chars:
        if c == " " and word and word[-1] != " ":
            yield word
            word = []
        word.append(c)
    yield word


def turned(x):
    """x (texts, tokens, heads, size): neighbours rotate together"""
    t, size = x.shape[1], x.shape[-1]
    f = 10000.0 ** (-torch.arange(0, size, 2, dtype=torch.float64) / size)
    angle = torch.arange(t, dtype=torch.float64)[:, None] * f
    c, s = angle.cos().float()[None, :, None], angle.sin().float()[None, :, None]
    a, b = x[..., 0::2], x[..., 1::2]
    return torch.stack((a * c - b * s, a * s + b * c), -1).flatten(-2)


def normed(x, w):
    return x * torch.rsqrt((x * x).mean(-1, keepdim=True) + 1e-5) * w


def forward(w, k, lora, ids):
    b, t = ids.shape
    x, size = w["table"][ids], k["dim"] // k["heads"]
    see = torch.tril(torch.ones(t, t, dtype=torch.bool))
    for i in range(k["layers"]):
        y = normed(x, w["norm1"][i])
        low = lambda name: (y @ lora[i][name][0].T) @ lora[i][name][1].T * (ALPHA / RANK)
        q = turned((y @ w["q"][i].T + low("q")).view(b, t, k["heads"], size))
        key = turned((y @ w["k"][i].T).view(b, t, k["kv"], size))
        v = (y @ w["v"][i].T + low("v")).view(b, t, k["kv"], size)
        key, v = (z.repeat_interleave(k["heads"] // k["kv"], 2).transpose(1, 2) for z in (key, v))
        s = q.transpose(1, 2) @ key.transpose(-1, -2) / math.sqrt(size)
        s = s.masked_fill(~see, -torch.inf).softmax(-1)
        x = x + (s @ v).transpose(1, 2).reshape(b, t, -1) @ w["o"][i].T
        y = normed(x, w["norm2"][i])
        x = x + (torch.nn.functional.silu(y @ w["gate"][i].T) * (y @ w["up"][i].T)) @ w["down"][i].T
    return normed(x, w["norm"]) @ w["table"].T


def numbers():
    """The adapters' first values: a generator that C has in two lines."""
    state = 1
    while True:
        state = (state * 1664525 + 1013904223) % 2**32
        yield (state / 2**31 - 1) * 0.125


def main():
    folder = sys.argv[1]
    w, k = model(folder + "/stories260K/stories260K.bin")
    text = open(folder + "/tinyshakespeare/input.txt").read()[:BYTES]
    ids = tokenize(folder + "/stories260K/tok512.bin", text)
    check = 0
    for i in ids:
        check = (check * 31 + i) % 2**32
    print(len(ids), check)
    random, lora = numbers(), []
    for _ in range(k["layers"]):
        a = lambda: torch.tensor([next(random) for _ in range(RANK * k["dim"])]).view(RANK, k["dim"])
        size = {"q": k["dim"], "v": k["dim"] * k["kv"] // k["heads"]}
        lora.append({n: (a().requires_grad_(), torch.zeros(size[n], RANK, requires_grad=True)) for n in ("q", "v")})
    optimiser = torch.optim.AdamW([p for l in lora for pair in l.values() for p in pair], lr=RATE, weight_decay=0.01)
    for step in range(STEPS):
        at = [(step * BATCH + i) * LENGTH for i in range(BATCH)]
        x, y = (torch.tensor([ids[p + d : p + d + LENGTH] for p in at]) for d in (0, 1))
        loss = torch.nn.functional.cross_entropy(forward(w, k, lora, x).flatten(0, 1), y.flatten())
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        print("%.6f" % loss.item())


if __name__ == "__main__":
    main()
