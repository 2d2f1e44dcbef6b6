"""Writes onnx.bin beside this file: small ONNX models with inputs and the outputs that onnx's reference evaluator gives. Needs the packages onnx and numpy.
Per case, numbers little-endian u32: length and bytes of the name, the model; count of inputs, then length and bytes of each; the same for outputs."""
import os, struct
import numpy as np
from onnx import TensorProto as T, helper as h, numpy_helper as nh
from onnx.reference import ReferenceEvaluator

rng = np.random.default_rng(7)
out = bytearray()
def block(b):
    out.extend(struct.pack("<I", len(b))); out.extend(b)
def case(name, nodes, feeds, outputs=("y",), inits=None, opset=17, raw=True):
    ins = [h.make_tensor_value_info(k, h.np_dtype_to_tensor_dtype(v.dtype), v.shape) for k, v in feeds.items()]
    init = [nh.from_array(v, k) if raw else h.make_tensor(k, h.np_dtype_to_tensor_dtype(v.dtype), v.shape, v.flatten().tolist()) for k, v in (inits or {}).items()]
    g = h.make_graph(nodes, "g", ins, [h.make_tensor_value_info(o, T.UNDEFINED, None) for o in outputs], init)
    m = h.make_model(g, opset_imports=[h.make_opsetid("", opset)], ir_version=8)
    want = ReferenceEvaluator(m).run(list(outputs), feeds)
    block(name.encode()); block(m.SerializeToString())
    out.extend(struct.pack("<I", len(feeds)))
    for k, v in feeds.items(): block(nh.from_array(v, k).SerializeToString())
    out.extend(struct.pack("<I", len(want)))
    for k, v in zip(outputs, want): block(nh.from_array(np.asarray(v), k).SerializeToString())
def one(op, feeds, opset=17, inits=None, outs=("y",), tag="", raw=True, **attrs):
    case(f"{op}{tag}-{opset}", [h.make_node(op, list(feeds) + list(inits or {}), list(outs), **attrs)], feeds, outs, inits, opset, raw)
f = lambda *s: rng.standard_normal(s).astype(np.float32)
i64 = lambda *v: np.array(v, np.int64)
pos = lambda *s: np.abs(f(*s)) + np.float32(0.25)

for op in "Abs Neg Exp Floor Ceil Round Sin Cos Tan Atan Sinh Cosh Asinh Tanh Erf Sign Relu Sigmoid Softplus Softsign Elu Celu Selu LeakyRelu HardSigmoid HardSwish ThresholdedRelu IsNaN Identity".split():
    one(op, {"x": f(3, 5)})
