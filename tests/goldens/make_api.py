#!/usr/bin/env python3
"""make_api.py: writes api.txt, the expected results of tests/unit/test_api.c, with NumPy and PyTorch.

A case is a name that test_api.c knows, numbers, inputs and outputs:
  case NAME [number ..]
  opt diff | near TOLERANCE          diff: differentiable at these inputs, twice; near: relative tolerance, where the default is too fine
  in|out DTYPE RANK size .. : value ..
Where this library deliberately gives something else than PyTorch, the function here is a lambda that says so.
Needed to make the file, never to run the tests:  python3 tests/goldens/make_api.py > tests/goldens/api.txt
"""
import math, sys
import numpy as np, torch
import torch.nn.functional as F

torch.manual_seed(7)
rng = np.random.default_rng(7)
NAMES = {torch.float32: 'f32', torch.float64: 'f64', torch.float16: 'f16', torch.bfloat16: 'bf16', torch.int8: 'i8', torch.int16: 'i16', torch.int32: 'i32',
         torch.int64: 'i64', torch.uint8: 'u8', torch.bool: 'bool'}
TYPES = {v: k for k, v in NAMES.items()}
out = sys.stdout

def digits(t):
    wide = t.dtype == torch.float64
    for v in t.reshape(-1).tolist():
        if t.dtype == torch.bool: yield '1' if v else '0'
        elif not t.is_floating_point(): yield str(v)
        elif math.isnan(v): yield 'nan'
        elif math.isinf(v): yield 'inf' if v > 0 else '-inf'
        else: yield '%.17g' % v if wide else '%.9g' % v if t.dtype == torch.float32 else '%.6g' % v
def put(kind, t):
    out.write(f"{kind} {NAMES[t.dtype]} {t.dim()} {' '.join(map(str, t.shape))} : {' '.join(digits(t))}\n")

seen = set()
def case(name, fn, *inputs, a=(), diff=False, near=None):
    """inputs: tensors. fn takes them and gives a tensor or several."""
    r = fn(*inputs)
    r = r if isinstance(r, (tuple, list)) else (r,)
    out.write(f"case {name}{''.join(' %.17g' % v for v in a)}\n")
    if diff and all(t.dtype == torch.float64 for t in inputs if t.is_floating_point()): out.write('opt diff\n')
    if near: out.write(f'opt near {near:g}\n')
    for t in inputs: put('in', t)
    for t in r: put('out', t)
    seen.add(name)

def R(shape, lo=-2.0, hi=2.0, dtype='f32'):
    return torch.tensor(rng.uniform(lo, hi, shape)).to(TYPES[dtype])
def Z(shape, lo, hi, dtype='i32'):
    return torch.tensor(rng.integers(lo, hi, shape)).to(TYPES[dtype])
def T(v, dtype='f32'):
    return torch.tensor(v, dtype=TYPES[dtype])
SHAPES = [(), (0, 2), (1,), (5,), (2, 3)]

# ---- one operand: domain of the random inputs, and of those that are differentiated (no kink, no pole)
U = {
 'exp2': (torch.exp2, -3, 3), 'log2': (torch.log2, .1, 4), 'sin': (torch.sin, -6, 6), 'sqrt': (torch.sqrt, .1, 4), 'exp': (torch.exp, -3, 3),
 'cos': (torch.cos, -6, 6), 'log': (torch.log, .1, 4), 'log10': (torch.log10, .1, 4), 'tan': (torch.tan, -1, 1), 'rsqrt': (torch.rsqrt, .1, 4),
 'square': (torch.square, -3, 3), 'abs': (torch.abs, .1, 3), 'neg': (torch.neg, -3, 3), 'reciprocal': (torch.reciprocal, .3, 3),
 'sinh': (torch.sinh, -3, 3), 'cosh': (torch.cosh, -3, 3), 'tanh': (torch.tanh, -3, 3), 'asin': (torch.asin, -.95, .95), 'acos': (torch.acos, -.95, .95),
 'atan': (torch.atan, -5, 5), 'asinh': (torch.asinh, -5, 5), 'acosh': (torch.acosh, 1.05, 6), 'atanh': (torch.atanh, -.95, .95), 'erf': (torch.erf, -3, 3),
 'relu': (torch.relu, .1, 3), 'relu6': (F.relu6, .5, 5.5), 'selu': (F.selu, -3, 3), 'sigmoid': (torch.sigmoid, -5, 5), 'logsigmoid': (F.logsigmoid, -5, 5),
 'hardsigmoid': (F.hardsigmoid, -2.5, 2.5), 'hardswish': (F.hardswish, -2.5, 2.5), 'softplus': (F.softplus, -5, 5), 'softsign': (F.softsign, .1, 4),
 'mish': (F.mish, -4, 4), 'silu': (F.silu, -4, 4), 'quick_gelu': (lambda x: x * torch.sigmoid(1.702 * x), -4, 4),
 'gelu': (lambda x: F.gelu(x, approximate='tanh'), -4, 4), 'gelu_erf': (F.gelu, -4, 4),
}
P = {  # with numbers
 'leaky_relu': ((.2,), lambda x, s: F.leaky_relu(x, s), -3, 3), 'elu': ((1.5,), lambda x, s: F.elu(x, s), -3, 3), 'celu': ((1.5,), lambda x, s: F.celu(x, s), -3, 3),
 'hardtanh': ((-1.5, 2), lambda x, l, h: F.hardtanh(x, l, h), -1.4, 1.9), 'softplus_beta': ((2.5,), lambda x, b: F.softplus(x, b), -3, 3),
 'clamp': ((-1.5, 2), lambda x, l, h: torch.clamp(x, l, h), -1.4, 1.9),
}
FLAT = {'sign': torch.sign, 'trunc': torch.trunc, 'floor': torch.floor, 'ceil': torch.ceil, 'round': torch.round}
ASK = {'isnan': torch.isnan, 'isinf': torch.isinf, 'isfinite': torch.isfinite, 'isposinf': torch.isposinf, 'isneginf': torch.isneginf, 'signbit': torch.signbit,
       'logical_not': torch.logical_not}
