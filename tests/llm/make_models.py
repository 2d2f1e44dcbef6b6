#!/usr/bin/env python3
"""Writes tests/goldens/llm/*.gguf: tiny models with random weights, one for each architecture and each scaling of
positions, and what they say. The key-values test.ids and test.logits are tokens, and the logits after each of them
by a plain forward pass in NumPy, in f64, written from the descriptions of the architectures: no cache, no blocks.
Encoders have test.ids and test.embeddings instead: the mean, the first and the last token's direction; rerankers
test.score, of the texts "aa cc" and "bb" (words that their vocabulary has).

    python3 tests/llm/make_models.py tests/goldens/llm
"""
import math
import os
import struct
import sys

import numpy as np

from decoders import Pass, ROWS, make_decoder
from quants import TYPES, blocks

VOCABULARY, TOKENS = 20, 9
LAYER_NORMED = ("gpt2", "command-r", "cohere2", "starcoder2", "nemotron")  # by mean and variance
BIASED = ("gpt2", "starcoder2")  # everywhere
PLAIN = ("gpt2", "starcoder2", "nemotron")  # a feed-forward part without a gate
PARALLEL = ("command-r", "cohere2")


class Model:
    """Numbers and weights; the forward pass reads both."""

    def __init__(self, arch, **k):
        self.raw = {}  # of quantised weights: the type, and the bytes
        self.arch, self.k, self.w, self.kv = arch, dict(width=16, layers=2, heads=4, kv_heads=2, head=6, ffn=20, context=64), {}, []
        self.k.update(k)
        self.random = np.random.default_rng(sum(map(ord, arch)) + 7 * len(k))

    def add(self, name, *shape, size=0.4, about=0.0, kind="<f2"):
        a = (about + size * self.random.standard_normal(shape)).astype(kind)
        self.w[name] = a
        return a


def silu(x):
    return x / (1 + np.exp(-x))


def gelu(x):
    return 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def rms(x, w, eps):
    return x / np.sqrt((x * x).mean(-1, keepdims=True) + eps) * w


def layer_norm(x, w, b, eps):
    d = x - x.mean(-1, keepdims=True)
    return d / np.sqrt((d * d).mean(-1, keepdims=True) + eps) * w + b


