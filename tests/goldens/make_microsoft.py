"""Writes microsoft.bin beside this file: models of one operator of com.microsoft each, with inputs and the outputs that onnxruntime gives. Needs
the packages onnx, onnxruntime and numpy. The format is that of make_onnx.py."""
import os, struct
import numpy as np
import onnxruntime as ort
from onnx import helper as h, numpy_helper as nh

rng = np.random.default_rng(11)
out = bytearray()
def block(b):
    out.extend(struct.pack("<I", len(b))); out.extend(b)
def case(op, inputs, outs=("y",), tag="", opset=17, domain="com.microsoft", **attrs):
    """inputs: (name, array), or None where one is left out"""
    given = [i for i in inputs if i]
    value = lambda k, v: h.make_tensor_value_info(k, h.np_dtype_to_tensor_dtype(v.dtype), v.shape)
    node = h.make_node(op, [i[0] if i else "" for i in inputs], list(outs), domain=domain, **attrs)
    g = h.make_graph([node], "g", [value(*i) for i in given], [h.make_empty_tensor_value_info(o) for o in outs if o], [])
    m = h.make_model(g, opset_imports=[h.make_opsetid("", opset), h.make_opsetid("com.microsoft", 1)], ir_version=8)
    names = [o for o in outs if o]
    try: want = ort.InferenceSession(m.SerializeToString(), providers=["CPUExecutionProvider"]).run(names, dict(given))
    except Exception as e: print("left out:", op, tag, str(e)[:150]); return
    block(f"microsoft {op}{tag}-{opset}".encode()); block(m.SerializeToString())
    out.extend(struct.pack("<I", len(given)))
    for k, v in given: block(nh.from_array(v, k).SerializeToString())
    out.extend(struct.pack("<I", len(want)))
    for k, v in zip(names, want): block(nh.from_array(np.asarray(v), k).SerializeToString())
f = lambda *s: rng.standard_normal(s).astype(np.float32)
i32 = lambda *v: np.array(v, np.int32)

# ---- activations, norms, products
x = f(3, 8)
case("FastGelu", [("x", x), ("b", f(8))]); case("FastGelu", [("x", x)], tag="-plain"); case("QuickGelu", [("x", x)], alpha=1.3); case("BiasGelu", [("x", x), ("b", f(8))]); case("Gelu", [("x", x)])
s, k, g, b = f(2, 3, 8), f(2, 3, 8), f(8), f(8)
case("SkipLayerNormalization", [("x", s), ("s", k), ("g", g), ("b", b), ("c", f(8))], ("y", "", "", "z"), epsilon=1e-5)
case("SkipLayerNormalization", [("x", s), ("s", k), ("g", g)], tag="-plain")
case("SkipSimplifiedLayerNormalization", [("x", s), ("s", k), ("g", g), ("c", f(8))], ("y", "", "", "z"), epsilon=1e-5)
case("SimplifiedLayerNormalization", [("x", s), ("g", g)], domain="", epsilon=1e-5)
word, place, seg = f(11, 8), f(6, 8), f(2, 8)
ids, segs = rng.integers(0, 11, (2, 4)).astype(np.int32), rng.integers(0, 2, (2, 4)).astype(np.int32)
case("EmbedLayerNormalization", [("i", ids), ("g", segs), ("w", word), ("p", place), ("s", seg), ("a", g), ("b", b), ("m", i32([1, 1, 1, 0], [1, 1, 0, 0]))], ("y", "n", "e"))
case("EmbedLayerNormalization", [("i", ids), None, ("w", word), ("p", place), None, ("a", g), ("b", b), None, ("at", i32([3, 2, 1, 0], [5, 4, 0, 1]))], ("y", "n"), tag="-plain")
case("FusedMatMul", [("a", f(2, 4, 3)), ("b", f(2, 5, 4))], transA=1, transB=1, alpha=0.5); case("FusedMatMul", [("a", f(3, 4)), ("b", f(4, 2))], tag="-plain")
for act in ("Relu", "Tanh", "Sigmoid"): case("FusedGemm", [("a", f(3, 4)), ("b", f(5, 4)), ("c", f(5))], tag="-" + act, transB=1, activation=act)
case("FusedGemm", [("a", f(3, 4)), ("b", f(4, 5)), ("c", f(5))], tag="-LeakyRelu", activation="LeakyRelu", activation_alpha=0.3)