for n, (f, lo, hi) in U.items():
    for s in SHAPES: case(n, f, R(s, lo, hi))
    case(n, f, R((7,), lo, hi, 'f64'), diff=True)
    for d in ('f16', 'bf16'): case(n, lambda x: f(x.double()).to(x.dtype), R((6,), lo, hi, d))
for n, (a, f, lo, hi) in P.items():
    for s in SHAPES: case(n, lambda x: f(x, *a), R(s, -4, 4), a=a)
    case(n, lambda x: f(x, *a), R((7,), lo, hi, 'f64'), a=a, diff=True)
for n, f in FLAT.items():
    for s in SHAPES: case(n, f, R(s, -4, 4))
    case(n, f, T([-2.5, -1.5, -.5, .5, 1.5, 2.5, 3.5, 1e9, -7], 'f64'), diff=False)
    case(n, lambda x: x if n != 'sign' else torch.sign(x), Z((2, 3), -4, 4))            # whole numbers stay
for n, f in ASK.items():
    for s in SHAPES: case(n, f, R(s, -4, 4))
# special values. PyTorch's own result but for what is named
SPECIAL = [0.0, -0.0, math.inf, -math.inf, math.nan, 1.0, -1.0, 1e-42, -1e-42, 1.1754944e-38, 3.4028235e38, -3.4028235e38, .5, 2.0, 6.0, -3.0]
def ours(n, x, r):
    nan = torch.isnan(x)
    if n in ('sign',): r = torch.where(nan, x, r)                       # NaN stays NaN
    if n == 'hardswish': r = torch.where(x == -math.inf, torch.tensor(math.nan), r)   # -inf times 0
    if n in ('silu', 'mish', 'quick_gelu', 'gelu', 'gelu_erf'): r = torch.where(x == -math.inf, torch.tensor(math.nan), r)   # the same
    if n == 'softsign': r = torch.where(torch.isinf(x), torch.tensor(math.nan), r)    # inf/inf
    return r
for n, f in {**{k: v[0] for k, v in U.items()}, **FLAT, **ASK}.items():
    x = T(SPECIAL)
    if n in ('sin', 'cos', 'tan'): x = T([v for v in SPECIAL if abs(v) < 1e30 or not math.isfinite(v)])
    r = ours(n, x, f(x.double()).to(torch.float32) if n not in ASK and n not in ('relu',) else f(x))
    case(n, lambda _: r, x, near=1e-5)
for n in ('square', 'abs', 'neg', 'relu', 'relu6', 'logical_not'):
    f = {**{k: v[0] for k, v in U.items()}, **ASK}[n]
    for d in ('i8', 'i16', 'i32', 'i64'): case(n, f, T([-128, -7, 0, 1, 3, 127], d))
    if n in ('square', 'abs', 'relu', 'logical_not'): case(n, f, T([0, 1, 200, 255], 'u8'))
for n in ('exp', 'sin', 'sqrt', 'sigmoid', 'tanh', 'erf', 'atan', 'gelu'): case(n, lambda x: U[n][0](x.float()), Z((2, 3), 1, 5, 'i16'))
case('logical_not', torch.logical_not, T([True, False], 'bool'))
case('bitnot', torch.bitwise_not, T([-5, 0, 9], 'i32')); case('bitnot', torch.bitwise_not, T([0, 7, 255], 'u8')); case('bitnot', torch.bitwise_not, T([True, False], 'bool'))

# ---- two operands
PAIRS = [((), ()), ((2, 3), (3,)), ((4, 1), (1, 3)), ((), (2,)), ((0, 3), (1, 3)), ((2, 3, 2), (2, 3, 2))]
away = lambda x: torch.where(x.abs() < .3, torch.full_like(x, .7), x)
B = {'add': torch.add, 'sub': torch.sub, 'mul': torch.mul, 'div': torch.div, 'maximum': torch.maximum, 'minimum': torch.minimum, 'atan2': torch.atan2,
     'logaddexp': torch.logaddexp, 'fmod': torch.fmod, 'mod': torch.remainder, 'copysign': torch.copysign}
for n, f in B.items():
    for s, t in PAIRS: case(n, f, R(s), away(R(t)))
    case(n, f, R((2, 3), .5, 1.5, 'f64'), R((3,), 1.7, 2.4, 'f64'), diff=True)
for n, f in {'floordiv': torch.floor_divide, 'truncdiv': lambda a, b: torch.div(a, b, rounding_mode='trunc')}.items():
    for s, t in PAIRS: case(n, f, R(s, -9, 9), away(R(t)))
for n, f in {'pow': torch.pow}.items():
    for s, t in PAIRS: case(n, f, R(s, .2, 3), R(t))
    case(n, f, R((2, 3), .5, 2, 'f64'), R((3,), -2, 2, 'f64'), diff=True)
    case(n, f, T([-2., -2., -2., 0., 0., 0., math.inf, -math.inf, -math.inf, 1., math.nan]), T([2., 3., .5, 0., -1., 2., -1., 3., 2., math.nan, 0.]))
