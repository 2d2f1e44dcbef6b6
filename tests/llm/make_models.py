#!/usr/bin/env python3
"""Writes tests/goldens/llm/*.gguf: tiny models with random weights, one for each architecture and each scaling of
positions, and what they say. The key-values test.ids and test.logits are tokens, and the logits after each of them
by a plain forward pass in NumPy, in f64, written from the descriptions of the architectures: no cache, no blocks.

    python3 tests/llm/make_models.py tests/goldens/llm
"""
import math
import os
import struct
import sys

import numpy as np

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
    every = {"gemma2": 2, "gemma3": 6, "gpt-oss": 2, "cohere2": 4}.get(m.arch)
    windowed = k.get("window") and not (every and i % every == every - 1)
    still = m.arch in ("smollm3", "cohere2") and i % 4 == 3
    if m.arch != "gpt2" and not still:
        pairs = m.arch in ("llama", "glm4", "smollm3", "granite", "granitemoe", "command-r", "cohere2", "internlm2")
        if m.arch == "gemma3" and windowed:
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
    score = np.where(hidden, -np.inf, score)
    if p + "attn_sinks.weight" in w:  # a key more, of which nothing comes
        sink = np.broadcast_to(w[p + "attn_sinks.weight"][:, None, None], (H, n, 1))
        score = np.concatenate((score, sink), -1)
    y = np.einsum("hqk,khd->qhd", softmax(score)[..., :n], v).reshape(n, H * D)
    return lin("attn_output", y)


def feed_forward(m, w, x, i):
    k, p = m.k, f"blk.{i}."
    act = gelu if m.arch in ("gemma", "gemma2", "gemma3", "gpt2", "starcoder2") else silu
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
        if arch in ("qwen3", "qwen3moe", "gemma3"):
            vector(p + "attn_q_norm.weight", k["head"]), vector(p + "attn_k_norm.weight", k["head"])
        if arch == "olmo2":
            vector(p + "attn_q_norm.weight", q), vector(p + "attn_k_norm.weight", kv)
        if arch in ("gemma2", "gemma3", "glm4", "olmo2"):
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
    if k.get("quantised"):
        quantise(m)
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
    return struct.pack("<Q", len(s)) + s.encode()


def write(m, path):
    k, a, kv = m.k, m.arch, []
    ids = m.random.integers(0, VOCABULARY, TOKENS)
    logits = forward(m, ids).astype("<f4")
    whole = lambda key, v: kv.append(text(key) + struct.pack("<II", 4, v))
    real = lambda key, v: kv.append(text(key) + struct.pack("<If", 6, v))
    words = lambda key, v: kv.append(text(key) + struct.pack("<I", 8) + text(v))
    words("general.architecture", a)
    names = {"width": "embedding_length", "layers": "block_count", "heads": "attention.head_count", "ffn": "feed_forward_length",
             "kv_heads": "attention.head_count_kv", "head": "attention.key_length", "context": "context_length",
             "turned": "rope.dimension_count", "window": "attention.sliding_window", "experts": "expert_count",
             "used": "expert_used_count", "expert_ffn": "expert_feed_forward_length",
             "shared_ffn": "expert_shared_feed_forward_length", "original": "rope.scaling.original_context_length"}
    reals = {"base": "rope.freq_base", "factor": "rope.scaling.factor", "attn_factor": "rope.scaling.attn_factor",
             "attention_cap": "attn_logit_softcapping", "final_cap": "final_logit_softcapping",
             "embedding_scale": "embedding_scale", "residual_scale": "residual_scale", "attention_scale": "attention.scale",
             "logit_scale": "logit_scale", "eps": "attention.layer_norm_epsilon" if a in LAYER_NORMED else "attention.layer_norm_rms_epsilon"}
    for key, v in k.items():
        if key in names:
            whole(f"{a}.{names[key]}", v)
        if key in reals:
            real(f"{a}.{reals[key]}", v)
    if k.get("scaling"):
        words(f"{a}.rope.scaling.type", k["scaling"])
    kv.append(text("test.ids") + struct.pack("<IIQ", 9, 5, len(ids)) + ids.astype("<i4").tobytes())
    kv.append(text("test.logits") + struct.pack("<IIQ", 9, 6, logits.size) + logits.tobytes())
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
    "llama-cache": make("llama", cache="q8_0", head=40, heads=2, kv_heads=1),
    "qwen2": make("qwen2", tied=True),
    "qwen3": make("qwen3", head=10),
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
}

if __name__ == "__main__":
    os.makedirs(sys.argv[1], exist_ok=True)
    for name, model in MODELS.items():
        write(model, os.path.join(sys.argv[1], name + ".gguf"))
