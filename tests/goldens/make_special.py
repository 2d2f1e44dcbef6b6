"""make_special.py: values and gradients of PyTorch's elementwise functions where formulas go wrong: zeros of both signs, ties, the ends of domains,
infinities, NaN, subnormal numbers. python3 tests/goldens/make_special.py > tests/goldens/special.txt (torch 2.15, CPU, f32)
A case is its name, the operands x and y, the value f, and gx and gy, the gradients of its sum, each on a line of its own. tests/unit/test_special.c
reads it and says where and why we differ."""
import math
import torch

INF, NAN, TINY = math.inf, math.nan, 2.0 ** -140
ONE = [0.0, -0.0, 0.25, -0.25, 0.5, -0.5, 1.0, -1.0, 1.5, -1.5, 2.5, -2.5, 3.0, -3.0, 6.0, -6.0, 20.0, -20.0, 89.0, -89.0, 1e5, -1e5, 3e38, -3e38,
       TINY, -TINY, INF, -INF, NAN]
TWO = [0.0, -0.0, 0.5, -0.5, 1.0, -1.0, 2.0, -2.0, 3.0, -3.0, TINY, INF, -INF, NAN]

F = torch.nn.functional
UNARY = {
    'neg': torch.neg, 'exp': torch.exp, 'exp2': torch.exp2, 'log': torch.log, 'log2': torch.log2, 'log10': torch.log10, 'sin': torch.sin,
    'cos': torch.cos, 'tan': torch.tan, 'sinh': torch.sinh, 'cosh': torch.cosh, 'tanh': torch.tanh, 'asin': torch.asin, 'acos': torch.acos,
    'atan': torch.atan, 'asinh': torch.asinh, 'acosh': torch.acosh, 'atanh': torch.atanh, 'erf': torch.erf, 'sqrt': torch.sqrt,
    'rsqrt': torch.rsqrt, 'reciprocal': torch.reciprocal, 'square': torch.square, 'abs': torch.abs, 'sign': torch.sign, 'trunc': torch.trunc,
    'floor': torch.floor, 'ceil': torch.ceil, 'round': torch.round, 'relu': F.relu, 'leaky_relu': lambda x: F.leaky_relu(x, 0.1),
    'elu': lambda x: F.elu(x, 1.5), 'sigmoid': torch.sigmoid, 'gelu': lambda x: F.gelu(x, approximate='tanh'), 'silu': F.silu,
    'softplus': F.softplus, 'gelu_erf': F.gelu, 'relu6': F.relu6, 'celu': lambda x: F.celu(x, 1.5), 'selu': F.selu,
    'logsigmoid': F.logsigmoid, 'hardsigmoid': F.hardsigmoid, 'hardswish': F.hardswish, 'hardtanh': lambda x: F.hardtanh(x, -1.5, 2.5),
    'softsign': F.softsign, 'mish': F.mish, 'clamp': lambda x: torch.clamp(x, -1.5, 2.5),
    'maximum_scalar 0': lambda x: torch.maximum(x, torch.tensor(0.0)), 'maximum_scalar 1': lambda x: torch.maximum(x, torch.tensor(1.0)),
    'minimum_scalar 0': lambda x: torch.minimum(x, torch.tensor(0.0)),
    'pow_scalar 0': lambda x: x ** 0, 'pow_scalar 1': lambda x: x ** 1, 'pow_scalar 2': lambda x: x ** 2, 'pow_scalar 3': lambda x: x ** 3, 'pow_scalar -1': lambda x: x ** -1,
    'pow_scalar -2': lambda x: x ** -2, 'pow_scalar 0.5': lambda x: x ** 0.5, 'pow_scalar -0.5': lambda x: x ** -0.5, 'pow_scalar 2.5': lambda x: x ** 2.5,
    'rpow_scalar 0': lambda x: 0 ** x, 'rpow_scalar 1': lambda x: 1 ** x, 'rpow_scalar 2': lambda x: 2 ** x,
}
BINARY = {
    'add': torch.add, 'sub': torch.sub, 'mul': torch.mul, 'div': torch.div, 'floordiv': lambda x, y: torch.div(x, y, rounding_mode='floor'),
    'truncdiv': lambda x, y: torch.div(x, y, rounding_mode='trunc'), 'mod': torch.remainder, 'fmod': torch.fmod, 'pow': torch.pow,
    'maximum': torch.maximum, 'minimum': torch.minimum, 'logaddexp': torch.logaddexp, 'copysign': torch.copysign, 'atan2': torch.atan2,
}


def put(name, values):
    print(name, ' '.join('nan' if math.isnan(v) else ('%.9g' % v) for v in values))


def case(name, f, *operands):
    x = [torch.tensor(o, dtype=torch.float32, requires_grad=True) for o in operands]
    y = f(*x)
    grad = torch.autograd.grad(y, x, torch.ones_like(y), allow_unused=True) if y.requires_grad else [None] * len(x)
    print('case', name)
    for letter, o in zip('xy', operands): put(letter, o)
    put('f', y.tolist())
    for letter, o, g in zip('xy', x, grad): put('g' + letter, torch.zeros_like(o).tolist() if g is None else g.tolist())


for name, f in UNARY.items(): case(name, f, ONE)
for name, f in BINARY.items(): case(name, f, [a for a in TWO for _ in TWO], TWO * len(TWO))