# ---- attention
B, S, N, D = 2, 5, 3, 4
H = N * D
x, w, wb = f(B, S, 8), f(8, 3 * H), f(3 * H)
case("Attention", [("x", x), ("w", w), ("b", wb)], num_heads=N); case("Attention", [("x", x), ("w", w), ("b", wb)], opset=23, num_heads=N)
case("Attention", [("x", x), ("w", w), ("b", wb)], tag="-causal", num_heads=N, unidirectional=1, scale=0.3)
case("Attention", [("x", x), ("w", f(8, 2 * H + 6)), ("b", f(2 * H + 6))], tag="-sizes", num_heads=N, qkv_hidden_sizes=[H, H, 6])
mask2 = i32([1, 1, 1, 1, 0], [0, 1, 1, 0, 0])
for tag, m in {"lens": i32(3, 5), "ends": i32(4, 5, 1, 0), "keys": mask2, "pairs": rng.integers(0, 2, (B, S, S)).astype(np.int32), "none": i32([0] * 5, [1] * 5)}.items():
    case("Attention", [("x", x), ("w", w), ("b", wb), ("m", m)], tag="-" + tag, num_heads=N)
case("Attention", [("x", x), ("w", w), ("b", wb), ("m", mask2)], tag="-filter", num_heads=N, mask_filter_value=-2.0)
P = 2
case("Attention", [("x", x), ("w", w), ("b", wb), None, ("p", f(2, B, N, P, D))], ("y", "z"), tag="-past", num_heads=N, unidirectional=1)
case("Attention", [("x", x), ("w", w), ("b", wb), ("m", np.concatenate([i32([0, 1], [1, 1]), mask2], 1)), ("p", f(2, B, N, P, D))], ("y", "z"), tag="-all", num_heads=N)
case("Attention", [("x", x), ("w", w), ("b", wb), ("m", mask2), None, ("e", f(1, N, S, S))], tag="-bias", num_heads=N)
q, kk, vv = f(B, S, H), f(B, 4, H), f(B, 4, N * 6)
case("MultiHeadAttention", [("q", q), ("k", kk), ("v", vv)], num_heads=N)
case("MultiHeadAttention", [("q", q), ("k", kk), ("v", vv), ("b", f(2 * H + N * 6)), ("m", i32([1, 1, 0, 1], [1, 0, 0, 0])), ("e", f(B, 1, S, 4))], tag="-all", num_heads=N, scale=0.4)
case("MultiHeadAttention", [("q", q), ("k", f(B, S, H)), ("v", f(B, S, H)), None, ("m", i32(4, 2))], tag="-lens", num_heads=N)
case("MultiHeadAttention", [("q", q), ("k", f(B, N, 4, D)), ("v", f(B, N, 4, D))], tag="-crossed", num_heads=N)
case("MultiHeadAttention", [("q", q), ("k", f(B, S, H)), ("v", f(B, S, H)), None, None, None, ("pk", f(B, N, P, D)), ("pv", f(B, N, P, D))], ("y", "nk", "nv"), tag="-past", num_heads=N, unidirectional=1)
G = 2   # heads of keys that two of queries share
cos, sin = f(16, D // 2), f(16, D // 2)
case("GroupQueryAttention", [("q", f(1, S, 64)), ("k", f(1, S, 32)), ("v", f(1, S, 32)), None, None, ("l", i32(S - 1)), ("t", i32(S)), ("c", f(16, 8)), ("s", f(16, 8))], ("y", "nk", "nv"), num_heads=4, kv_num_heads=G, do_rotary=1)
for tag, a in {"": {}, "-inner": {"interleaved": 1}}.items():
    case("RotaryEmbedding", [("x", f(B, N, S, D)), ("p", np.array([[0, 3, 1, 7, 9], [2, 2, 4, 5, 6]], np.int64)), ("c", cos), ("s", sin)], tag=tag, **a)
    case("RotaryEmbedding", [("x", f(B, S, H)), ("p", np.array([2], np.int64)), ("c", cos), ("s", sin)], tag=tag + "-flat", opset=23, **a)
case("RotaryEmbedding", [("x", f(B, S, N * 6)), ("p", np.array([1], np.int64)), ("c", cos), ("s", sin)], tag="-part", num_heads=N, rotary_embedding_dim=D)

# ---- quantised. The scales are such that no value lies half way between two numbers: who rounds first would decide it.
u8 = lambda *s: rng.integers(0, 256, s).astype(np.uint8)
i8 = lambda *s: rng.integers(-128, 128, s).astype(np.int8)
F = lambda v: np.array(v, np.float32)
case("QLinearAdd", [("a", u8(3, 8)), ("as", F(.1013)), ("az", np.array(120, np.uint8)), ("b", u8(8)), ("bs", F(.0711)), ("bz", np.array(7, np.uint8)), ("ys", F(.2017)), ("yz", np.array(99, np.uint8))])
case("QLinearAdd", [("a", i8(3, 8)), ("as", F(.1013)), ("az", np.array(3, np.int8)), ("b", i8(3, 8)), ("bs", F(.0711)), ("bz", np.array(-7, np.int8)), ("ys", F(.2017)), ("yz", np.array(0, np.int8))], tag="-i8")
case("QLinearMul", [("a", u8(3, 8)), ("as", F(.1013)), ("az", np.array(120, np.uint8)), ("b", u8(3, 1)), ("bs", F(.0711)), ("bz", np.array(7, np.uint8)), ("ys", F(1.3019)), ("yz", np.array(99, np.uint8))])
case("QLinearSigmoid", [("a", u8(40)), ("as", F(.0517)), ("az", np.array(120, np.uint8)), ("ys", F(.004)), ("yz", np.array(3, np.uint8))]); case("QLinearLeakyRelu", [("a", i8(40)), ("as", F(.1013)), ("az", np.array(-9, np.int8)), ("ys", F(.0907)), ("yz", np.array(5, np.int8))], alpha=0.2)
case("QLinearGlobalAveragePool", [("a", u8(2, 3, 4, 5)), ("as", F(.1013)), ("az", np.array(120, np.uint8)), ("ys", F(.0307)), ("yz", np.array(130, np.uint8))])
case("QLinearGlobalAveragePool", [("a", u8(2, 4, 5, 3)), ("as", F(.1013)), ("az", np.array(120, np.uint8)), ("ys", F(.0307)), ("yz", np.array(130, np.uint8))], tag="-last", channels_last=1)
case("QLinearConcat", [("ys", F(.1013)), ("yz", np.array(100, np.uint8)), ("a", u8(2, 3)), ("as", F(.2017)), ("az", np.array(90, np.uint8)), ("b", u8(2, 2)), ("bs", F(.0517)), ("bz", np.array(130, np.uint8))], axis=1)
case("DynamicQuantizeMatMul", [("a", f(3, 8)), ("b", i8(8, 5)), ("s", F(.02)), ("z", np.array(4, np.int8)), ("c", f(5))]); case("DynamicQuantizeMatMul", [("a", f(2, 3, 8)), ("b", u8(8, 5)), ("s", np.abs(f(5))), ("z", u8(5))], tag="-columns")
case("MatMulIntegerToFloat", [("a", u8(3, 8)), ("b", i8(8, 5)), ("as", F(.0307)), ("bs", F(.02)), ("az", np.array(128, np.uint8)), ("bz", np.array(-3, np.int8)), ("c", f(5))])

with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "microsoft.bin"), "wb") as file: file.write(out)
print(len(out), "bytes")