for op in "Log Sqrt Reciprocal".split(): one(op, {"x": pos(2, 7)})
for op in "Asin Acos Atanh".split(): one(op, {"x": np.tanh(f(6))})
one("Acosh", {"x": pos(6) + 1})
one("Mish", {"x": f(5)}, 18)
one("Gelu", {"x": f(9)}, 20); one("Gelu", {"x": f(9)}, 20, tag="-tanh", approximate="tanh")
for op in "Add Sub Mul Div".split(): one(op, {"a": f(2, 3, 1), "b": pos(3, 4)})
for op in "Less Greater Equal LessOrEqual GreaterOrEqual".split(): one(op, {"a": rng.integers(0, 3, (3, 4)).astype(np.int32), "b": rng.integers(0, 3, (4,)).astype(np.int32)})
for op in "And Or Xor".split(): one(op, {"a": rng.integers(0, 2, (3, 4)).astype(bool), "b": rng.integers(0, 2, (4,)).astype(bool)})
one("Not", {"x": np.array([True, False])})
one("Pow", {"a": pos(3, 4), "b": f(4)})
one("Mod", {"a": i64(-7, 7, 8, -8), "b": i64(3, -3, 3, -3)}); one("Mod", {"a": f(4), "b": pos(4)}, tag="-f", fmod=1)
one("PRelu", {"x": f(2, 3, 4), "s": f(3, 1)})
one("Where", {"c": np.array([[True], [False]]), "a": f(2, 3), "b": f(3)})
one("Max", {"a": f(3, 2), "b": f(2), "c": f(3, 1)}); one("Min", {"a": f(4), "b": f(4)}); one("Sum", {"a": f(4), "b": f(4), "c": f(1)}); one("Mean", {"a": f(4), "b": f(4)})
one("Cast", {"x": f(6) * 9}, to=T.INT32); one("Cast", {"x": f(6)}, tag="-f16", to=T.FLOAT16)
one("Clip", {"x": f(3, 4)}, inits={"lo": np.float32(-0.5), "hi": np.float32(0.4)}); one("Clip", {"x": f(8)}, 7, min=-0.3, max=0.6)
one("IsInf", {"x": np.array([1, np.inf, -np.inf], np.float32)})
for op in "Softmax LogSoftmax Hardmax".split(): one(op, {"x": f(2, 3, 4)}, axis=1); one(op, {"x": f(2, 5)}, tag="-last")
for op in "ReduceSum ReduceMean ReduceMax ReduceMin ReduceProd ReduceL1 ReduceL2 ReduceSumSquare ReduceLogSumExp".split(): one(op, {"x": f(3, 2, 4)}, 18, inits={"axes": i64(0, -1)}, keepdims=0)
one("ReduceMean", {"x": f(3, 2, 4)}, 13, axes=[1]); one("ReduceLogSum", {"x": pos(3, 4)}, 18, inits={"axes": i64(1)})
one("ReduceSum", {"x": rng.integers(-9, 9, (3, 4)).astype(np.int32)}, tag="-i32", inits={"axes": i64(1)})
one("ArgMax", {"x": f(3, 5)}, axis=1); one("ArgMin", {"x": f(3, 5)}, axis=0, keepdims=0); one("ArgMax", {"x": np.array([[1, 1, 0]], np.float32)}, tag="-last", axis=1, select_last_index=1)
for e in (0, 1):
    for r in (0, 1): one("CumSum", {"x": f(2, 5)}, tag=f"-{e}{r}", inits={"axis": np.int64(1)}, exclusive=e, reverse=r)
