"""The programs of test_networks by PyTorch, in f64. Says "ready"; then for each line "PROGRAMS DATA ANSWERS SAMPLES LOUDNESS" on stdin writes ANSWERS
and says "done". PROGRAMS: Python text, a function for each; DATA: their leaves, doubles. ANSWERS: doubles; of each program a status (0: all is well,
1: PyTorch refused or gave other shapes, 2: numbers left the range of their dtype, 3: PyTorch lacks a derivative) and how many doubles follow: the
largest value, gradient and second gradient on the way, not counted; then the values of all outputs, and how far each of them moves when all values on
the way, and all gradients, are moved by about the rounding of their dtype. SAMPLES such runs are made, by up to LOUDNESS times that. Where LOUDNESS is
above 1 a run in f32 counts too: what PyTorch itself cannot tell there, as the gradient of a norm over one element, nobody needs to."""
import math
import os
import random
import sys
import warnings
import numpy
import torch
import torch.nn.functional as F

warnings.filterwarnings("ignore")
torch.set_num_threads(1)
torch.set_default_dtype(torch.float64)
# half the distance between numbers at 1, the same below the normal numbers, and what no number on the way should reach: squares must fit too
DTYPES = {"f64": (2.0**-53, 0, 1e150), "f32": (2.0**-24, 0, 1e18), "bf16": (2.0**-9, 0, 1e18), "f16": (2.0**-12, 2.0**-25, 250),
          "fp8e4m3": (2.0**-4, 2.0**-10, 20), "fp8e5m2": (2.0**-3, 2.0**-17, 200)}
loudness, outside, order = 0.0, False, 0
scale = [0.0, 0.0, 0.0]  # the largest value, gradient, gradient of a gradient
# what PyTorch says of operations that it does not differentiate (twice)
LACKING = ("is not implemented", "is not differentiable", "grad_input must be contiguous")


class Noise(torch.autograd.Function):
    """x, and in the gradient g, moved by what rounding might do."""
    @staticmethod
    def forward(ctx, x, dtype):
        global outside
        ctx.dtype = dtype
        relative, absolute, most = DTYPES[dtype]
        if not loudness:
            largest = float(x.detach().abs().max()) if x.numel() else 0.0
            if not math.isfinite(largest):
                finite = x[torch.isfinite(x)]
                largest = float(finite.abs().max()) if finite.numel() else 0.0
            outside = outside or largest > most
            scale[order] = max(scale[order], largest)
            return x.clone()
        way = torch.rand(x.shape) * (2 * loudness) - loudness
        return x * (1 + 2 * relative * way) + 2 * absolute * way

    @staticmethod
    def backward(ctx, g):
        return Noise.apply(g, ctx.dtype), None


def N(x, dtype):
    return Noise.apply(x, dtype) if torch.is_tensor(x) and x.is_floating_point() else x


# ---- what PyTorch has no single function for
def prod(x, axes, keepdim):
    for a in sorted((a % x.dim() for a in axes), reverse=True):
        x = torch.prod(x, a, keepdim)
    return x


def rpow(x, v):
    return torch.tensor(v) ** x


def head(x, sizes):
    return x[tuple(slice(0, s) for s in sizes)]


def put(x, where, v):
    x = x.clone()
    x[where] = v
    return x


def scatter_reduce(x, axis, index, src, how, own):
    return x.scatter_reduce(axis, index, src, how, include_self=own)


def first_places(x, axis, largest):
    """Of a running maximum or minimum, where each was met first."""
    values = (torch.cummax if largest else torch.cummin)(x, axis)[0]
    n = x.shape[axis]
    steps = torch.arange(n).reshape([-1 if i == axis else 1 for i in range(x.dim())]).expand(x.shape)
    new = torch.cat([torch.ones_like(x.narrow(axis, 0, 1), dtype=bool), values.narrow(axis, 1, n - 1) != values.narrow(axis, 0, n - 1)], axis)
    return torch.cummax(torch.where(new, steps, 0), axis)[0]


def normalize(x, p, axis):  # N sees how large its gradients are on the way
    return x / N(torch.linalg.vector_norm(x, p, axis, keepdim=True).clamp(min=1e-12), "f64")


def layer_norm(x, sizes, w, b, eps):  # over one element the gradient is a difference of large equal numbers, which N sees
    if math.prod(sizes) != 1:
        return F.layer_norm(x, sizes, w, b, eps)
    y = (N(x, "f32") - N(x, "f32")) / math.sqrt(eps)
    y = y if w is None else y * w
    return y if b is None else y + b


def logcumsumexp(x, axis):  # torch's second derivative is NaN
    return torch.cat([torch.logsumexp(x.narrow(axis, 0, i + 1), axis, keepdim=True) for i in range(x.shape[axis])], axis)