C = {'lt': torch.lt, 'gt': torch.gt, 'le': torch.le, 'ge': torch.ge, 'eq': torch.eq, 'ne': torch.ne}
E = T([0., -0., math.inf, -math.inf, math.nan, 1., 1e-42])
for n, f in {**C, **{k: B[k] for k in ('add', 'sub', 'mul', 'div', 'maximum', 'minimum', 'copysign', 'atan2', 'mod', 'fmod')}, 'isclose': torch.isclose}.items():
    g = f if n != 'logaddexp' else f
    if n == 'fmod': g = lambda a, b: torch.where((a.double() / b.double()).abs() < 2.0**69, torch.fmod(a, b), torch.tensor(math.nan))
    if n == 'mod': g = lambda a, b: torch.tensor(np.array([[pymod(x, y) for y in b.reshape(-1).tolist()] for x in a.reshape(-1).tolist()], dtype=np.float32))
    def pymod(x, y):
        if math.isnan(x) or math.isnan(y) or math.isinf(x) or y == 0: return math.nan
        return x % y if abs(x / y) < 2.0**69 else math.nan     # said in tg.h
    case(n, g, E.reshape(7, 1), E)
for n, f in C.items():
    for s, t in PAIRS: case(n, f, Z(s, 0, 3), Z(t, 0, 3))
    case(n, f, T([[True], [False]], 'bool'), T([True, False], 'bool'))
case('logaddexp', torch.logaddexp, T([math.inf, -math.inf, math.inf, 500., -math.inf]), T([math.inf, -math.inf, -math.inf, 500., 3.]))
for d in ('i8', 'i16', 'i32', 'i64', 'u8'):
    lo = 0 if d == 'u8' else -9
    x, y = Z((3, 4), lo, 10, d), Z((4,), 1, 6, d)
    for n, f in {'add': torch.add, 'sub': torch.sub, 'mul': torch.mul, 'floordiv': torch.floor_divide, 'mod': torch.remainder, 'fmod': torch.fmod,
                 'truncdiv': lambda a, b: torch.div(a, b, rounding_mode='trunc'), 'bitand': torch.bitwise_and, 'bitor': torch.bitwise_or, 'bitxor': torch.bitwise_xor,
                 'maximum': torch.maximum, 'minimum': torch.minimum}.items(): case(n, f, x, y)
    case('shl', torch.bitwise_left_shift, Z((4,), 0, 9, d), T([0, 1, 2, 3], d)); case('shr', torch.bitwise_right_shift, x, T([0, 1, 2, 3], d))
    case('div', lambda a, b: torch.div(a.float(), b.float()), x, y)
    case('pow', torch.pow, Z((4,), 0, 4, d), T([0, 1, 2, 3], d))
for x, y in (('i8', 'u8'), ('i32', 'f32'), ('bool', 'i16'), ('f16', 'bf16'), ('i64', 'f16'), ('u8', 'i64'), ('bool', 'f32')):   # promotion
    case('add', torch.add, Z((3,), 0, 2, x), Z((3,), 0, 2, y)); case('mul', torch.mul, Z((3,), 0, 2, x), Z((3,), 0, 2, y))
for n, f in {'add': torch.logical_or, 'mul': torch.logical_and, 'bitxor': torch.logical_xor, 'bitand': torch.logical_and, 'bitor': torch.logical_or}.items():
    case(n, f, T([[True], [False]], 'bool'), T([True, False], 'bool'))
for s in [((2, 3), (3,), ()), ((4, 1), (1, 3), (4, 3)), ((0,), (1,), (1,))]:
    case('where', torch.where, Z(s[0], 0, 2, 'bool'), R(s[1]), R(s[2])); case('lerp', torch.lerp, R(s[0]), R(s[1]), R(s[2]))
    case('masked_fill', lambda x, m: x.masked_fill(m, 7.), torch.broadcast_tensors(R(s[0]), R(s[1]))[0].contiguous(), Z(s[1], 0, 2, 'bool'), a=(7,))
    case('clamp_tensor', lambda x, l, h: torch.minimum(torch.maximum(x, l), h), R(s[0]), R(s[1]), R(s[2]))
case('where', torch.where, Z((2, 3), 0, 2, 'bool'), R((2, 3), dtype='f64'), R((3,), dtype='f64'), diff=True)
case('lerp', torch.lerp, R((2, 3), dtype='f64'), R((2, 3), dtype='f64'), R((2, 3), dtype='f64'), diff=True)
case('clamp_tensor', lambda x, l, h: torch.minimum(torch.maximum(x, l), h), R((4,), -1, 1, 'f64'), R((4,), -3, -2, 'f64'), R((4,), 2, 3, 'f64'), diff=True)

# ---- reductions; attributes: keepdim, axes.
def red(n, f, x, axes, keep, **k):
    case(n, lambda t: f(t, axes, keep), x, a=(float(keep), *axes), **k)
RED = {'sum': lambda t, a, k: t.sum(a, k) if a else t.sum(), 'mean': lambda t, a, k: t.mean(a, k) if a else t.mean(),
       'max': lambda t, a, k: t.amax(a, k) if a else t.amax(), 'min': lambda t, a, k: t.amin(a, k) if a else t.amin(),
       'var': lambda t, a, k: t.var(a, keepdim=k) if a else t.var(), 'std': lambda t, a, k: t.std(a, keepdim=k) if a else t.std(),
       'logsumexp': lambda t, a, k: torch.logsumexp(t, a if a else tuple(range(t.dim())), k),
       'any': lambda t, a, k: torch.any(t.bool(), a[0], k) if a else torch.any(t.bool()), 'all': lambda t, a, k: torch.all(t.bool(), a[0], k) if a else torch.all(t.bool()),
       'prod': lambda t, a, k: t.prod(a[0], k) if a else t.prod(), 'argmax': lambda t, a, k: (t.argmax(a[0], k) if a else t.argmax()).int(),
       'argmin': lambda t, a, k: (t.argmin(a[0], k) if a else t.argmin()).int()}
