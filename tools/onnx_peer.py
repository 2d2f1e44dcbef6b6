"""Operators of ONNX at usual sizes: `tg run --bench` beside ONNX Runtime, one thread each. For each case a line with the least microseconds of
both, and how many times as long ONNX Runtime takes; worst last.  onnx_peer.py [--tg build/tg] [--json] [CASE]..    Needs onnx, onnxruntime, numpy.
A model has one node. Both get random inputs of the same kind and are timed by turns of 40 runs at most; a difference of 10 % says nothing."""
import argparse
import json
import os
import subprocess
import tempfile
import time
import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto as T, helper, numpy_helper

parser = argparse.ArgumentParser()
parser.add_argument("--tg", default="build/tg")
parser.add_argument("--json", action="store_true")
parser.add_argument("wanted", nargs="*")
options = parser.parse_args()
random = np.random.default_rng(1)
cases = {}
F32, F64, I64, I32, I8, U8, BOOL = T.FLOAT, T.DOUBLE, T.INT64, T.INT32, T.INT8, T.UINT8, T.BOOL
numpy_of = {"tensor(float)": np.float32, "tensor(double)": np.float64, "tensor(int64)": np.int64, "tensor(int32)": np.int32,
            "tensor(uint8)": np.uint8, "tensor(bool)": np.bool_}


def case(name, op, inputs, constants=(), out=F32, outputs=1, opset=21, **attributes):
    """inputs: shapes, of f32 unless (shape, type); constants follow them, None: left out."""
    cases[name] = (op, [i if isinstance(i[0], tuple) else (i, F32) for i in inputs], constants, out, outputs, opset,
                   attributes)


def model_of(name):
    op, inputs, constants, out, outputs, opset, attributes = cases[name]
    values = [helper.make_tensor_value_info(f"x{i}", kind, shape) for i, (shape, kind) in enumerate(inputs)]
    given = [numpy_helper.from_array(np.asarray(c), f"c{i}") for i, c in enumerate(constants) if c is not None]
    names = [v.name for v in values] + ["" if c is None else f"c{i}" for i, c in enumerate(constants)]
    kinds = out if isinstance(out, list) else [out] * outputs
    made = [helper.make_tensor_value_info(f"y{i}", kind, None) for i, kind in enumerate(kinds)]
    node = helper.make_node(op, names, [v.name for v in made], **attributes)
    graph = helper.make_graph([node], name, values, made, given)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)


def normal(*dims):
    return random.standard_normal(dims).astype(np.float32)


def whole(*numbers):
    return np.array(numbers, dtype=np.int64)


