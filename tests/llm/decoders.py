"""More decoders for make_models.py: random weights, and logits by a plain forward pass in NumPy and f64, written from
the descriptions of the architectures. What a row says: ln: norms by mean and variance; bare: they have no weights;
pairs: neighbours rotate together, None: nothing rotates; fused: queries, keys and values are one matrix; plain: a
feed-forward part without a gate, by this function; parallel: both parts read the same x; norms: of a layer."""
import math

import numpy as np

erf = np.vectorize(math.erf)
silu = lambda x: x / (1 + np.exp(-x))
sigmoid = lambda x: 1 / (1 + np.exp(-x))
gelu_erf = lambda x: x / 2 * (1 + erf(x / math.sqrt(2)))
gelu = lambda x: 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))

TWO = ("attn_norm", "ffn_norm")
ROWS = {
    "stablelm": dict(ln=True, pairs=False, norms=TWO),
    "phi2": dict(ln=True, pairs=False, plain=gelu, parallel=True, biased=True, norms=("attn_norm",)),
    "gptneox": dict(ln=True, pairs=False, fused=True, plain=gelu_erf, parallel=True, biased=True, norms=TWO),
    "falcon": dict(ln=True, pairs=False, fused=True, plain=gelu_erf, parallel=True, norms=("attn_norm",)),
    "bloom": dict(ln=True, pairs=None, fused=True, plain=gelu, biased=True, norms=TWO),
    "mpt": dict(ln=True, pairs=None, fused=True, plain=gelu_erf, norms=TWO),
    "olmo": dict(ln=True, bare=True, pairs=True, norms=()),
    "olmoe": dict(pairs=False, all_norms=True, norms=TWO),
    "minicpm": dict(pairs=True, norms=TWO),
    "deepseek": dict(pairs=True, norms=TWO),
    "deepseek2": dict(pairs=True, norms=TWO),
    "glm4moe": dict(pairs=False, qkv_biased=True, norms=("attn_norm", "post_attention_norm")),
    "ernie4_5": dict(pairs=True, norms=TWO),
    "hunyuan-dense": dict(pairs=False, head_norms=True, late=True, norms=TWO),
    "exaone4": dict(pairs=False, head_norms=True, norms=("post_attention_norm", "post_ffw_norm"), post=True),
    "seed_oss": dict(pairs=False, qkv_biased=True, norms=("attn_norm", "post_attention_norm")),
}


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def slopes(heads, bias):
    n = 2 ** int(math.log2(heads))
    row = [2 ** (-bias / n * (i + 1)) for i in range(n)]
    return np.array(row + [2 ** (-bias / (2 * n) * (2 * i + 1)) for i in range(heads - n)])