ONE = ('any', 'all', 'prod', 'argmax', 'argmin')
for n, f in RED.items():
    for axes, keep in (((), False), ((1,), False), ((0,), True), ((-1,), False)) + (() if n in ONE else (((0, 2), False), ((1, 2), True), ((0, 1, 2), True))):
        red(n, f, R((2, 3, 4)), axes, keep)
    if n not in ONE[-2:] and n not in ('any', 'all'): red(n, f, R((3, 4), .5, 2, 'f64'), (1,), False, diff=True)
    if n not in ('var', 'std'): red(n, f, R(()), (), False)
    red(n, f, R((1, 5)), (1,), False)
for n in ('sum', 'prod', 'any', 'all'):
    red(n, RED[n], torch.zeros(0, 3), (0,), False); red(n, RED[n], torch.zeros(3, 0), (1,), True)
red('mean', RED['mean'], torch.zeros(2, 0), (1,), False)
case('var', lambda t: torch.full((1,), math.nan), T([[3.]]), a=(0., 1.))
for n in ('sum', 'prod', 'max', 'min', 'argmax', 'argmin', 'any', 'all'):
    for d, acc in (('i8', 'i32'), ('i16', 'i32'), ('i32', 'i32'), ('i64', 'i64'), ('bool', 'i32')):
        x = Z((3, 5), 0, 2, d) if d == 'bool' else Z((3, 5), -3, 4, d)
        g = RED[n]
        if n == 'sum': g = lambda t, a, k, acc=acc: t.long().sum(a, k).to(TYPES[acc])
        if n == 'prod': g = lambda t, a, k, d=d: t.long().prod(a[0], k).to(TYPES[d])
        if n in ('max', 'min', 'argmax', 'argmin') and d == 'bool': g = lambda t, a, k, n=n: (RED[n](t.int(), a, k).bool() if n in ('max', 'min') else RED[n](t.int(), a, k))
        red(n, g, x, (1,), False)
for n in ('max', 'min', 'argmax', 'argmin', 'sum', 'logsumexp', 'mean'):
    red(n, RED[n], T([[1., math.nan, 3.], [math.inf, 2., -math.inf], [-math.inf, -math.inf, -math.inf], [5., 5., 1.]]), (1,), False)
case('var_mean', lambda t: torch.var_mean(t, 1), R((3, 4)), a=(0., 1.)); case('std_mean', lambda t: torch.std_mean(t, 0, keepdim=True), R((3, 4)), a=(1., 0.))
SM = {'softmax': F.softmax, 'log_softmax': F.log_softmax, 'softmin': F.softmin}
for n, f in SM.items():
    for s, ax in (((5,), 0), ((2, 3), 1), ((2, 3, 4), 1), ((2, 0), 1), ((0, 3), 1), ((1, 1), 0)): case(n, lambda x: f(x, ax), R(s, -4, 4), a=(ax,))
    case(n, lambda x: f(x, 1), R((2, 3), -2, 2, 'f64'), a=(1,), diff=True)
    case(n, lambda x: f(x, 0), T([1000., -math.inf, 999.]) if n != 'softmin' else T([1000., math.inf, 999.]), a=(0,))
for p in (2., 1., 3., math.inf): case('normalize', lambda x: F.normalize(x, p), R((3, 4)), a=(p,)); case('normalize', lambda x: F.normalize(x, p), R((3, 4), .5, 2, 'f64'), a=(p,), diff=True)
case('normalize', lambda x: x / (x != 0).sum(1, keepdim=True), T([[1., 0., 2.], [4., 5., 6.]]), a=(0,))

# ---- movement
M = [
 ('reshape', (2, 6), (3, 4), lambda x: x.reshape(2, 6)), ('reshape', (-1, 2), (3, 4), lambda x: x.reshape(-1, 2)), ('permute', (2, 0, 1), (2, 3, 4), lambda x: x.permute(2, 0, 1)),
 ('expand', (4, 3), (1, 3), lambda x: x.expand(4, 3)), ('expand', (2, 4, 3), (4, 1), lambda x: x.expand(2, 4, 3)), ('flip', (0, 2), (2, 3, 2), lambda x: x.flip(0, 2)),
 ('shrink', (0, 1, 2, 3), (3, 4), lambda x: x[0:2, 1:3]), ('pad', (1, 0, 2, 1), (2, 3), lambda x: F.pad(x, (0, 1, 1, 2))), ('pad', (-1, 1, 0, -1), (3, 3), lambda x: F.pad(x, (1, -1, -1, 0))),
 ('transpose', (0, 2), (2, 3, 4), lambda x: x.transpose(0, 2)), ('squeeze', (1,), (2, 1, 3), lambda x: x.squeeze(1)), ('squeeze', (0,), (2, 1, 3), lambda x: x.squeeze(0)),
 ('squeeze_all', (), (1, 2, 1), lambda x: x.squeeze()), ('unsqueeze', (-1,), (2, 3), lambda x: x.unsqueeze(-1)), ('flatten', (1, 2), (2, 3, 4), lambda x: x.flatten(1, 2)),
 ('flatten', (0, -1), (), lambda x: x.flatten()), ('unflatten', (1, 2, -1), (2, 6), lambda x: x.unflatten(1, (2, -1))), ('repeat', (2, 3), (2, 2), lambda x: x.repeat(2, 3)),
 ('repeat', (2, 1, 0), (2, 2), lambda x: x.repeat(2, 1, 0)), ('repeat_interleave', (3, 1), (2, 2), lambda x: x.repeat_interleave(3, 1)), ('roll', (1, 5, 0, 1), (3, 4), lambda x: x.roll((1, 5), (0, 1))),
 ('roll_flat', (-2,), (3, 4), lambda x: x.roll(-2)), ('diag', (), (4,), torch.diag), ('diagonal', (0, 0, 1), (3, 4), lambda x: x.diagonal()), ('diagonal', (1, 0, 2), (3, 2, 4), lambda x: x.diagonal(1, 0, 2)),
 ('diagonal', (-2, 0, 1), (3, 4), lambda x: x.diagonal(-2)), ('diagonal', (9, 0, 1), (3, 4), lambda x: x.diagonal(4)[..., :0]), ('tril', (0,), (3, 4), torch.tril), ('tril', (-1,), (2, 3, 3), lambda x: x.tril(-1)),
 ('triu', (1,), (3, 4), lambda x: x.triu(1)), ('triu', (-5,), (3, 4), lambda x: x.triu(-5)), ('unfold', (1, 3, 2), (2, 8), lambda x: x.unfold(1, 3, 2)), ('unfold', (0, 2, 3), (7, 2), lambda x: x.unfold(0, 2, 3)),
 ('unfold', (0, 2, 1), (5,), lambda x: x.unfold(0, 2, 1)), ('pad_mode', (1, 2, 3, 1, 2), (4, 5), lambda x: F.pad(x[None], (3, 2, 2, 1), 'reflect')[0]), ('pad_mode', (2, 2, 3, 1, 2), (4, 5), lambda x: F.pad(x[None], (3, 2, 2, 1), 'replicate')[0]),
 ('pad_mode', (3, 2, 3, 1, 2), (4, 5), lambda x: F.pad(x[None], (3, 2, 2, 1), 'circular')[0]), ('pad_to', (3, 5, 1.5), (2, 4), lambda x: F.pad(x, (0, 1, 0, 1), value=1.5)), ('shrink_to', (2, -1), (3, 4), lambda x: x[:2]),
 ('slice', (1, -3, -1), (2, 5), lambda x: x[:, -3:-1]), ('select', (1, -2), (2, 5), lambda x: x[:, -2]),
]
for n, a, s, f in M:
    case(n, f, R(s), a=a); case(n, f, R(s, dtype='f64'), a=a, diff=True); case(n, f, Z(s, -5, 5), a=a)