def conv(name, channels, side, filters, kernel, stride=1, group=1, dilation=1):
    pad = dilation * (kernel // 2)
    case(name, "Conv", [(1, channels, side, side)], [normal(filters, channels // group, kernel, kernel) * .1, normal(filters)],
         kernel_shape=[kernel, kernel], strides=[stride, stride], pads=[pad] * 4, group=group, dilations=[dilation, dilation])


SQUARE = (1000, 1000)
for op in ("Exp Tanh Sigmoid Erf Gelu Softplus Mish HardSwish Sin Atan Log Sqrt Floor Round Reciprocal Elu Sign Abs LeakyRelu Tan").split():
    case(op.lower(), op, [SQUARE])
case("add", "Add", [SQUARE, SQUARE])
case("add-row", "Add", [SQUARE, (1000,)])
case("pow-3", "Pow", [SQUARE], [np.float32(3)])
case("pow", "Pow", [SQUARE, SQUARE])
case("clip", "Clip", [SQUARE], [np.float32(0), np.float32(6)])
case("where", "Where", [(SQUARE, BOOL), SQUARE, (1000, 1)])
case("cast-i32", "Cast", [SQUARE], out=I32, to=I32)
case("div-i64", "Div", [(SQUARE, I64), (SQUARE, I64)], out=I64)
for axis, along in ((1, "rows"), (0, "columns")):
    for op in "ReduceSum ReduceMax ReduceL2 ReduceLogSumExp".split():
        case(f"{op[6:].lower()}-{along}", op, [SQUARE], [whole(axis)], keepdims=0)
    for op, kind in (("ArgMax", I64), ("Softmax", F32), ("LogSoftmax", F32)):
        case(f"{op.lower()}-{along}", op, [SQUARE], out=kind, axis=axis)
    case(f"cumsum-{along}", "CumSum", [SQUARE], [np.array(axis, dtype=np.int64)])
case("sum-short", "ReduceSum", [(100000, 7)], [whole(1)])
case("softmax-short", "Softmax", [(20000, 10)], axis=1)
case("topk", "TopK", [(200, 1000)], [whole(10)], outputs=2, out=[F32, I64])
case("layer-norm", "LayerNormalization", [(512, 768)], [normal(768), normal(768)])
case("instance-norm", "InstanceNormalization", [(4, 64, 56, 56)], [normal(64), normal(64)])
case("batch-norm", "BatchNormalization", [(4, 64, 56, 56)], [normal(64), normal(64), normal(64), np.abs(normal(64))])
case("lrn", "LRN", [(1, 96, 55, 55)], size=5)
for dims, order in (((1000, 1000), (1, 0)), ((16, 200, 300), (0, 2, 1)), ((4, 128, 12, 64), (0, 2, 1, 3)), ((4, 64, 56, 56), (0, 2, 3, 1)),
                    ((4, 56, 56, 64), (0, 3, 1, 2))):
    case("transpose-" + "".join(map(str, order)), "Transpose", [dims], perm=list(order))
case("concat-first", "Concat", [(500, 1000), (500, 1000)], axis=0)
case("concat-last", "Concat", [(500, 1000), (500, 1000)], axis=1)
case("concat-channels", "Concat", [(4, 32, 56, 56), (4, 32, 56, 56)], axis=1)
case("split", "Split", [SQUARE], [whole(500, 500)], outputs=2, axis=1)
case("slice-every-2", "Slice", [SQUARE], [whole(0, 0), whole(1000, 1000), whole(0, 1), whole(1, 2)])
for mode, by in (("constant", 1), ("reflect", 3), ("edge", 1)):
    case("pad-" + mode, "Pad", [(4, 32, 56, 56)], [whole(0, 0, by, by, 0, 0, by, by)], mode=mode)
case("tile-rows", "Tile", [(100, 1000)], [whole(10, 1)])
case("tile-columns", "Tile", [(1000, 100)], [whole(1, 10)])
case("depth-to-space", "DepthToSpace", [(1, 64, 128, 128)], blocksize=4)
case("gather-rows", "Gather", [(10000, 256)], [random.integers(0, 10000, 2048)], axis=0)
case("gather-columns", "Gather", [SQUARE], [random.integers(0, 1000, 500)], axis=1)
case("scatter-nd", "ScatterND", [(10000, 64)], [random.permutation(10000)[:5000].reshape(-1, 1), normal(5000, 64)])
case("one-hot", "OneHot", [((4096,), I64)], [whole(1000), np.array([0, 1], dtype=np.float32)])
case("max-pool-3", "MaxPool", [(1, 64, 112, 112)], kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4)
case("max-pool-5", "MaxPool", [(1, 256, 20, 20)], kernel_shape=[5, 5], pads=[2] * 4)
case("average-pool", "AveragePool", [(4, 64, 56, 56)], kernel_shape=[3, 3], pads=[1] * 4)
case("global-average", "GlobalAveragePool", [(16, 512, 7, 7)])
for mode in ("nearest", "linear", "cubic"):
    case(f"resize-{mode}-twice", "Resize", [(1, 64, 56, 56)], [None, None, whole(1, 64, 112, 112)], mode=mode)
    case(f"resize-{mode}-odd", "Resize", [(1, 3, 224, 224)], [None, None, whole(1, 3, 500, 500)], mode=mode)
case("upsample", "Resize", [(1, 256, 20, 20)], [None, np.array([1, 1, 2, 2], dtype=np.float32)], mode="nearest",
     coordinate_transformation_mode="asymmetric", nearest_mode="floor")
case("grid-sample", "GridSample", [(1, 32, 64, 64), (1, 64, 64, 2)])
conv("conv-7x7", 3, 224, 64, 7, 2)
conv("conv-3x3-56", 64, 56, 64, 3)
conv("conv-3x3-14", 256, 14, 256, 3)
conv("conv-1x1-14", 1024, 14, 256, 1)
conv("conv-1x1-stride", 256, 56, 512, 1, 2)
conv("conv-depth-3", 144, 56, 144, 3, group=144)
conv("conv-depth-7", 96, 56, 96, 7, group=96)
conv("conv-groups", 128, 28, 128, 3, group=4)
conv("conv-dilated", 64, 56, 64, 3, dilation=2)
case("conv-back", "ConvTranspose", [(1, 64, 28, 28)], [normal(64, 32, 3, 3)], kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4,
     output_padding=[1, 1])
for rows, depth, columns in ((512, 512, 512), (1, 1024, 4096), (8, 1024, 1024), (128, 768, 3072), (64, 2048, 64)):
    case(f"matmul-{rows}-{depth}-{columns}", "MatMul", [(rows, depth)], [normal(depth, columns)])
case("matmul-batch", "MatMul", [(48, 128, 128), (48, 128, 64)])
case("matmul-f64", "MatMul", [((256, 256), F64)], [random.standard_normal((256, 256))], out=F64)
case("lstm", "LSTM", [(50, 4, 128)], [normal(1, 1024, 128) * .1, normal(1, 1024, 256) * .1], outputs=3, hidden_size=256)
case("attention", "Attention", [(1, 12, 128, 64)] * 3, opset=23)
case("quantize", "QuantizeLinear", [SQUARE], [np.float32(.02), np.uint8(128)], out=U8)
case("quantize-dynamic", "DynamicQuantizeLinear", [SQUARE], outputs=3, out=[U8, F32, U8])
scaled = [np.float32(.02), np.uint8(128)]
weights = random.integers(-127, 127, (768, 768)).astype(np.int8)
filters = random.integers(-127, 127, (64, 64, 3, 3)).astype(np.int8)
case("matmul-integer", "MatMulInteger", [((128, 768), U8)], [weights, np.uint8(128)], out=I32)
case("matmul-quantised", "QLinearMatMul", [((128, 768), U8)], scaled + [weights, np.float32(.01), np.int8(0), np.float32(.05), np.uint8(128)], out=U8)
case("conv-quantised", "QLinearConv", [((1, 64, 56, 56), U8)], scaled + [filters, np.float32(.01), np.int8(0), np.float32(.05), np.uint8(128)],
     out=U8, kernel_shape=[3, 3], pads=[1] * 4)


def ours(path):
    said = subprocess.run([options.tg, "run", "--bench", "--json", "--threads", "1", "--runs", "40", path], capture_output=True, text=True)
    for line in said.stdout.splitlines():
        if line.startswith('{"runs"'):
            return json.loads(line)["least_ms"] * 1e3
    raise SystemExit(f"{path}: {said.stderr.strip().splitlines()[-1:]}")


def theirs(path):
    asked = onnxruntime.SessionOptions()
    asked.intra_op_num_threads, asked.log_severity_level = 1, 4
    try:
        session = onnxruntime.InferenceSession(path, asked, providers=["CPUExecutionProvider"])
    except Exception:  # an operator that it lacks
        return None
    feed = {}
    for i in session.get_inputs():
        kind = numpy_of[i.type]
        value = random.random(i.shape) + .01
        feed[i.name] = value > .5 if kind is np.bool_ else (value if np.issubdtype(kind, np.floating) else value * 98 + 1).astype(kind)
    session.run(None, feed)
    best, began = float("inf"), time.time()
    for _ in range(40):
        at = time.perf_counter()
        session.run(None, feed)
        best = min(best, time.perf_counter() - at)
        if time.time() - began > .5:
            break
    return best * 1e6


rows = []
with tempfile.TemporaryDirectory() as folder:
    for name in options.wanted or cases:
        path = os.path.join(folder, name + ".onnx")
        onnx.save(model_of(name), path)
        us, peer = ours(path), theirs(path)
        rows.append({"case": name, "us": round(us, 1), "onnxruntime_us": peer and round(peer, 1), "times": peer and round(peer / us, 2)})
for row in sorted(rows, key=lambda r: -(r["times"] or 0)):
    print(json.dumps(row) if options.json else "{case:<22} {us:>10} us {onnxruntime_us!s:>10} us {times!s:>6}".format(**row))