def frequencies(k, base):
    n = k.get("turned", k["head"])
    f = base ** (-np.arange(0, n, 2) / n)
    kind, s = k.get("scaling"), k.get("factor", 1.0)
    if kind == "linear":
        f = f / s
    if kind == "ntk":
        f = (base * s ** (n / (n - 2))) ** (-np.arange(0, n, 2) / n)
    if kind == "yarn":
        def place(turns):
            return n * math.log(k["original"] / (turns * 2 * math.pi)) / (2 * math.log(base))
        low, high = max(math.floor(place(32)), 0), min(math.ceil(place(1)), n - 1)
        keep = 1 - np.clip((np.arange(n // 2) - low) / max(high - low, 0.001), 0, 1)
        f = f / s * (1 - keep) + f * keep
    return f


def rotate(x, k, f, pairs, attention=1.0):
    """x (tokens, heads, head)"""
    n = 2 * len(f)
    angle = np.arange(len(x))[:, None] * f
    c, s = np.cos(angle)[:, None] * attention, np.sin(angle)[:, None] * attention
    y = x.copy()
    a, b = (x[..., 0:n:2], x[..., 1:n:2]) if pairs else (x[..., : n // 2], x[..., n // 2 : n])
    u, v = a * c - b * s, a * s + b * c
    if pairs:
        y[..., 0:n:2], y[..., 1:n:2] = u, v
    else:
        y[..., : n // 2], y[..., n // 2 : n] = u, v
    return y


def q8_0(x):
    """What is left of x (tokens, heads, size) in blocks of 32 signed bytes with a scale of 16 bits."""
    y = np.zeros_like(x)
    for i in range(0, x.shape[-1], 32):
        b = x[..., i : i + 32]
        most = np.abs(b).max(-1, keepdims=True)
        y[..., i : i + 32] = np.round(b * 127 / most) * (most / 127).astype("f2")
    return y


def attention(m, w, x, i, norm):
    k, n = m.k, len(x)
    H, K, D = k["heads"], k["kv_heads"], k["head"]
    p = f"blk.{i}."
    lin = lambda name, v: v @ w[p + name + ".weight"].T + w.get(p + name + ".bias", 0)
    if p + "attn_qkv.weight" in w:
        q, key, v = np.split(lin("attn_qkv", x), [H * D, H * D + K * D], axis=1)
    else:
        q, key, v = lin("attn_q", x), lin("attn_k", x), lin("attn_v", x)
    if m.arch == "olmo2":
        q, key = rms(q, w[p + "attn_q_norm.weight"], k["eps"]), rms(key, w[p + "attn_k_norm.weight"], k["eps"])
    q, key, v = q.reshape(n, H, D), key.reshape(n, K, D), v.reshape(n, K, D)
    if p + "attn_q_norm.weight" in w and m.arch != "olmo2":
        q, key = rms(q, w[p + "attn_q_norm.weight"], k["eps"]), rms(key, w[p + "attn_k_norm.weight"], k["eps"])
    every = {"gemma2": 2, "gemma3": 6, "gpt-oss": 2, "cohere2": 4, "gemma-embedding": 6}.get(m.arch)
    windowed = k.get("window") and not (every and i % every == every - 1)
    still = m.arch in ("smollm3", "cohere2") and i % 4 == 3
    if m.arch != "gpt2" and not still:
        pairs = m.arch in ("llama", "glm4", "smollm3", "granite", "granitemoe", "command-r", "cohere2", "internlm2")
        if m.arch in ("gemma3", "gemma-embedding") and windowed:
            f = frequencies({**k, "scaling": None}, 10000.0)
        else:
            f = frequencies(k, k.get("base", 10000.0))
        if "rope_freqs.weight" in w:
            f = f / w["rope_freqs.weight"]
        if "rope_factors_short.weight" in w:
            f = f / w["rope_factors_short.weight"]
        a = k.get("attn_factor", 1.0) * (1 + 0.1 * math.log(k["factor"]) if k.get("scaling") == "yarn" else 1)
        q, key = rotate(q, k, f, pairs, a), rotate(key, k, f, pairs, a)
    if k.get("cache") == "q8_0":
        key, v = q8_0(key), q8_0(v)
    key, v = np.repeat(key, H // K, 1), np.repeat(v, H // K, 1)
    score = np.einsum("qhd,khd->hqk", q, key) * k.get("attention_scale", 1 / math.sqrt(D))
    if k.get("attention_cap"):
        score = k["attention_cap"] * np.tanh(score / k["attention_cap"])
    at, of = np.arange(n)[:, None], np.arange(n)[None]
    hidden = of > at
    if windowed:
        hidden |= at - of >= k["window"]
    if m.arch == "gemma-embedding":  # both sides are seen, half a window of each
        hidden = np.abs(at - of) > (k["window"] // 2 if windowed else n)
    score = np.where(hidden, -np.inf, score)
    if p + "attn_sinks.weight" in w:  # a key more, of which nothing comes
        sink = np.broadcast_to(w[p + "attn_sinks.weight"][:, None, None], (H, n, 1))
        score = np.concatenate((score, sink), -1)
    y = np.einsum("hqk,khd->qhd", softmax(score)[..., :n], v).reshape(n, H * D)
    return lin("attn_output", y)


def feed_forward(m, w, x, i):
    k, p = m.k, f"blk.{i}."
    act = gelu if m.arch in ("gemma", "gemma2", "gemma3", "gemma-embedding", "gpt2", "starcoder2") else silu
    if m.arch == "nemotron":
        act = lambda v: np.maximum(v, 0) ** 2
    lin = lambda name, v: v @ w[p + name + ".weight"].T + w.get(p + name + ".bias", 0)
    if p + "ffn_gate_inp.weight" in w:
        share = softmax(lin("ffn_gate_inp", x))
        y = np.zeros_like(x)
        for t in range(len(x)):
            best = np.argsort(-share[t], kind="stable")[: k["used"]]
            s = share[t][best]
            if m.arch != "qwen2moe":
                s = s / s.sum()
            for e, part in zip(best, s):
                one = lambda name, v: w[p + name + ".weight"][e] @ v + (w[p + name + ".bias"][e] if p + name + ".bias" in w else 0)
                up, gate = one("ffn_up_exps", x[t]), one("ffn_gate_exps", x[t])
                if m.arch == "gpt-oss":
                    gate, up = np.minimum(gate, 7), np.clip(up, -7, 7)
                    inner = gate / (1 + np.exp(-1.702 * gate)) * (up + 1)
                else:
                    inner = silu(gate) * up
                y[t] += part * one("ffn_down_exps", inner)
        if m.arch == "qwen2moe":
            shared = lin("ffn_down_shexp", silu(lin("ffn_gate_shexp", x)) * lin("ffn_up_shexp", x))
            y = y + shared / (1 + np.exp(-(x @ w[p + "ffn_gate_inp_shexp.weight"])))[:, None]
        return y
    if p + "ffn_gate.weight" in w:
        return lin("ffn_down", act(lin("ffn_gate", x)) * lin("ffn_up", x))
    up = lin("ffn_up", x)
    if m.arch in PLAIN:
        return lin("ffn_down", act(up))
    gate, up = np.split(up, 2, axis=1)
    return lin("ffn_down", act(gate) * up)


def forward(m, ids):
    if m.arch in ROWS:
        latent = m.k.get("kv_rank")  # YaRN makes nothing longer there
        longer = lambda k: 1 + 0.1 * math.log(k["factor"]) if k.get("scaling") == "yarn" and not latent else 1.0
        return Pass(m, lambda x, k, pairs: rotate(x, k, frequencies(k, k.get("base", 10000.0)), pairs, longer(k))).logits(ids)
    w = {n: a.astype("f8") for n, a in m.w.items()}
    k, eps = m.k, m.k["eps"]
    x = w["token_embd.weight"][ids]
    if m.arch.startswith("gemma"):
        x = x * math.sqrt(k["width"])
    x = x * k.get("embedding_scale", 1)
    if m.arch == "gpt2":
        x = x + w["position_embd.weight"][: len(ids)]
    if m.arch in LAYER_NORMED:
        norm = lambda name, v: layer_norm(v, w[name + ".weight"], w.get(name + ".bias", 0), eps)
    else:
        norm = lambda name, v: rms(v, w[name + ".weight"], eps)
    if m.arch in PARALLEL:
        for i in range(k["layers"]):
            y = norm(f"blk.{i}.attn_norm", x)
            x = x + attention(m, w, y, i, norm) + feed_forward(m, w, y, i)
        return norm("output_norm", x) @ w.get("output.weight", w["token_embd.weight"]).T * k["logit_scale"]
    if m.arch == "olmo2":
        for i in range(k["layers"]):
            x = x + norm(f"blk.{i}.post_attention_norm", attention(m, w, x, i, norm))
            x = x + norm(f"blk.{i}.post_ffw_norm", feed_forward(m, w, x, i))
        return norm("output_norm", x) @ w["output.weight"].T
    residual = k.get("residual_scale", 1)
    for i in range(k["layers"]):
        p = f"blk.{i}."
        y = attention(m, w, norm(p + "attn_norm", x), i, norm)
        x = x + residual * (norm(p + "post_attention_norm", y) if p + "post_attention_norm.weight" in w and m.arch != "gpt-oss" else y)
        y = feed_forward(m, w, norm(p + ("post_attention_norm" if m.arch == "gpt-oss" else "ffn_norm"), x), i)
        x = x + residual * (norm(p + "post_ffw_norm", y) if p + "post_ffw_norm.weight" in w else y)
    y = norm("output_norm", x) @ w.get("output.weight", w["token_embd.weight"]).T
    y = y / k.get("logit_scale", 1)
    if k.get("final_cap"):
        y = k["final_cap"] * np.tanh(y / k["final_cap"])
    return y


ENCODERS = ("bert", "nomic-bert", "jina-bert-v2", "gemma-embedding")
WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"] + ["\u2581" + w for w in ("aa", "bb", "cc", "dd")]
PAIR, SECOND = [2, 4, 6, 3, 5, 3], 4  # [CLS] aa cc [SEP] bb [SEP]
WORDS_AND_ANSWERS = WORDS + ["no", "yes"]
ASK, ASKED = "[CLS] dd {query} [SEP] {document} [SEP]", [2, 7, 4, 6, 3, 5, 3]  # how a decoder is asked, and the same pair


def slopes(heads, bias=8.0):
    """ALiBi's: a row of powers for as many heads as a power of 2 has, and for those that are left every second one of
    the row for twice as many"""
    n = 2 ** int(math.log2(heads))
    row = [2 ** (-bias / n * (i + 1)) for i in range(n)]
    return np.array(row + [2 ** (-bias / (2 * n) * (2 * i + 1)) for i in range(heads - n)])


def encode(m, ids, second):
    """(tokens, width)"""
    w = {n: a.astype("f8") for n, a in m.w.items()}
    k, n = m.k, len(ids)
    H, D, F = k["heads"], k["head"], k["ffn"]
    if m.arch == "gemma-embedding":
        norm = lambda name, v: rms(v, w[name + ".weight"], k["eps"])
        x = w["token_embd.weight"][ids] * math.sqrt(k["width"])
        for i in range(k["layers"]):
            p = f"blk.{i}."
            x = x + norm(p + "post_attention_norm", attention(m, w, norm(p + "attn_norm", x), i, norm))
            x = x + norm(p + "post_ffw_norm", feed_forward(m, w, norm(p + "ffn_norm", x), i))
        return norm("output_norm", x)
    norm = lambda name, v: layer_norm(v, w[name + ".weight"], w[name + ".bias"], k["eps"])
    x = w["token_embd.weight"][ids] + w["token_types.weight"][(np.arange(n) >= second).astype(int)]
    if m.arch == "bert":
        x = x + w["position_embd.weight"][:n]
    x = norm("token_embd_norm", x)
    erf = np.vectorize(math.erf)
    gelu_erf = lambda v: v / 2 * (1 + erf(v / math.sqrt(2)))
    for i in range(k["layers"]):
        p = f"blk.{i}."
        lin = lambda name, v: v @ w[p + name + ".weight"].T + w.get(p + name + ".bias", 0)
        q, key, v = np.split(lin("attn_qkv", x), 3, axis=1) if p + "attn_qkv.weight" in w else (lin("attn_q", x), lin("attn_k", x), lin("attn_v", x))
        if p + "attn_q_norm.weight" in w:
            q, key = norm(p + "attn_q_norm", q), norm(p + "attn_k_norm", key)
        q, key, v = (t.reshape(n, H, D) for t in (q, key, v))
        if m.arch == "nomic-bert":
            f = frequencies(k, k.get("base", 10000.0))
            q, key = rotate(q, k, f, False), rotate(key, k, f, False)
        score = np.einsum("qhd,khd->hqk", q, key) / math.sqrt(D)
        if m.arch == "jina-bert-v2":
            score = score - slopes(H)[:, None, None] * np.abs(np.arange(n)[:, None] - np.arange(n)[None])
        y = lin("attn_output", np.einsum("hqk,khd->qhd", softmax(score), v).reshape(n, H * D))
        y = norm(p + "attn_output_norm", x + y)
        if p + "attn_norm_2.weight" in w:
            y = norm(p + "attn_norm_2", x + y)
        up = lin("ffn_up", y)
        if m.arch == "bert":
            up = gelu_erf(up)
        elif m.arch == "nomic-bert":
            up = silu(lin("ffn_gate", y)) * up
        elif up.shape[1] == 2 * F:
            up = gelu_erf(up[:, :F]) * up[:, F:]
        else:
            up = gelu_erf(lin("ffn_gate", y)) * up
        x = norm(p + "layer_output_norm", y + lin("ffn_down", up))
    return x


def make_encoder(arch, **numbers):
    m = Model(arch, **{"kv_heads": 4, "head": 4, "types": 2, "pooling": 2, **numbers})
    k = m.k
    k["eps"] = 1e-12
    d, f, q = k["width"], k["ffn"], k["heads"] * k["head"]
    vector = lambda name, n, about=1.0: m.add(name, n, size=0.2, about=about, kind="<f4")
    both = lambda name, n: (vector(name + ".weight", n), vector(name + ".bias", n, 0))
    m.add("token_embd.weight", len(WORDS) if k["pooling"] == 4 else VOCABULARY, d)
    m.add("token_types.weight", k["types"], d)
    if arch == "bert":
        m.add("position_embd.weight", k["context"], d)
    both("token_embd_norm", d)
    if k["pooling"] == 4:
        m.add("cls.weight", d, d), vector("cls.bias", d, 0), m.add("cls.output.weight", 1, d), vector("cls.output.bias", 1, 0)
    for i in range(k["layers"]):
        p = f"blk.{i}."
        matrix = lambda name, rows, columns: (m.add(p + name + ".weight", rows, columns), vector(p + name + ".bias", rows, 0) if arch != "nomic-bert" else 0)
        if arch == "nomic-bert":
            matrix("attn_qkv", 3 * q, d)
        else:
            matrix("attn_q", q, d), matrix("attn_k", q, d), matrix("attn_v", q, d)
        matrix("attn_output", d, q)
        both(p + "attn_output_norm", d), both(p + "layer_output_norm", d)
        if k.get("qk_norms"):
            both(p + "attn_q_norm", q), both(p + "attn_k_norm", q), both(p + "attn_norm_2", d)
        if k.get("fused"):
            m.add(p + "ffn_up.weight", 2 * f, d)
        elif arch == "bert":
            matrix("ffn_up", f, d)
        else:
            m.add(p + "ffn_up.weight", f, d), m.add(p + "ffn_gate.weight", f, d)
        matrix("ffn_down", d, f)
    if k.get("quantised"):
        quantise(m)
    return m


def make(arch, **numbers):
    m = Model(arch, **numbers)
    k = m.k
    k["eps"] = 1e-5
    d, q, kv, f = k["width"], k["heads"] * k["head"], k["kv_heads"] * k["head"], k["ffn"]
    vector = lambda name, n, about=1.0: m.add(name, n, size=0.2, about=about, kind="<f4")
    m.add("token_embd.weight", VOCABULARY, d)
    if arch == "gpt2":
        m.add("position_embd.weight", k["context"], d)
    if arch in BIASED + ("nemotron",):
        vector("output_norm.bias", d, 0)
    vector("output_norm.weight", d)
    if not arch.startswith("gemma") and not k.get("tied"):
        m.add("output.weight", VOCABULARY, d)
    if k.get("factors"):
        m.w["rope_freqs.weight"] = np.linspace(1, 5, k.get("turned", k["head"]) // 2).astype("<f4")
    if k.get("scaling") == "longrope":
        m.w["rope_factors_short.weight"] = np.linspace(1, 2, k["head"] // 2).astype("<f4")
        m.w["rope_factors_long.weight"] = np.linspace(3, 9, k["head"] // 2).astype("<f4")
    for i in range(k["layers"]):
        p = f"blk.{i}."
        if arch != "olmo2":
            vector(p + "attn_norm.weight", d)
        if arch not in PARALLEL + ("olmo2",):
            vector(p + ("post_attention_norm.weight" if arch == "gpt-oss" else "ffn_norm.weight"), d)
        if arch in ("phi3", "gpt2"):
            m.add(p + "attn_qkv.weight", q + 2 * kv, d)
        else:
            m.add(p + "attn_q.weight", q, d), m.add(p + "attn_k.weight", kv, d), m.add(p + "attn_v.weight", kv, d)
        m.add(p + "attn_output.weight", d, q)
        if arch in ("qwen2", "qwen2moe", "glm4", "gpt-oss", "starcoder2"):
            vector(p + "attn_q.bias", q, 0), vector(p + "attn_k.bias", kv, 0), vector(p + "attn_v.bias", kv, 0)
        if arch in ("qwen3", "qwen3moe", "gemma3", "gemma-embedding"):
            vector(p + "attn_q_norm.weight", k["head"]), vector(p + "attn_k_norm.weight", k["head"])
        if arch == "olmo2":
            vector(p + "attn_q_norm.weight", q), vector(p + "attn_k_norm.weight", kv)
        if arch in ("gemma2", "gemma3", "gemma-embedding", "glm4", "olmo2"):
            vector(p + "post_attention_norm.weight", d), vector(p + "post_ffw_norm.weight", d)
        if arch == "gpt-oss":
            e, g = k["experts"], k["expert_ffn"]
            vector(p + "attn_output.bias", d, 0), vector(p + "attn_sinks.weight", k["heads"], 0), vector(p + "ffn_gate_inp.bias", e, 0)
            m.add(p + "ffn_gate_exps.bias", e, g, kind="<f4"), m.add(p + "ffn_up_exps.bias", e, g, kind="<f4")
            m.add(p + "ffn_down_exps.bias", e, d, kind="<f4")
        if k.get("experts"):
            e, g = k["experts"], k["expert_ffn"]
            m.add(p + "ffn_gate_inp.weight", e, d)
            m.add(p + "ffn_gate_exps.weight", e, g, d), m.add(p + "ffn_up_exps.weight", e, g, d)
            m.add(p + "ffn_down_exps.weight", e, d, g)
            if arch == "qwen2moe":
                s = k["shared_ffn"]
                m.add(p + "ffn_gate_inp_shexp.weight", d)
                m.add(p + "ffn_gate_shexp.weight", s, d), m.add(p + "ffn_up_shexp.weight", s, d)
                m.add(p + "ffn_down_shexp.weight", d, s)
            continue
        if arch in BIASED + ("nemotron",):
            vector(p + "attn_norm.bias", d, 0), vector(p + "ffn_norm.bias", d, 0)
        if arch == "gpt2":
            vector(p + "attn_qkv.bias", q + 2 * kv, 0)
        if arch in BIASED:
            vector(p + "attn_output.bias", d, 0), vector(p + "ffn_up.bias", f, 0), vector(p + "ffn_down.bias", d, 0)
        if arch not in ("phi3", "glm4") + PLAIN:
            m.add(p + "ffn_gate.weight", f, d)
        m.add(p + "ffn_up.weight", 2 * f if arch in ("phi3", "glm4") else f, d)
        m.add(p + "ffn_down.weight", d, f)
    if k.get("between"):
        m.add("dense_2.weight", k["between"], d), m.add("dense_3.weight", d, k["between"])
    if k.get("labels"):
        m.add("cls.output.weight", k["labels"], d)
    if k.get("quantised"):
        quantise(m)
    if k.get("bf16"):
        for name in [n for n, w in m.w.items() if w.ndim > 1]:
            high = (m.w[name].astype("<f4").view("<u4") >> 16).astype("<u2")
            m.raw[name], m.w[name] = (30, high.tobytes()), (high.astype("<u4") << 16).view("<f4")
    return m


def decoder(arch, **numbers):
    m = make_decoder(Model(arch, **numbers), VOCABULARY)
    for name, w in m.w.items():
        if m.k.get("eights") and name.startswith("blk.") and w.ndim > 1 and w.shape[-1] % 32 == 0 and "gate_inp" not in name:
            data, values = blocks(m.random, "Q8_0", w.size // w.shape[-1], w.shape[-1], 0.3)
            m.raw[name], m.w[name] = (TYPES["Q8_0"][0], data), values.reshape(w.shape)
    return m


def quantise(m):
    """Each matrix of a layer in another type, the longest blocks that its rows have, until all were there"""
    left = list(TYPES)
    for name, w in m.w.items():
        if not name.startswith("blk.") or w.ndim < 2 or "gate_inp" in name:
            continue
        fit = sorted((t for t in left if w.shape[-1] % TYPES[t][1] == 0), key=lambda t: -TYPES[t][1])
        kind = fit[0] if fit else "Q8_0"
        left = [t for t in left if t != kind]
        data, values = blocks(m.random, kind, w.size // w.shape[-1], w.shape[-1], 0.1)
        m.raw[name], m.w[name] = (TYPES[kind][0], data), values.reshape(w.shape)
    assert not left, left


def text(s):
    return struct.pack("<Q", len(s.encode())) + s.encode()


def write(m, path):
    k, a, kv = m.k, m.arch, []
    ids = m.random.integers(0, len(m.w["token_embd.weight"]), k.get("tokens", TOKENS))
    whole = lambda key, v: kv.append(text(key) + struct.pack("<II", 4, v))
    real = lambda key, v: kv.append(text(key) + struct.pack("<If", 6, v))
    words = lambda key, v: kv.append(text(key) + struct.pack("<I", 8) + text(v))
    words("general.architecture", a)
    names = {"width": "embedding_length", "layers": "block_count", "heads": "attention.head_count", "ffn": "feed_forward_length",
             "kv_heads": "attention.head_count_kv", "head": "attention.key_length", "context": "context_length",
             "turned": "rope.dimension_count", "window": "attention.sliding_window", "experts": "expert_count",
             "used": "expert_used_count", "expert_ffn": "expert_feed_forward_length",
             "shared_ffn": "expert_shared_feed_forward_length", "pooling": "pooling_type", "q_rank": "attention.q_lora_rank", "kv_rank": "attention.kv_lora_rank",
             "key_mla": "attention.key_length_mla", "value_mla": "attention.value_length_mla", "value": "attention.value_length",
             "shared": "expert_shared_count", "dense": "leading_dense_block_count", "unread": "nextn_predict_layers",
             "groups": "expert_group_count", "groups_used": "expert_group_used_count", "gating": "expert_gating_func", "original": "rope.scaling.original_context_length"}
    reals = {"base": "rope.freq_base", "factor": "rope.scaling.factor", "attn_factor": "rope.scaling.attn_factor",
             "attention_cap": "attn_logit_softcapping", "final_cap": "final_logit_softcapping",
             "embedding_scale": "embedding_scale", "residual_scale": "residual_scale", "attention_scale": "attention.scale",
             "clamp": "attention.clamp_kqv", "alibi": "attention.max_alibi_bias", "expert_scale": "expert_weights_scale",
             "log_mul": "rope.scaling.yarn_log_multiplier", "logit_scale": "logit_scale", "eps": "attention.layer_norm_epsilon" if a in LAYER_NORMED + ENCODERS[:3] or ROWS.get(a, {}).get("ln") else "attention.layer_norm_rms_epsilon"}
    for key, v in k.items():
        if key in names:
            whole(f"{a}.{names[key]}", v)
        if key in reals:
            real(f"{a}.{reals[key]}", v)
    for key, name in ("parallel", "use_parallel_residual"), ("norm", "expert_weights_norm"):
        if key in k:
            kv.append(text(f"{a}.{name}") + struct.pack("<IB", 7, k[key]))
    if k.get("scaling"):
        words(f"{a}.rope.scaling.type", k["scaling"])
    texts = lambda key, v: kv.append(text(key) + struct.pack("<IIQ", 9, 8, len(v)) + b"".join(map(text, v)))
    many = lambda key, kind, v: kv.append(text(key) + struct.pack("<IIQ", 9, kind, v.size) + v.tobytes())
    many("test.ids", 5, ids.astype("<i4"))
    if a in ENCODERS:
        kv.append(text(f"{a}.attention.causal") + struct.pack("<IB", 7, 0))
        x = encode(m, ids, len(ids))
        e = np.stack((x.mean(0), x[0], x[-1]))
        if "dense_2.weight" in m.w:
            e = e @ m.w["dense_2.weight"].astype("f8").T @ m.w["dense_3.weight"].astype("f8").T
        many("test.embeddings", 6, (e / np.linalg.norm(e, axis=1)[:, None]).astype("<f4"))
    else:
        many("test.logits", 6, forward(m, ids).astype("<f4"))
    if k.get("pooling") == 4 and a not in ENCODERS:
        rows = m.w.get("cls.output.weight", m.w["output.weight"][[WORDS_AND_ANSWERS.index(s) for s in ("no", "yes")]])
        both = Model(a, **k)
        both.w = {**m.w, "output.weight": rows}
        many("test.score", 6, softmax(forward(both, np.array(ASKED))[-1])[1:].astype("<f4"))
        words("tokenizer.chat_template.rerank", ASK)
        if "cls.output.weight" in m.w:
            texts(f"{a}.classifier.output_labels", ["no", "yes"])
    elif k.get("pooling") == 4:
        w = {n: t.astype("f8") for n, t in m.w.items()}
        first = np.tanh(w["cls.weight"] @ encode(m, PAIR, SECOND)[0] + w["cls.bias"])
        many("test.score", 6, (w["cls.output.weight"] @ first + w["cls.output.bias"]).astype("<f4"))
    if k.get("pooling") == 4:
        vocabulary = WORDS if a in ENCODERS else WORDS_AND_ANSWERS
        words("tokenizer.ggml.model", "bert")
        texts("tokenizer.ggml.tokens", vocabulary)
        many("tokenizer.ggml.token_type", 5, np.array([3, 3, 3, 3] + [1] * (len(vocabulary) - 4), "<i4"))
        for key, i in ("cls", 2), ("seperator", 3), ("unknown", 1), ("padding", 0):
            whole(f"tokenizer.ggml.{key}_token_id", i)
    head = b"GGUF" + struct.pack("<IQQ", 3, len(m.w), len(kv)) + b"".join(kv)
    data, at = b"", 0
    for name, t in m.w.items():
        head += text(name) + struct.pack("<I", t.ndim) + b"".join(struct.pack("<Q", n) for n in t.shape[::-1])
        kind, of = m.raw.get(name, (1 if t.dtype.itemsize == 2 else 0, None))
        head += struct.pack("<IQ", kind, len(data))
        data += of or t.tobytes()
        data += b"\0" * (-len(data) % 32)
    with open(path, "wb") as f:
        f.write(head + b"\0" * (-len(head) % 32) + data)


MODELS = {
    "llama": make("llama"),
    "llama-tied-linear": make("llama", tied=True, scaling="linear", factor=4.0, base=500.0, turned=4),
    "llama-ntk": make("llama", scaling="ntk", factor=3.0),
    "llama-yarn": make("llama", scaling="yarn", factor=4.0, original=16, base=100.0, head=8),
    "llama-factors": make("llama", factors=True, kv_heads=1),
    "llama-window": make("llama", window=3, kv_heads=4),
    "llama-experts": make("llama", experts=4, used=2, expert_ffn=12),
    "llama-bf16": make("llama", bf16=True, width=32, ffn=48, head=16),
    "llama-cache": make("llama", cache="q8_0", head=40, heads=2, kv_heads=1),
    "qwen2": make("qwen2", tied=True),
    "qwen3": make("qwen3", head=10),
    "qwen3-rank": make("qwen3", pooling=4, labels=2),
    "qwen3-answers": make("qwen3", pooling=4),
    "qwen2moe": make("qwen2moe", experts=4, used=2, expert_ffn=8, shared_ffn=12),
    "qwen3moe": make("qwen3moe", experts=5, used=3, expert_ffn=8),
    "gpt-oss": make("gpt-oss", experts=4, used=2, expert_ffn=8, window=3, scaling="yarn", factor=4.0, original=16, base=100.0, head=8),
    "smollm3": make("smollm3", layers=4, tied=True),
    "gemma": make("gemma"),
    "gemma2": make("gemma2", layers=3, window=4, attention_cap=3.0, final_cap=5.0),
    "gemma3": make("gemma3", layers=7, window=4, width=8, ffn=12, heads=2, kv_heads=1, scaling="linear", factor=8.0, base=5000.0),
    "phi3": make("phi3"),
    "phi3-long": make("phi3", scaling="longrope", attn_factor=1.2, original=64),
    "glm4": make("glm4", turned=4),
    "llama-quantised": make("llama", quantised=True, width=256, ffn=32, heads=2, kv_heads=1, head=32),
    "qwen3moe-quantised": make("qwen3moe", quantised=True, width=256, heads=2, kv_heads=1, head=32, experts=3, used=2, expert_ffn=32),
    "granite": make("granite", embedding_scale=3.0, residual_scale=0.5, attention_scale=0.3, logit_scale=2.0),
    "granitemoe": make("granitemoe", embedding_scale=2.0, residual_scale=0.6, attention_scale=0.2, logit_scale=3.0, experts=4, used=2, expert_ffn=8),
    "olmo2": make("olmo2"),
    "command-r": make("command-r", tied=True, logit_scale=0.6),
    "cohere2": make("cohere2", layers=4, tied=True, window=3, logit_scale=0.4),
    "exaone": make("exaone", factors=True),
    "internlm2": make("internlm2"),
    "starcoder2": make("starcoder2", tied=True, window=4),
    "nemotron": make("nemotron", turned=4),
    "gpt2": make("gpt2", kv_heads=4, head=4, tied=True, context=32),
    "stablelm": decoder("stablelm", turned=4, head=8),
    "stablelm-12b": decoder("stablelm", turned=2, head=4, each_norms=True, one_norm=True, parallel=True),
    "phi2": decoder("phi2", kv_heads=4, head=4, turned=2),
    "phi2-joined": decoder("phi2", kv_heads=4, head=4, turned=2, fused=True),
    "gptneox": decoder("gptneox", kv_heads=4, head=4, turned=2, parallel=True),
    "gptneox-serial": decoder("gptneox", kv_heads=4, head=4, parallel=False),
    "falcon": decoder("falcon", kv_heads=1, head=4, tied=True),
    "falcon-40b": decoder("falcon", kv_heads=2, head=4, two_norms=True),
    "bloom": decoder("bloom", heads=3, kv_heads=3, head=4, width=12, tied=True),
    "mpt": decoder("mpt", kv_heads=4, head=4, alibi=6.0, clamp=0.5, no_bias=True, tied=True),
    "mpt-learned": decoder("mpt", kv_heads=2, head=4, alibi=0.0, learned=True, all_norms=True, context=32),
    "olmo": decoder("olmo", clamp=0.6),
    "olmoe": decoder("olmoe", experts=5, used=2, expert_ffn=8),
    "minicpm": decoder("minicpm", embedding_scale=3.0, residual_scale=0.7, logit_scale=2.0),
    "minicpm-usual": decoder("minicpm"),
    "deepseek": decoder("deepseek", experts=5, used=2, expert_ffn=8, shared=2, dense=1, expert_scale=1.0),
    "deepseek2": decoder("deepseek2", kv_heads=1, head=12, value=8, key_mla=10, value_mla=6, still=6, own_value=6, turned=4, kv_rank=8, q_rank=10, layers=3,
                         experts=8, used=3, expert_ffn=8, shared=1, dense=1, groups=4, groups_used=2, gating=2, picked=True, norm=True, expert_scale=2.5,
                         scaling="yarn", factor=4.0, original=16, base=100.0, log_mul=0.1),
    "deepseek2-lite": decoder("deepseek2", kv_heads=4, head=10, value=6, still=6, own_value=6, turned=4, kv_rank=8, experts=4, used=2, expert_ffn=8, shared=2,
                              dense=1, expert_scale=1.0, scaling="yarn", factor=4.0, original=16, base=100.0, log_mul=0.0707),
    "deepseek2-eights": decoder("deepseek2", width=32, heads=2, kv_heads=1, head=36, value=32, key_mla=36, value_mla=32, still=32, own_value=32, turned=4, kv_rank=32,
                                experts=4, used=2, expert_ffn=32, shared=1, ffn=32, eights=True),
    "glm4moe": decoder("glm4moe", head=8, turned=4, layers=3, experts=5, used=2, expert_ffn=8, shared=1, dense=1, picked=True, norm=True, expert_scale=1.5,
                       head_norms=True, unread=1),
    "ernie4_5": decoder("ernie4_5", tied=True),
    "hunyuan-dense": decoder("hunyuan-dense"),
    "exaone4": decoder("exaone4", layers=4, window=3, tied=True),
    "exaone4-small": decoder("exaone4"),
    "seed_oss": decoder("seed_oss"),
    "gemma-embedding": make("gemma-embedding", layers=7, window=5, width=8, ffn=12, heads=2, kv_heads=1, base=5000.0, tokens=20, pooling=1, between=10),
    "bert": make_encoder("bert"),
    "bert-quantised": make_encoder("bert", quantised=True, width=256, layers=3, ffn=32, heads=1, kv_heads=1, head=32, pooling=1),
    "bert-rank": make_encoder("bert", pooling=4),
    "nomic-bert": make_encoder("nomic-bert", base=1000.0, tokens=20, pooling=1),
    "nomic-bert-long": make_encoder("nomic-bert", context=640, tokens=600, layers=1, types=1, pooling=3),
    "jina-bert-v2": make_encoder("jina-bert-v2", width=18, heads=3, kv_heads=3, head=6, tokens=20, pooling=1),
    "jina-bert-v2-norms": make_encoder("jina-bert-v2", qk_norms=True, fused=True, pooling=1),
}

if __name__ == "__main__":
    os.makedirs(sys.argv[1], exist_ok=True)
    for name, model in MODELS.items():
        write(model, os.path.join(sys.argv[1], name + ".gguf"))