case('pad_value', lambda x: F.pad(x, (1, 2), value=-3.), R((2, 3)), a=(0, 1, 0, 2, -3)); case('pad_value', lambda x: F.pad(x, (1, 2), value=-3.), R((2, 3), dtype='f64'), a=(0, 1, 0, 2, -3), diff=True)
for k, n in ((torch.cat, 'cat'), (torch.stack, 'stack')):
    case(n, lambda *x: k(x, 1), R((2, 3)), R((2, 3)), a=(1,)); case(n, lambda *x: k(x, 0), R((2, 3), dtype='f64'), R((2, 3), dtype='f64'), a=(0,), diff=True)
    case(n, lambda *x: k(x, -1), Z((2, 2), 0, 9), R((2, 2)), Z((2, 2), 0, 9, 'i8'), a=(-1,))
case('cat', lambda *x: torch.cat(x, 1), R((2, 0)), R((2, 3)), R((2, 1)), a=(1,)); case('stack', lambda *x: torch.stack(x, 0), R(()), R(()), a=(0,))
case('split', lambda x: x.split(2, 1), R((2, 5)), a=(1, 2)); case('split_sizes', lambda x: x.split([1, 0, 4], 1), R((2, 5)), a=(1, 1, 0, 4)); case('chunk', lambda x: x.chunk(3, 0), R((7, 2)), a=(0, 3))
case('meshgrid', lambda *x: torch.meshgrid(*x, indexing='ij'), R((2,)), R((3,)), R(()).reshape(1), a=(0,)); case('meshgrid', lambda *x: torch.meshgrid(*x, indexing='xy'), R((2,)), R((3,)), a=(1,))
case('rearrange0', lambda x: x.permute(0, 2, 1), R((2, 6, 4)))
case('rearrange2', lambda x: x.reshape(2, 3, 2, 2).permute(0, 2, 1, 3)[:, :, :, None, :], R((6, 2, 2)))

# ---- creation
case('arange', lambda: torch.arange(0, 5, dtype=torch.int32), a=(0, 5, 1)); case('arange', lambda: torch.arange(7, -3, -2, dtype=torch.int32), a=(7, -3, -2)); case('arange', lambda: torch.arange(.5, 2, .25), a=(.5, 2, .25))
case('arange', lambda: torch.arange(3, 3, dtype=torch.int32), a=(3, 3, 1)); case('arange', lambda: torch.arange(0, 0, dtype=torch.int32), a=(5, 0, 1))
for a in ((0, 1, 5), (2, -3, 4), (1, 9, 1), (1, 9, 0), (-1, 1, 2)): case('linspace', lambda: torch.linspace(a[0], a[1], a[2]), a=a)
for a in ((3, 3), (2, 4), (4, 2), (0, 3)): case('eye', lambda: torch.eye(*a), a=a)
case('full', lambda: torch.full((2, 3), 2.5), a=(2.5, 2, 3)); case('zeros', lambda: torch.zeros(2, 0), a=(2, 0)); case('ones', lambda: torch.ones(3), a=(3,))
for f, n in ((torch.zeros_like, 'zeros_like'), (torch.ones_like, 'ones_like')): case(n, f, R((2, 2))); case(n, f, Z((3,), 0, 4, 'u8'))
case('full_like', lambda x: torch.full_like(x, 3), Z((2,), 0, 3), a=(3,))