class Pass:
    """One forward pass. turn(x, k): x (tokens, heads, size) at its positions."""

    def __init__(self, m, turn):
        self.w = {n: a.astype("f8") for n, a in m.w.items()}
        self.m, self.k, self.row, self.turn = m, m.k, ROWS[m.arch], turn

    def lin(self, name, x):
        return x @ self.w[name + ".weight"].T + self.w.get(name + ".bias", 0)

    def has(self, name):
        return name + ".weight" in self.w

    def scaled(self, x):
        if self.row.get("ln"):
            x = x - x.mean(-1, keepdims=True)
        return x / np.sqrt((x * x).mean(-1, keepdims=True) + self.k["eps"])

    def norm(self, name, x):
        return self.scaled(x) if self.row.get("bare") else self.scaled(x) * self.w[name + ".weight"] + self.w.get(name + ".bias", 0)

    def heads(self, p, x, still):
        k, row, n = self.k, self.row, len(x)
        H, K, D = k["heads"], k["kv_heads"], k["head"]
        if row.get("fused") or k.get("fused"):
            q, key, v = np.split(self.lin(p + "attn_qkv", x), [H * D, H * D + K * D], axis=1)
        else:
            q, key, v = (self.lin(p + "attn_" + c, x) for c in "qkv")
        if k.get("clamp"):
            q, key, v = (np.clip(t, -k["clamp"], k["clamp"]) for t in (q, key, v))
        whole = row.get("all_norms") or k.get("all_norms")
        if whole:
            q, key = self.norm(p + "attn_q_norm", q), self.norm(p + "attn_k_norm", key)
        q, key, v = q.reshape(n, H, D), key.reshape(n, K, D), v.reshape(n, K, D)
        turn = lambda t: t if still or row["pairs"] is None else self.turn(t, k, row["pairs"])
        norms = self.has(p + "attn_q_norm") and not whole
        if norms and not row.get("late"):
            q, key = self.norm(p + "attn_q_norm", q), self.norm(p + "attn_k_norm", key)
        q, key = turn(q), turn(key)
        if norms and row.get("late"):
            q, key = self.norm(p + "attn_q_norm", q), self.norm(p + "attn_k_norm", key)
        return q, np.repeat(key, H // K, 1), np.repeat(v, H // K, 1), 1 / math.sqrt(D)

    def latent(self, p, x):
        """Each head's own keys and values, whatever the file keeps."""
        k, n = self.k, len(x)
        H, R, T, S, V = k["heads"], k["kv_rank"], k["turned"], k["still"], k["own_value"]
        q = self.lin(p + "attn_q", x) if not k.get("q_rank") else self.lin(p + "attn_q_b", self.norm(p + "attn_q_a_norm", self.lin(p + "attn_q_a", x)))
        q = q.reshape(n, H, S + T)
        both = self.lin(p + "attn_kv_a_mqa", x)
        c, turned = self.norm(p + "attn_kv_a_norm", both[:, :R]), self.turn(both[:, None, R:], {**k, "scaling_length": 1}, True)
        if self.has(p + "attn_kv_b"):
            kv = self.lin(p + "attn_kv_b", c).reshape(n, H, S + V)
            key, v = kv[..., :S], kv[..., S:]
        else:
            key = np.einsum("nr,hrs->nhs", c, self.w[p + "attn_k_b.weight"])
            v = np.einsum("nr,hvr->nhv", c, self.w[p + "attn_v_b.weight"])
        q = np.concatenate((q[..., :S], self.turn(q[..., S:], k, True)), -1)
        key = np.concatenate((key, np.repeat(turned, H, 1)), -1)
        mscale = 1 + k.get("log_mul", 0) * math.log(k.get("factor", 1.0))
        return q, key, v, mscale * mscale / math.sqrt(S + T)

    def attention(self, i, x):
        k, n, p = self.k, len(x), f"blk.{i}."
        windowed = k.get("window") and not (self.m.arch == "exaone4" and i % 4 == 3)
        still = self.m.arch == "exaone4" and k.get("window") and not windowed
        q, key, v, scale = self.latent(p, x) if k.get("kv_rank") else self.heads(p, x, still)
        score = np.einsum("qhd,khd->hqk", q, key) * scale
        at, of = np.arange(n)[:, None], np.arange(n)[None]
        if self.m.arch == "bloom" or k.get("alibi"):
            score = score - slopes(k["heads"], k.get("alibi", 8.0))[:, None, None] * np.abs(at - of)
        hidden = (of > at) | (windowed and at - of >= k["window"] if windowed else False)
        y = np.einsum("hqk,khd->qhd", softmax(np.where(hidden, -np.inf, score)), v).reshape(n, -1)
        return self.lin(p + "attn_output", y)

    def experts(self, p, x):
        k, y = self.k, np.zeros_like(x)
        score = self.lin(p + "ffn_gate_inp", x)
        share = sigmoid(score) if k.get("gating", 2 if self.m.arch == "glm4moe" else 1) == 2 else softmax(score)
        for t in range(len(x)):
            pick = share[t] + self.w.get(p + "exp_probs_b.bias", 0)
            if k.get("groups", 1) > 1:
                groups = pick.reshape(k["groups"], -1)
                best = np.argsort(-np.sort(groups, 1)[:, -2:].sum(1), kind="stable")[: k["groups_used"]]
                pick = np.where(np.isin(np.arange(k["groups"]), best)[:, None], groups, -np.inf).reshape(-1)
            best = np.argsort(-pick, kind="stable")[: k["used"]]
            s = share[t][best]
            s = (s / s.sum() if k.get("norm") else s) * k.get("expert_scale", 1.0)
            for e, part in zip(best, s):
                one = lambda name, v: self.w[p + name + ".weight"][e] @ v
                y[t] += part * one("ffn_down_exps", silu(one("ffn_gate_exps", x[t])) * one("ffn_up_exps", x[t]))
        if self.has(p + "ffn_up_shexp"):
            y = y + self.lin(p + "ffn_down_shexp", silu(self.lin(p + "ffn_gate_shexp", x)) * self.lin(p + "ffn_up_shexp", x))
        return y

    def feed_forward(self, i, x):
        p = f"blk.{i}."
        if self.has(p + "ffn_gate_inp"):
            return self.experts(p, x)
        if self.row.get("plain"):
            return self.lin(p + "ffn_down", self.row["plain"](self.lin(p + "ffn_up", x)))
        return self.lin(p + "ffn_down", silu(self.lin(p + "ffn_gate", x)) * self.lin(p + "ffn_up", x))

    def layer(self, i, x):
        k, row, p = self.k, self.row, f"blk.{i}."
        parallel = k.get("parallel", row.get("parallel", False))
        by = k.get("residual_scale", 1.4 / math.sqrt(k["layers"]) if self.m.arch == "minicpm" else 1)
        a = self.norm(p + "attn_norm", x) if not row.get("post") else x
        y = self.attention(i, self.norm(p + "attn_norm_2", x) if self.has(p + "attn_norm_2") else a)
        if parallel:
            return x + y + self.feed_forward(i, self.norm(p + "ffn_norm", x) if self.has(p + "ffn_norm") else a)
        if row.get("post"):
            x = x + self.norm(p + "post_attention_norm", y)
            return x + self.norm(p + "post_ffw_norm", self.feed_forward(i, x))
        x = x + by * y
        inner = "ffn_norm" if "post_attention_norm" not in row["norms"] else "post_attention_norm"
        return x + by * self.feed_forward(i, self.norm(p + inner, x))

    def logits(self, ids):
        k, mini = self.k, self.m.arch == "minicpm"
        x = self.w["token_embd.weight"][ids] * k.get("embedding_scale", 12 if mini else 1)
        if "position_embd.weight" in self.w:
            x = x + self.w["position_embd.weight"][: len(ids)]
        if self.has("token_embd_norm"):
            x = self.norm("token_embd_norm", x)
        for i in range(k["layers"] - k.get("unread", 0)):
            x = self.layer(i, x)
        head = self.w.get("output.weight", self.w["token_embd.weight"])
        y = self.norm("output_norm", x) @ head.T + self.w.get("output.bias", 0)
        return y / k.get("logit_scale", k["width"] / 256 if mini else 1)


def make_decoder(m, vocabulary):
    k, row = m.k, ROWS[m.arch]
    k["eps"] = 1e-5
    d, f, q, kv = k["width"], k["ffn"], k["heads"] * k["head"], k["kv_heads"] * k["head"]
    vector = lambda name, n, about=1.0: m.add(name, *(n if isinstance(n, tuple) else (n,)), size=0.2, about=about, kind="<f4")
    biased = lambda name, n, is_: vector(name + ".bias", n, 0) if is_ else None
    norm = lambda name, n: (vector(name + ".weight", n), biased(name, n, row.get("ln") and not k.get("no_bias")))
    everywhere = row.get("biased")
    m.add("token_embd.weight", vocabulary, d)
    if not row.get("bare"):
        norm("output_norm", d)
    if not k.get("tied"):
        m.add("output.weight", vocabulary, d)
    biased("output", vocabulary, m.arch == "phi2")
    if m.arch == "bloom":
        norm("token_embd_norm", d)
    if k.get("learned"):
        m.add("position_embd.weight", k["context"], d)
    for i in range(k["layers"]):
        p = f"blk.{i}."
        matrix = lambda name, rows, columns, bias=False: (m.add(p + name + ".weight", rows, columns), biased(p + name, rows, bias))
        for name in row["norms"]:
            if not (name == "ffn_norm" and k.get("one_norm")):
                norm(p + name, d)
        if k.get("two_norms"):
            norm(p + "attn_norm_2", d)
        if k.get("kv_rank"):
            H, R, T, S, V = k["heads"], k["kv_rank"], k["turned"], k["still"], k["own_value"]
            if k.get("q_rank"):
                matrix("attn_q_a", k["q_rank"], d), vector(p + "attn_q_a_norm.weight", k["q_rank"]), matrix("attn_q_b", H * (S + T), k["q_rank"])
            else:
                matrix("attn_q", H * (S + T), d)
            matrix("attn_kv_a_mqa", R + T, d), vector(p + "attn_kv_a_norm.weight", R)
            if k.get("key_mla"):
                m.add(p + "attn_k_b.weight", H, R, S), m.add(p + "attn_v_b.weight", H, V, R)
            else:
                matrix("attn_kv_b", H * (S + V), R)
            matrix("attn_output", d, H * V)
        else:
            if row.get("fused") or k.get("fused"):
                matrix("attn_qkv", q + 2 * kv, d, everywhere)
            else:
                bias = everywhere or row.get("qkv_biased")
                matrix("attn_q", q, d, bias), matrix("attn_k", kv, d, bias), matrix("attn_v", kv, d, bias)
            matrix("attn_output", d, q, everywhere)
        if row.get("head_norms") or k.get("head_norms"):
            vector(p + "attn_q_norm.weight", k["head"]), vector(p + "attn_k_norm.weight", k["head"])
        if row.get("all_norms") or k.get("all_norms"):
            vector(p + "attn_q_norm.weight", q), vector(p + "attn_k_norm.weight", kv)
        if k.get("each_norms"):
            vector(p + "attn_q_norm.weight", (k["heads"], k["head"])), vector(p + "attn_k_norm.weight", (k["kv_heads"], k["head"]))
        if k.get("experts") and i >= k.get("dense", 0):
            e, g = k["experts"], k["expert_ffn"]
            m.add(p + "ffn_gate_inp.weight", e, d)
            if k.get("picked"):
                vector(p + "exp_probs_b.bias", e, 0)
            m.add(p + "ffn_gate_exps.weight", e, g, d), m.add(p + "ffn_up_exps.weight", e, g, d), m.add(p + "ffn_down_exps.weight", e, d, g)
            if k.get("shared"):
                s = g * k["shared"]
                matrix("ffn_gate_shexp", s, d), matrix("ffn_up_shexp", s, d), matrix("ffn_down_shexp", d, s)
            continue
        if not row.get("plain"):
            matrix("ffn_gate", f, d)
        matrix("ffn_up", f, d, everywhere), matrix("ffn_down", d, f, everywhere)
    if k.get("unread"):  # a layer that predicts further tokens has tensors of its own
        m.add(f"blk.{k['layers'] - 1}.nextn.eh_proj.weight", d, 2 * d)
    return m