one("Reshape", {"x": f(2, 3, 4)}, inits={"s": i64(0, -1)}); one("Transpose", {"x": f(2, 3, 4)}, perm=[2, 0, 1]); one("Transpose", {"x": f(2, 3)}, tag="-all"); one("Flatten", {"x": f(2, 3, 4)}, axis=2)
one("Squeeze", {"x": f(1, 3, 1)}, inits={"a": i64(0)}); one("Squeeze", {"x": f(1, 3, 1)}, 11, axes=[2]); one("Unsqueeze", {"x": f(3, 4)}, inits={"a": i64(-1, 0)}); one("Unsqueeze", {"x": f(3)}, 11, axes=[0])
one("Concat", {"a": f(2, 3), "b": f(2, 1)}, axis=1); one("Split", {"x": f(5, 2)}, outs=("y", "z"), inits={"s": i64(2, 3)}); one("Split", {"x": f(7)}, 18, outs=("y", "z", "w"), num_outputs=3)
one("Slice", {"x": f(5, 6)}, inits={"b": i64(1, -1), "e": i64(9, -100), "a": i64(0, 1), "s": i64(2, -2)})
one("Gather", {"x": f(4, 3), "i": np.array([[0, -1], [2, 2]], np.int64)}, axis=0); one("Gather", {"x": f(2, 4, 3), "i": np.int64(-2)}, tag="-scalar", axis=1)
one("GatherElements", {"x": f(3, 3), "i": np.array([[0, -1, 1], [2, 0, 0]], np.int64)}, axis=0); one("GatherND", {"x": f(2, 3, 4), "i": np.array([[0, 1], [-1, 2]], np.int64)})
one("ScatterElements", {"x": f(3, 3), "i": np.array([[0, 2, 1]], np.int64), "u": f(1, 3)}, axis=0); one("ScatterElements", {"x": f(1, 5), "i": np.array([[1, 1]], np.int64), "u": f(1, 2)}, 18, tag="-add", axis=1, reduction="add")
one("ScatterND", {"x": f(4, 3), "i": np.array([[3], [0]], np.int64), "u": f(2, 3)}); one("ScatterND", {"x": f(4, 3), "i": np.array([[3, 1], [3, 1]], np.int64), "u": f(2)}, 18, tag="-max", reduction="max")
one("Expand", {"x": f(3, 1)}, inits={"s": i64(2, 1, 4)}); one("Tile", {"x": f(2, 3)}, inits={"r": i64(2, 3)}); one("Trilu", {"x": f(4, 5)}, inits={"k": np.int64(-1)}, upper=0)
for mode in ("constant", "reflect", "edge"): one("Pad", {"x": f(3, 4)}, tag="-" + mode, inits={"p": i64(1, 2, 0, 1)}, mode=mode)
one("Pad", {"x": f(3, 4)}, 19, tag="-wrap", inits={"p": i64(1, 2, 0, 1)}, mode="wrap")
one("Shape", {"x": f(2, 3, 4)}, start=1); one("Size", {"x": f(2, 3)}); one("ConstantOfShape", {}, inits={"s": i64(2, 3)}, value=nh.from_array(np.array([5], np.int32)))
one("Range", {"a": np.float32(1), "b": np.float32(3), "c": np.float32(0.5)}); one("EyeLike", {"x": f(3, 4)}, k=1)
one("OneHot", {"i": i64(0, -1, 2)}, inits={"d": np.int64(4), "v": np.array([2, 5], np.float32)}, axis=0)
one("TopK", {"x": f(3, 6)}, inits={"k": i64(2)}, outs=("y", "z"), axis=1); one("NonZero", {"x": np.array([[1, 0, 2], [0, 3, 0]], np.float32)}); one("Compress", {"x": f(3, 4)}, inits={"c": np.array([True, False, True])}, axis=1)
one("DepthToSpace", {"x": f(1, 8, 2, 3)}, blocksize=2); one("DepthToSpace", {"x": f(1, 8, 2, 3)}, tag="-crd", blocksize=2, mode="CRD"); one("SpaceToDepth", {"x": f(1, 2, 4, 6)}, blocksize=2)
one("MatMul", {"a": f(2, 3, 4), "b": f(4, 5)}); one("Gemm", {"a": f(4, 3), "b": f(5, 4), "c": f(5)}, transA=1, transB=1, alpha=0.5, beta=2.0); one("Einsum", {"a": f(2, 3), "b": f(3, 4)}, equation="ij,jk->ki")
one("Conv", {"x": f(1, 4, 7, 8), "w": f(6, 2, 3, 3), "b": f(6)}, group=2, strides=[2, 1], pads=[1, 0, 2, 1]); one("Conv", {"x": f(1, 2, 9), "w": f(3, 2, 3)}, tag="-1d", dilations=[2]); one("Conv", {"x": f(1, 1, 5, 5), "w": f(1, 1, 2, 2)}, tag="-same", auto_pad="SAME_UPPER", strides=[2, 2])
one("ConvTranspose", {"x": f(1, 2, 3, 4), "w": f(2, 3, 3, 3)}, strides=[2, 2], pads=[1, 0, 0, 1], output_padding=[1, 0])
one("MaxPool", {"x": f(1, 2, 7, 7)}, kernel_shape=[3, 2], strides=[2, 2], pads=[1, 0, 1, 1]); one("MaxPool", {"x": f(1, 1, 8)}, tag="-1d", kernel_shape=[3]); one("AveragePool", {"x": f(1, 2, 6, 6)}, kernel_shape=[3, 3], pads=[1, 1, 1, 1]); one("AveragePool", {"x": f(1, 2, 6, 6)}, tag="-count", kernel_shape=[3, 3], pads=[1, 1, 1, 1], count_include_pad=1)
one("GlobalAveragePool", {"x": f(2, 3, 4, 5)}); one("GlobalMaxPool", {"x": f(2, 3, 4, 2)})
one("BatchNormalization", {"x": f(2, 3, 4), "s": f(3), "b": f(3), "m": f(3), "v": pos(3)}); one("InstanceNormalization", {"x": f(2, 3, 5), "s": f(3), "b": f(3)}); one("LayerNormalization", {"x": f(2, 3, 5), "s": f(3, 5), "b": f(3, 5)}, axis=1)
one("GroupNormalization", {"x": f(2, 4, 3), "s": f(4), "b": f(4)}, 21, num_groups=2); one("LRN", {"x": f(5, 5, 2, 1)}, size=3, alpha=0.01); one("RMSNormalization", {"x": f(2, 5), "s": f(5)}, 23)
for mode in ("nearest", "linear", "cubic"):
    for ct in ("half_pixel", "asymmetric", "align_corners"): one("Resize", {"x": f(1, 1, 3, 4)}, tag=f"-{mode}-{ct}", inits={"r": np.array([], np.float32), "s": np.array([1, 1, 2, 1.5], np.float32)}, mode=mode, coordinate_transformation_mode=ct)