# ---- indexing: the same lists stand in test_api.c
I = torch.tensor
def np_(f): return lambda x, *t: torch.from_numpy(np.ascontiguousarray(f(x.numpy(), *[q.numpy() for q in t])))
ITEMS = [
 (lambda: (1,), ()), (lambda: (-1,), ()), (lambda: (slice(1, 3),), ()), (lambda: (slice(None, None, 2),), ()), (lambda: (slice(None, None, -1),), ()),
 (lambda: (slice(None), slice(3, 0, -2)), ()), (lambda: (Ellipsis, 0), ()), (lambda: (None, slice(None), 1, None), ()), (lambda: (slice(1, -1), slice(None, None, 3), -2), ()),
 (lambda i: (i,), (I([2, 0, -3]),)), (lambda i: (slice(None), i), (I([2, -1]),)), (lambda i, j: (i, j), (I([[0], [2]]), I([1, 3, 0]))), (lambda i, j: (i, slice(None), j), (I([0, 2]), I([1, 4]))),
 (lambda i, j: (slice(None), i, j), (I([0, 3]), I([1, 4]))), (lambda i: (0, slice(None), i), (I([1, 4]),)), (lambda i: (slice(1, 3), i), (I([1, 0, 3]),)), (lambda m: (m,), (R((3, 4, 5)) > 0,)),
 (lambda m: (m,), (R((3, 4)) > 0,)), (lambda m: (slice(None), m), (I([True, False, True, True]),)), (lambda i: (i, None), (I([2, 1]),)), (lambda: (slice(10, 20),), ()), (lambda: (slice(2, 1),), ()),
 (lambda: (None,), ()), (lambda i: (Ellipsis, i), (I([4, 0]),)), (lambda i: (i,), (I([[0, 1], [2, 1]]),)), (lambda: (slice(None, None, 7),), ()), (lambda: (slice(-2, None),), ()), (lambda: (slice(-100, 2),), ()),
 (lambda: (slice(None), slice(None, None, -3)), ()), (lambda i: (i,), (I(1),)), (lambda: (), ()), (lambda i, m: (i, m), (I([0, 2]), I([True, False, False, True]))),
]
for k, (e, t) in enumerate(ITEMS):
    neg = any(isinstance(q, slice) and (q.step or 1) < 0 for q in e(*t))
    get = (lambda x, *t: np_(lambda y, *u: y[e(*u)])(x, *t)) if neg else (lambda x, *t: x[e(*t)].clone())
    t = tuple(q.int() if q.dtype == torch.int64 else q for q in t)
    back = lambda q: q.long() if q.dtype == torch.int32 else q
    case('getitem', lambda x, *t: get(x, *map(back, t)), R((3, 4, 5)), *t, a=(k,)); case('getitem', lambda x, *t: get(x, *map(back, t)), R((3, 4, 5), dtype='f64'), *t, a=(k,), diff=True)
    if k == 24: continue                                       # a place written twice: PyTorch does not say which value stays
    shape = get(torch.zeros(3, 4, 5), *map(back, t)).shape
    def store(x, v, *t):
        y = x.clone()
        if neg: y.numpy()[e(*[q.numpy() for q in map(back, t)])] = v.numpy()
        else: y[e(*map(back, t))] = v
        return y
    case('setitem', store, R((3, 4, 5)), R(shape), *t, a=(k,)); case('setitem', store, Z((3, 4, 5), 0, 9), Z((), 10, 19), *t, a=(k,))
    case('index_put', store, R((3, 4, 5), dtype='f64'), R(shape, dtype='f64'), *t, a=(k,), diff=True)
case('index_add', lambda x, v, i: x.index_put((i.long(),), v, accumulate=True), R((4, 3), dtype='f64'), R((3, 3), dtype='f64'), I([1, 1, 3]).int(), diff=True)

# ---- products
for a, b in (((2, 3), (3, 4)), ((3,), (3,)), ((3,), (3, 2)), ((2, 3), (3,)), ((2, 1, 3, 4), (5, 4, 2)), ((2, 0), (0, 3)), ((1, 1), (1, 1)), ((5, 7), (7, 3))):
    case('matmul', torch.matmul, R(a), R(b)); case('matmul', torch.matmul, Z(a, -3, 4, 'i32'), Z(b, -3, 4, 'i32'))
case('matmul', torch.matmul, R((2, 3), dtype='f64'), R((3, 2), dtype='f64'), diff=True)
case('matmul', lambda x, y: (x.double() @ y.double()).half(), R((3, 8), dtype='f16'), R((8, 2), dtype='f16'))
case('linear', F.linear, R((2, 3)), R((4, 3)), R((4,))); case('linear', F.linear, R((2, 2), dtype='f64'), R((3, 2), dtype='f64'), R((3,), dtype='f64'), diff=True)
EIN = ['ij,jk->ik', 'ij,jk', 'ii->i', 'ii', 'ij->ji', 'i,j->ij', 'bij,bjk->bik', '...ij,...jk->...ik', 'ij,ij->', 'iij->j', 'ij,kj,k->i', 'i...->...', 'abc,cd->abd']
SH = [[(2, 3), (3, 2)], [(2, 3), (3, 2)], [(3, 3)], [(3, 3)], [(2, 3)], [(2,), (3,)], [(2, 2, 3), (2, 3, 2)], [(2, 1, 2, 3), (4, 3, 2)], [(2, 3), (2, 3)], [(2, 2, 3)], [(2, 3), (2, 3), (2,)], [(3, 2, 2)], [(2, 1, 3), (3, 2)]]
for i, (e, s) in enumerate(zip(EIN, SH)):
    case('einsum', lambda *x: torch.einsum(e, *x), *[R(q) for q in s], a=(i,)); case('einsum', lambda *x: torch.einsum(e, *x), *[R(q, dtype='f64') for q in s], a=(i,), diff=np.prod([np.prod(q) for q in s]) < 200)
def ns(g, steps=3, c=(3.4445, -4.775, 2.0315)):
    t = g.shape[-2] > g.shape[-1]
    if t: g = g.mT
    g = g / (g.norm(dim=(-2, -1), keepdim=True) + 1e-7)
    for _ in range(steps):
        a = g @ g.mT
        g = c[0] * g + (c[1] * a + c[2] * a @ a) @ g
    return g.mT if t else g
for s in ((3, 5), (5, 3), (2, 3, 3)): case('newton_schulz', ns, R(s), a=(3,), near=1e-4)