def unpool(x, kernel, size):
    n = len(kernel)
    pool, back = [(F.max_pool1d, F.max_unpool1d), (F.max_pool2d, F.max_unpool2d), (F.max_pool3d, F.max_unpool3d)][n - 1]
    y, places = pool(x, kernel, kernel, return_indices=True)
    return back(y, places, kernel, kernel, output_size=size)


def batch_norm(x, mean, var, w, b, eps):
    s = [1, -1] + [1] * (x.dim() - 2)
    y = (x - mean.reshape(s)) / torch.sqrt(var.reshape(s) + eps)
    return y if w is None else y * w.reshape(s) + b.reshape(s)


def attention(q, k, v, mask, causal, grouped, scale, dtype="f64"):  # dtype: of the scores
    if grouped:
        k, v = (t.repeat_interleave(q.shape[1] // k.shape[1], 1) for t in (k, v))
    s = q @ k.transpose(-1, -2) * (scale or q.shape[-1] ** -0.5)
    s = N(s, dtype)
    seen = torch.ones(q.shape[-2], k.shape[-2], dtype=bool)
    if causal:
        seen = seen.tril()
    if mask is not None and mask.dtype == torch.bool:
        seen = seen & mask
    elif mask is not None:
        seen = seen & ~torch.isneginf(mask)
        s = s + torch.where(torch.isneginf(mask), 0, mask)
    seen = seen.expand(s.shape)
    some = seen.any(-1, keepdim=True)
    weights = torch.softmax(torch.where(seen | ~some, s, float("-inf")), -1)
    return N(torch.where(some, weights, 0), dtype) @ v


def multihead(q, k, w, bias, out, out_bias, heads, causal, batch_first, dtype="f64"):
    if not batch_first:
        q, k = q.transpose(0, 1), k.transpose(0, 1)
    width = q.shape[-1]
    parts = [F.linear(x, w[i * width:(i + 1) * width], None if bias is None else bias[i * width:(i + 1) * width])
             for i, x in enumerate((q, k, k))]
    parts = [N(x, dtype).unflatten(-1, (heads, width // heads)).transpose(1, 2) for x in parts]
    y = attention(*parts, None, causal, False, None, dtype).transpose(1, 2).flatten(2)
    y = F.linear(y, out, out_bias)
    return y if batch_first else y.transpose(0, 1)


def recurrent(kind, x, h, c, weights, layers, ways, plain, batch_first):
    if kind == 2:
        h = torch.zeros(x.shape[0], weights[1].shape[1]) if h is None else h
        c = torch.zeros_like(h) if c is None else c
        y, cells = torch._VF.lstm_cell(x, (h, c), *weights)
        return y, y, cells
    hidden = weights[1].shape[1]
    if h is None:
        h = torch.zeros(layers * ways, x.shape[0 if batch_first else 1], hidden)
    if kind == 1:
        return torch._VF.gru(x, h, list(weights), not plain, layers, 0.0, False, ways == 2, batch_first)
    c = torch.zeros_like(h) if c is None else c
    return torch._VF.lstm(x, (h, c), list(weights), not plain, layers, 0.0, False, ways == 2, batch_first)


def cross_entropy(x, labels, axis, weight, reduction, ignored, smoothing):
    return F.cross_entropy(x.movedim(axis, 1), labels.long(), weight, ignore_index=ignored, reduction=reduction, label_smoothing=smoothing)


def nll(x, labels, axis, weight, reduction, ignored, smoothing):
    return F.nll_loss(x.movedim(axis, 1), labels.long(), weight, ignore_index=ignored, reduction=reduction)


def soft_cross_entropy(x, target, axis, reduction, smoothing):
    if x.dim() == 1:
        return F.cross_entropy(x, target, reduction=reduction, label_smoothing=smoothing)
    return F.cross_entropy(x.movedim(axis, 1), target.movedim(axis, 1), reduction=reduction, label_smoothing=smoothing)


def reduced(x, reduction):
    return x.mean() if reduction == "mean" else x.sum() if reduction == "sum" else x


def bce(x, t, reduction):  # F's has no gradient by the target
    return reduced(-(t * torch.log(x) + (1 - t) * torch.log(1 - x)), reduction)


def bce_logits(x, t, weight, reduction):
    w = 1 if weight is None else weight
    return reduced(-(w * t * F.logsigmoid(x) + (1 - t) * F.logsigmoid(-x)), reduction)


def newton_schulz(x, steps, c0, c1, c2, eps):
    x = N(x / N(x.norm() + eps, "f64"), "f64")  # N sees how large its gradients are on the way
    for _ in range(steps):
        a = x @ x.T
        x = c0 * x + (c1 * a + c2 * a @ a) @ x
    return x


def qr(x):
    q, r = torch.linalg.qr(x)
    signs = torch.sign(torch.diagonal(r)).detach()
    return q * signs, r * signs[:, None]


def svd(x, kind):
    u, s, vt = torch.linalg.svd(x, full_matrices=False)
    return s if kind == 0 else u @ vt if kind == 1 else u * torch.exp(-s) @ vt


def dropout(x, p, kept):
    if p in (0, 1):
        return x * (1 - p)
    return x * torch.tensor(kept, dtype=x.dtype).reshape(x.shape) / (1 - p)


# ---- programs
def weighed(y):
    w = ((torch.arange(y.numel()) * 7 + 3) % 17 - 8) / 8
    return (w.reshape(y.shape) * (y + y * y / 4)).sum()


def outputs(make, second, wide, data):
    def leaf(at, shape, dtype):
        n = int(numpy.prod(shape, dtype=int))
        x = torch.from_numpy(data[at:at + n].copy()).reshape(shape)
        if dtype == "bool":
            return x.bool()
        return x.long() if dtype[0] in "iu" else x.to(torch.get_default_dtype()).requires_grad_(True)

    global order
    order = 0
    values, terms, leaves, wanted = make(leaf, N)
    out = list(values)
    loss = N(sum((weighed(t) for t in terms), torch.zeros(())), wide)
    out.append(loss)
    if leaves:
        order = 1
        g = gradients(loss, leaves, second)
        out += g
        if second:
            order = 2
            slope = sum((weighed(N(t, d)) for t, d in zip(g, [w[1] for w in wanted[len(values) + 1:]])), torch.zeros(()))
            out += gradients(slope, leaves, False)
    return [t.detach() for t in out], wanted


def gradients(y, leaves, again):
    g = torch.autograd.grad(y, leaves, create_graph=again, allow_unused=True) if y.requires_grad else [None] * len(leaves)
    return [torch.zeros_like(x) if t is None else t for t, x in zip(g, leaves)]


def outputs_in_f32(make, second, data):
    torch.set_default_dtype(torch.float32)
    try:
        return outputs(make, second, "f32", data)[0]
    except (RuntimeError, IndexError, ValueError, TypeError):  # an operation that mixes what it is given with f64
        return []
    finally:
        torch.set_default_dtype(torch.float64)


def flat(t):
    return t.to(torch.float64).reshape(-1).numpy()


def answer(number, make, second, wide, data, samples, most):
    global loudness, outside
    torch.manual_seed(number)
    loudness, outside = 0.0, False
    scale[:] = 0.0, 0.0, 0.0
    try:
        base, wanted = outputs(make, second, wide, data)
    except (RuntimeError, IndexError, ValueError, TypeError, AttributeError, NameError) as e:
        if any(text in str(e) for text in LACKING):
            return [3, 0]
        print(f"program {number}: PyTorch says {type(e).__name__}: {e}", flush=True)
        return [1, 0]
    shapes = [tuple(t.shape) for t in base]
    if shapes != [w[0] for w in wanted]:
        wrong = [f"{a} for {w[0]} (output {i})" for i, (a, w) in enumerate(zip(shapes, wanted)) if a != w[0]]
        print(f"program {number}: PyTorch has other shapes: {', '.join(wrong)}, of {len(shapes)} for {len(wanted)}", flush=True)
        return [1, 0]
    base = [flat(t) for t in base]
    far = [numpy.zeros_like(t) for t in base]
    for i in range(samples):
        loudness = 1.0 if most == 1 else most ** random.random()
        moved = [flat(t) for t in outputs(make, second, wide, data)[0]]
        for f, b, m in zip(far, base, moved):
            with numpy.errstate(invalid="ignore"):
                d = numpy.where((m == b) | (numpy.isnan(m) & numpy.isnan(b)), 0, numpy.abs(m - b))
            numpy.maximum(f, numpy.where(numpy.isnan(d), numpy.inf, d), out=f)
    loudness = 0.0
    for f, b, t in zip(far, base, outputs_in_f32(make, second, data) if most > 1 and wide == "f32" else []):
        d = numpy.abs(flat(t) - b)
        numpy.maximum(f, numpy.where(numpy.isfinite(d), d, 0), out=f)
    whole = numpy.concatenate(base + far)
    return numpy.concatenate([[2 if outside else 0, len(whole), *scale], whole])


def batch(programs, data, answers, samples, most):
    table = []
    scope = dict(globals(), programs=table)
    with open(programs) as f:
        exec(compile(f.read(), programs, "exec"), scope)
    leaves = numpy.fromfile(data)
    with open(answers, "wb") as f:
        for number, make, second, wide, base in table:
            numpy.asarray(answer(number, make, second, wide, leaves[base:], int(samples), float(most)), dtype=numpy.float64).tofile(f)


if __name__ == "__main__":
    say = os.fdopen(os.dup(1), "w", buffering=1)  # what is printed goes to stderr
    os.dup2(2, 1)
    say.write("ready\n")
    for line in sys.stdin:
        batch(*line.split())
        say.write("done\n")