one("QuantizeLinear", {"x": f(3, 4) * 40}, 21, inits={"s": np.float32(0.5), "z": np.uint8(100)}); one("DequantizeLinear", {"x": rng.integers(0, 255, (2, 3)).astype(np.uint8)}, 21, inits={"s": np.array([0.5, 2, 1], np.float32), "z": np.array([1, 2, 3], np.uint8)}, axis=1)
one("Dropout", {"x": f(4)}); one("Shrink", {"x": f(6)}, lambd=0.4, bias=0.1); one("BitShift", {"a": np.array([1, 6], np.uint8), "b": np.array([3, 1], np.uint8)}, direction="LEFT")
one("Add", {"x": f(2, 3)}, tag="-typed", inits={"b": f(3)}, raw=False); one("Add", {"x": rng.integers(0, 9, 3).astype(np.int16)}, tag="-typed16", inits={"b": np.array([-5, 6, 7], np.int16)}, raw=False)

n = h.make_node
case("mlp", [n("Gemm", ["x", "w1", "b1"], ["a"], transB=1), n("Relu", ["a"], ["r"]), n("MatMul", ["r", "w2"], ["m"]), n("Add", ["m", "b2"], ["l"]), n("Softmax", ["l"], ["y"])],
     {"x": f(4, 8)}, inits={"w1": f(16, 8), "b1": f(16), "w2": f(16, 3), "b2": f(3)})
case("cnn", [n("Conv", ["x", "w", "b"], ["c"], pads=[1, 1, 1, 1]), n("BatchNormalization", ["c", "s", "t", "m", "v"], ["bn"]), n("Relu", ["bn"], ["r"]), n("MaxPool", ["r"], ["p"], kernel_shape=[2, 2], strides=[2, 2]),
             n("Shape", ["p"], ["sh"]), n("Gather", ["sh", "zero"], ["n0"]), n("Unsqueeze", ["n0", "ax"], ["n1"]), n("Concat", ["n1", "minus"], ["to"], axis=0), n("Reshape", ["p", "to"], ["fl"]), n("MatMul", ["fl", "f"], ["y"])],
     {"x": f(2, 1, 8, 8)}, inits={"w": f(4, 1, 3, 3), "b": f(4), "s": f(4), "t": f(4), "m": f(4), "v": pos(4), "zero": np.int64(0), "ax": i64(0), "minus": i64(-1), "f": f(64, 5)})
branch = lambda op: h.make_graph([n(op, ["x", "two"], ["o"])], "b", [], [h.make_tensor_value_info("o", T.FLOAT, None)])
case("if", [n("Shape", ["x"], ["s"]), n("Gather", ["s", "zero"], ["d"]), n("Equal", ["d", "three"], ["c"]), n("If", ["c"], ["y"], then_branch=branch("Mul"), else_branch=branch("Add"))],
     {"x": f(3)}, inits={"zero": np.int64(0), "three": np.int64(3), "two": np.float32(2)})
with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "onnx.bin"), "wb") as file: file.write(out)
print(len(out))