# ---- convolutions and pools. attributes: groups, then stride, dilation, padding (one number each)
for x, w, g, st, dl, pd in (((1, 2, 5, 5), (3, 2, 3, 3), 1, 1, 1, 0), ((2, 4, 6, 7), (6, 2, 3, 2), 2, 2, 1, 1), ((1, 1, 7, 7), (2, 1, 3, 3), 1, 1, 2, 2), ((1, 3, 4, 4), (3, 1, 2, 2), 3, 1, 1, 1),
                            ((2, 2, 8), (3, 2, 3), 1, 2, 1, 1), ((1, 2, 4, 4, 4), (2, 2, 2, 2, 2), 1, 2, 1, 1), ((1, 1, 3, 3), (1, 1, 1, 1), 1, 1, 1, 0), ((0, 2, 4, 4), (3, 2, 3, 3), 1, 1, 1, 0)):
    n = len(x) - 2
    f = (F.conv1d, F.conv2d, F.conv3d)[n - 1]
    case('conv2d', lambda a, b, c: f(a, b, c, st, pd, dl, g), R(x), R(w), R((w[0],)), a=(g, st, dl, pd))
    if x[0]:
        tf = (F.conv_transpose1d, F.conv_transpose2d, F.conv_transpose3d)[n - 1]
        op = 1 if st > 1 else 0
        tw = (x[1], w[0] // g) + w[2:]
        case('conv_transpose2d', lambda a, b: tf(a, b, None, st, pd, op, g, dl), R(x), R(tw), a=(g, st, dl, pd, op))
case('conv2d', lambda a, b, c: F.conv2d(a, b, c, 2, 1), R((1, 2, 4, 3), dtype='f64'), R((2, 2, 2, 2), dtype='f64'), R((2,), dtype='f64'), a=(1, 2, 1, 1), diff=True)
case('conv_transpose2d', lambda a, b: F.conv_transpose2d(a, b, None, 2, 1, 1), R((1, 2, 2, 3), dtype='f64'), R((2, 2, 2, 2), dtype='f64'), a=(1, 2, 1, 1, 1), diff=True)
for x, k, st, dl, pd, ce in (((1, 2, 6, 6), 2, 2, 1, 0, 0), ((1, 1, 7, 5), 3, 2, 1, 1, 0), ((1, 1, 7, 7), 3, 2, 1, 1, 1), ((2, 1, 6, 6), 2, 3, 1, 0, 1), ((1, 1, 8, 8), 3, 1, 2, 0, 0), ((1, 1, 5, 5), 2, 2, 1, 0, 1), ((1, 1, 4, 4), 3, 3, 1, 1, 1)):
    case('max_pool2d', lambda a: tuple(t if i == 0 else t.int() for i, t in enumerate(F.max_pool2d(a, k, st, pd, dl, bool(ce), True))), R(x), a=(k, st, dl, pd, ce))
    if dl == 1:
        case('avg_pool2d', lambda a: F.avg_pool2d(a, k, st, pd, bool(ce), True), R(x), a=(k, st, dl, pd, ce, 0)); case('avg_pool2d', lambda a: F.avg_pool2d(a, k, st, pd, bool(ce), False), R(x), a=(k, st, dl, pd, ce, 1))
case('avg_pool2d', lambda a: F.avg_pool2d(a, 3, 2, 1, True, False), R((1, 1, 4, 4), dtype='f64'), a=(3, 2, 1, 1, 1, 1), diff=True)
case('max_pool1d', lambda a: F.max_pool1d(a, 3, 2, 1), R((2, 2, 7)), a=(3, 2, 1)); case('avg_pool3d', lambda a: F.avg_pool3d(a, 2), R((1, 1, 4, 4, 4)), a=(2,))
case('max_pool_places', lambda a: F.max_pool2d(a, 3, 2, 1, return_indices=True)[1].int(), T([[[[1., 1., 1., 1.], [1., 2., 2., 1.], [0., 2., 2., math.nan], [1., 1., 1., 1.]]]]), a=())
for mode, k in (('linear', 0), ('nearest', 1), ('nearest-exact', 2)):
    for x, s in (((2, 2, 5), (8,)), ((1, 2, 4, 5), (7, 3)), ((1, 1, 3, 3), (1, 1)), ((1, 1, 1, 4), (3, 9))):
        tm = {('linear', 1): 'linear', ('linear', 2): 'bilinear'}.get((mode, len(s)), mode)
        case('interpolate', lambda a: F.interpolate(a, s, mode=tm), R(x), a=(k, 0, *s))
        if k == 0: case('interpolate', lambda a: F.interpolate(a, s, mode=tm, align_corners=True), R(x), a=(k, 1, *s))
case('interpolate', lambda a: F.interpolate(a, (3, 4), mode='bilinear'), R((1, 1, 2, 3), dtype='f64'), a=(0, 0, 3, 4), diff=True)

x = R((1, 2, 4, 6)); p, q = F.max_pool2d(x, 2, return_indices=True)
case('max_unpool2d', lambda a, i: F.max_unpool2d(a, i.long(), 2), p, q.int()); case('max_unpool2d', lambda a, i: F.max_unpool2d(a, i.long(), 2), p.double(), q.int(), diff=True)

# ---- losses. attributes: reduction (0 mean, 1 sum, 2 none), axis of the classes, smoothing, ignored label or -100
RD = ('mean', 'sum', 'none')
for r in range(3):
    for s in (((3, 4), (3,)), ((2, 4, 3), (2, 3)), ((4,), ())):
        ax = 1 if len(s[0]) > 1 else 0
        for sm, ig in ((0., -100), (.2, -100), (0., 1)):
            y = Z(s[1], 0, 4)
            case('sparse_cross_entropy', lambda a, b: F.cross_entropy(a, b.long(), reduction=RD[r], label_smoothing=sm, ignore_index=ig), R(s[0]), y, a=(r, ax, sm, ig))
            case('cross_entropy', lambda a, b: F.cross_entropy(a, b, reduction=RD[r], label_smoothing=sm), R(s[0]), F.softmax(R(s[0]), ax), a=(r, ax, sm))
        case('nll', lambda a, b, w: F.nll_loss(a, b.long(), w, ignore_index=1, reduction=RD[r]), F.log_softmax(R(s[0]), ax), Z(s[1], 0, 4), R((4,), .5, 2), a=(r, ax, 0, 1))
    case('mse', lambda a, b: F.mse_loss(a, b, reduction=RD[r]), R((2, 3)), R((2, 3)), a=(r,)); case('binary_cross_entropy', lambda a, b: F.binary_cross_entropy(a, b, reduction=RD[r]), R((2, 3), .1, .9), R((2, 3), 0, 1), a=(r,))
    case('binary_cross_entropy_logits', lambda a, b, w: F.binary_cross_entropy_with_logits(a, b, pos_weight=w, reduction=RD[r]), R((2, 3), -9, 9), R((2, 3), 0, 1), R((3,), .5, 2), a=(r,))
for r in (0, 1):
    case('sparse_cross_entropy', lambda a, b: F.cross_entropy(a, b.long(), reduction=RD[r], label_smoothing=.1, ignore_index=1), R((3, 4), dtype='f64'), T([1, 0, 3], 'i32'), a=(r, 1, 0.1, 1), diff=True) if r else None
    case('cross_entropy', lambda a, b: F.cross_entropy(a, b, reduction=RD[r], label_smoothing=.1), R((2, 4), dtype='f64'), F.softmax(R((2, 4), dtype='f64'), 1), a=(r, 1, .1), diff=True)
    case('nll', lambda a, b, w: F.nll_loss(a, b.long(), w, reduction=RD[r]), R((3, 4), dtype='f64'), T([1, 0, 3], 'i32'), R((4,), .5, 2, 'f64'), a=(r, 1, 0, -100), diff=True)
    case('mse', lambda a, b: F.mse_loss(a, b, reduction=RD[r]), R((2, 3), dtype='f64'), R((2, 3), dtype='f64'), a=(r,), diff=True); case('binary_cross_entropy', lambda a, b: F.binary_cross_entropy(a, b, reduction=RD[r]), R((2, 3), .1, .9, 'f64'), R((2, 3), 0, 1, 'f64'), a=(r,), diff=True)
    case('binary_cross_entropy_logits', lambda a, b, w: F.binary_cross_entropy_with_logits(a, b, pos_weight=w, reduction=RD[r]), R((2, 3), -9, 9, 'f64'), R((2, 3), 0, 1, 'f64'), R((3,), .5, 2, 'f64'), a=(r,), diff=True)
case('sparse_cross_entropy', lambda a, b: F.cross_entropy(a, b.long(), ignore_index=1), R((3, 4)), T([1, 1, 1], 'i32'), a=(0, 1, 0, 1))

# ---- normalisation, attention
case('layer_norm', lambda x, w, b: F.layer_norm(x, (4,), w, b), R((2, 3, 4)), R((4,)), R((4,))); case('layer_norm', lambda x, w, b: F.layer_norm(x, (3,), w, b), R((2, 3), dtype='f64'), R((3,), dtype='f64'), R((3,), dtype='f64'), diff=True)
case('rms_norm', lambda x, w: F.rms_norm(x, (4,), w, 1e-5), R((2, 4)), R((4,))); case('rms_norm', lambda x, w: F.rms_norm(x, (3,), w, 1e-5), R((2, 3), dtype='f64'), R((3,), dtype='f64'), diff=True)
case('batch_norm', lambda x, m, v, w, b: F.batch_norm(x, m, v, w, b), R((2, 3, 4)), R((3,)), R((3,), .5, 2), R((3,)), R((3,)))
for q, k, causal in (((2, 4, 8), (2, 4, 8), 0), ((2, 3, 4, 5), (2, 3, 6, 5), 0), ((2, 4, 8), (2, 4, 8), 1), ((1, 5, 4), (1, 3, 4), 1), ((1, 3, 4), (1, 5, 4), 1)):
    case('attention', lambda a, b, c: F.scaled_dot_product_attention(a, b, c, is_causal=bool(causal)), R(q), R(k), R(k), a=(causal,))
for q, k in (((1, 4, 3, 4), (1, 2, 5, 4)), ((2, 2, 3, 4), (2, 2, 3, 4))):
    case('attention_grouped', lambda a, b, c: F.scaled_dot_product_attention(a, b, c, enable_gqa=True), R(q), R(k), R(k))
m = torch.tensor([[True, True, False], [False, True, True], [True, False, False]])
case('attention_mask', lambda a, b, c, d: F.scaled_dot_product_attention(a, b, c, d), R((2, 3, 4)), R((2, 3, 4)), R((2, 3, 4)), m); case('attention_mask', lambda a, b, c, d: F.scaled_dot_product_attention(a, b, c, d), R((2, 3, 4)), R((2, 3, 4)), R((2, 3, 4)), R((3, 3)))
case('attention_mask', lambda a, b, c, d: F.scaled_dot_product_attention(a, b, c, d), R((3, 2), dtype='f64'), R((3, 2), dtype='f64'), R((3, 2), dtype='f64'), m, diff=True)
case('attention', lambda a, b, c: F.scaled_dot_product_attention(a, b, c, is_causal=True), R((3, 2), dtype='f64'), R((3, 2), dtype='f64'), R((3, 2), dtype='f64'), a=(1,), diff=True)

print(len(seen), 'functions', file=sys.stderr)
