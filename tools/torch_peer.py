"""The cases of `tg bench` by PyTorch: one JSON object a line, {"case": .., "us": ..}, the best of some samples of calls that follow one another
without waiting between.  torch_peer.py [--device cpu|cuda] [--compile] [GROUP | CASE]..    GROUP: ops (that fill a GPU), small, net
Eager; with --compile also by torch.compile, and the better of the two counts. What a GPU computes goes by whatever PyTorch chooses there."""
import argparse
import json
import time
import torch

parser = argparse.ArgumentParser()
parser.add_argument("--device", default="cpu")
parser.add_argument("--compile", action="store_true")
parser.add_argument("wanted", nargs="*")
options = parser.parse_args()
nn, functional = torch.nn, torch.nn.functional
torch.backends.cuda.matmul.allow_tf32 = False
torch.backends.cudnn.allow_tf32 = False  # true by default, for convolutions alone
torch.manual_seed(1)


def normal(*dims, dtype=torch.float32):
    return torch.randn(*dims, device=options.device).to(dtype)


def unary(fn, *dims, dtype=torch.float32):
    def make():
        x = normal(*dims, dtype=dtype)
        return lambda: fn(x)
    return make


def binary(fn, first, second=None, dtype=torch.float32):
    def make():
        x, y = normal(*first, dtype=dtype), normal(*(second or first), dtype=dtype)
        return lambda: fn(x, y)
    return make


def attention(queries, keys=None, causal=True):
    def make():
        q, k, v = normal(*queries), normal(*(keys or queries)), normal(*(keys or queries))
        return lambda: functional.scaled_dot_product_attention(q, k, v, is_causal=causal)
    return make


def multiply_add():
    a, b, c = normal(1 << 24), normal(1 << 24), normal(1 << 24)
    return lambda: a * b + c


def embedding():
    table, index = normal(50257, 768), torch.arange(8192, device=options.device) * 7919 % 50257
    return lambda: functional.embedding(index, table)


def wide_product():
    a, b = (torch.randint(-3, 4, (1024, 1024), dtype=torch.int8, device=options.device) for _ in range(2))
    return lambda: torch._int_mm(a, b)


def conv3(x, w):
    return functional.conv2d(x, w, padding=1)


def pictures(n):
    return (n, 64, 56, 56), (64, 64, 3, 3)


def gelu(x):
    return functional.gelu(x, approximate="tanh")


def layer_norm(x):
    return functional.layer_norm(x, (x.shape[-1],))


ops = {
    "copy": unary(lambda x: x + 1, 1 << 26),
    "add": binary(torch.add, (1 << 26,)),
    "gelu": unary(gelu, 1 << 26),
    "sum": unary(torch.sum, 1 << 26),
    "sum-rows": unary(lambda x: x.sum(-1), 8192, 8192),
    "softmax": unary(lambda x: x.softmax(-1), 8192, 8192),
    "layer-norm": unary(layer_norm, 8192, 8192),
    "transpose": unary(lambda x: x.t().contiguous(), 8192, 8192),
    "cumsum": unary(lambda x: x.cumsum(1), 8192, 8192),
    "matmul-f32-4096": binary(torch.matmul, (4096, 4096)),
    "matmul-bf16-4096": binary(torch.matmul, (4096, 4096), dtype=torch.bfloat16),
    "matmul-bf16-8192": binary(torch.matmul, (8192, 8192), dtype=torch.bfloat16),
    "attention-f32": attention((1, 16, 2048, 64)),
}
small = {
    "add-16m": binary(torch.add, (1 << 24,)),
    "multiply-add-16m": multiply_add,
    "gelu-4m": unary(gelu, 1 << 22),
    "sum-16m": unary(torch.sum, 1 << 24),
    "sum-rows-4096": unary(lambda x: x.sum(-1), 4096, 4096),
    "sum-columns-4096": unary(lambda x: x.sum(0), 4096, 4096),
    "sum-columns-64": unary(lambda x: x.sum(0), 1 << 18, 64),
    "softmax-1024": unary(lambda x: x.softmax(-1), 1024, 1024),
    "layer-norm-4096": unary(layer_norm, 4096, 1024),
    "transpose-4096": unary(lambda x: x.t().contiguous(), 4096, 4096),
    "embedding-8192": embedding,
    "cumsum-10m": unary(lambda x: x.cumsum(0), 10000000),
    "sort-1m": unary(lambda x: x.sort()[0], 1000000),
    "matmul-256": binary(torch.matmul, (256, 256)),
    "matmul-512": binary(torch.matmul, (512, 512)),
    "matmul-1024": binary(torch.matmul, (1024, 1024)),
    "matmul-2048": binary(torch.matmul, (2048, 2048)),
    "matmul-bf16-1024": binary(torch.matmul, (1024, 1024), dtype=torch.bfloat16),
    "matmul-bf16-2048": binary(torch.matmul, (2048, 2048), dtype=torch.bfloat16),
    "linear-bf16-3072": binary(functional.linear, (128, 768), (3072, 768), dtype=torch.bfloat16),
    "matmul-i8-1024": wide_product,
    "linear-50257": binary(functional.linear, (64, 768), (50257, 768)),
    "gemv-16384": binary(functional.linear, (1, 8192), (16384, 8192)),
    "attention-1024": attention((1, 12, 1024, 64)),
    "attention-1-query": attention((1, 1, 1, 64), (1, 1, 65536, 64), causal=False),
    "sine-1m": unary(torch.sin, 1 << 20),
    "relu-matmul-1024": binary(lambda a, b: a.relu() @ b, (1024, 1024)),
    "gram-rows-1024": unary(lambda x: x @ x.t(), 1024, 1024),
    "gram-columns-1024": unary(lambda x: x.t() @ x, 1024, 1024),
    "slices-conv": binary(lambda x, w: conv3(functional.pixel_unshuffle(x, 2), w), (1, 3, 416, 416), (16, 12, 3, 3)),
    "enlarge-conv": binary(lambda x, w: conv3(functional.interpolate(x, scale_factor=2), w), *pictures(2)),
    "group-norm-conv": binary(lambda x, w: conv3(functional.silu(functional.group_norm(x, 8)), w), *pictures(16)),
    "shuffle-conv": binary(lambda x, w: conv3(torch.channel_shuffle(x, 8), w), *pictures(16)),
}


# ---- networks: the layers of cli/bench_net.c and cli/programs.c
def conv(cin, cout, kernel, stride=1, groups=1):
    return nn.Conv2d(cin, cout, kernel, stride, kernel // 2, groups=groups, bias=False)


def conv_norm(*args):
    return nn.Sequential(conv(*args), nn.BatchNorm2d(args[1]))


def head(width):
    return nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(width, 1000))


class Residual(nn.Module):
    def __init__(self, cin, cout, stride):
        super().__init__()
        self.first, self.second = conv_norm(cin, cout, 3, stride), conv_norm(cout, cout, 3)
        self.short = conv_norm(cin, cout, 1, stride) if stride > 1 or cin != cout else nn.Identity()

    def forward(self, x):
        return torch.relu(self.second(torch.relu(self.first(x))) + self.short(x))


def resnet18():
    layers, cin = [conv_norm(3, 64, 7, 2), nn.ReLU(), nn.MaxPool2d(3, 2, 1)], 64
    for stage in range(4):
        for block in range(2):
            layers.append(Residual(cin, 64 << stage, 2 if stage and not block else 1))
            cin = 64 << stage
    return nn.Sequential(*layers, head(512))


def mobilenet1():
    layers, cin = [conv_norm(3, 32, 3, 2), nn.ReLU()], 32
    for i, wide in enumerate([64, 128, 128, 256, 256, 512, 512, 512, 512, 512, 512, 1024, 1024]):
        layers += [conv_norm(cin, cin, 3, 2 if i in (1, 3, 5, 11) else 1, cin), nn.ReLU(), conv_norm(cin, wide, 1), nn.ReLU()]
        cin = wide
    return nn.Sequential(*layers, head(1024))


class Inverted(nn.Module):
    def __init__(self, cin, wider, cout, stride):
        super().__init__()
        mid = cin * wider
        widen = [conv_norm(cin, mid, 1), nn.ReLU6()] if wider > 1 else []
        self.body = nn.Sequential(*widen, conv_norm(mid, mid, 3, stride, mid), nn.ReLU6(), conv_norm(mid, cout, 1))
        self.adds = stride == 1 and cin == cout

    def forward(self, x):
        return x + self.body(x) if self.adds else self.body(x)


def mobilenet2():
    layers, cin = [conv_norm(3, 32, 3, 2), nn.ReLU6()], 32
    for wider, cout, times, stride in [(1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1)]:
        for i in range(times):
            layers.append(Inverted(cin, wider, cout, 1 if i else stride))
            cin = cout
    return nn.Sequential(*layers, conv_norm(cin, 1280, 1), nn.ReLU6(), head(1280))


class Dense(nn.Module):
    def __init__(self, cin):
        super().__init__()
        self.body = nn.Sequential(nn.BatchNorm2d(cin), nn.ReLU(), conv(cin, 128, 1), nn.BatchNorm2d(128), nn.ReLU(), conv(128, 32, 3))

    def forward(self, x):
        return torch.cat([x, self.body(x)], 1)


def densenet121():
    layers, width = [conv_norm(3, 64, 7, 2), nn.ReLU(), nn.MaxPool2d(3, 2, 1)], 64
    for block, count in enumerate([6, 12, 24, 16]):
        for _ in range(count):
            layers.append(Dense(width))
            width += 32
        if block < 3:
            layers += [nn.BatchNorm2d(width), nn.ReLU(), conv(width, width // 2, 1), nn.AvgPool2d(2)]
            width //= 2
    return nn.Sequential(*layers, nn.BatchNorm2d(width), nn.ReLU(), head(width))


def digits():
    return nn.Sequential(nn.Conv2d(1, 32, 5), nn.ReLU(), nn.Conv2d(32, 32, 5), nn.ReLU(), nn.BatchNorm2d(32), nn.MaxPool2d(2), nn.Conv2d(32, 64, 3),
                         nn.ReLU(), nn.Conv2d(64, 64, 3), nn.ReLU(), nn.BatchNorm2d(64), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(576, 10))


def mlp():
    return nn.Sequential(nn.Linear(784, 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU(), nn.Linear(128, 10))


class Block(nn.Module):
    def __init__(self, wide, heads):
        super().__init__()
        self.heads, self.norm1, self.norm2 = heads, nn.LayerNorm(wide), nn.LayerNorm(wide)
        self.qkv, self.out = nn.Linear(wide, 3 * wide), nn.Linear(wide, wide)
        self.up, self.down = nn.Linear(wide, 4 * wide), nn.Linear(4 * wide, wide)

    def forward(self, x):
        batch, length, wide = x.shape
        q, k, v = (t.reshape(batch, length, self.heads, -1).transpose(1, 2) for t in self.qkv(self.norm1(x)).chunk(3, -1))
        a = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(a.transpose(1, 2).reshape(batch, length, wide))
        return x + self.down(gelu(self.up(self.norm2(x))))


class Gpt(nn.Module):
    def __init__(self, layers, length, wide, heads, vocab, tied):
        super().__init__()
        self.token, self.position = nn.Embedding(vocab, wide), nn.Embedding(length, wide)
        self.blocks = nn.Sequential(*(Block(wide, heads) for _ in range(layers)))
        self.norm, self.head = nn.LayerNorm(wide), nn.Linear(wide, vocab, bias=not tied)
        if tied:
            self.head.weight = self.token.weight

    def forward(self, index):
        x = self.token(index) + self.position(torch.arange(index.shape[1], device=index.device))
        return self.head(self.norm(self.blocks(x))).flatten(0, -2)


def forward(model, x):
    def make():
        net, at = model().eval().to(options.device), x().to(options.device)
        net = torch.compile(net) if compiled else net

        def run():
            with torch.no_grad():
                return net(at)
        return run
    return make


def step(model, x, classes, optimizer):
    def make():
        net, at = model().train().to(options.device), x().to(options.device)
        with torch.no_grad():
            scores = net(at).shape[0]
        wanted = (torch.arange(scores) * 7 % classes).to(options.device)
        learner = optimizer(net.parameters())
        net = torch.compile(net) if compiled else net

        def run():
            learner.zero_grad(set_to_none=True)
            functional.cross_entropy(net(at), wanted).backward()
            learner.step()
        return run
    return make


def picture(*dims):
    return lambda: torch.rand(*dims) * 2 - 1


def tokens(batch, length, vocab):
    return lambda: (torch.arange(batch * length, device=options.device) * 7 + 3).reshape(batch, length) % vocab


def one(batch, cin, size, cout, kernel, stride=1, groups=1):
    return forward(lambda: conv(cin, cout, kernel, stride, groups), picture(batch, cin, size, size))


def sgd(parameters):
    return torch.optim.SGD(parameters, lr=1e-3)


def adam(parameters):
    return torch.optim.Adam(parameters, lr=1e-3)


net = {
    "conv-64-56": one(1, 64, 56, 64, 3),
    "conv-128-28": one(1, 128, 28, 128, 3),
    "conv-256-14": one(1, 256, 14, 256, 3),
    "conv-512-7": one(1, 512, 7, 512, 3),
    "conv-8x64-56": one(8, 64, 56, 64, 3),
    "conv-8x128-28": one(8, 128, 28, 128, 3),
    "conv-8x256-14": one(8, 256, 14, 256, 3),
    "conv-8x512-7": one(8, 512, 7, 512, 3),
    "conv-stem": one(1, 3, 224, 64, 7, 2),
    "conv-half": one(1, 64, 56, 128, 3, 2),
    "conv-1x1-wide": one(1, 64, 56, 256, 1),
    "conv-1x1-narrow": one(1, 256, 56, 64, 1),
    "conv-1x1-14": one(1, 1024, 14, 256, 1),
    "conv-1x1-7": one(1, 512, 7, 2048, 1),
    "conv-1x1-half": one(1, 256, 56, 512, 1, 2),
    "conv-dilated": forward(lambda: nn.Conv2d(128, 128, 3, 1, 2, 2, bias=False), picture(1, 128, 28, 28)),
    "depthwise-56": one(1, 128, 56, 128, 3, 1, 128),
    "depthwise-14": one(1, 512, 14, 512, 3, 1, 512),
    "depthwise-half": one(1, 128, 56, 128, 3, 2, 128),
    "transposed": forward(lambda: nn.ConvTranspose2d(64, 64, 4, 2, 1, bias=False), picture(1, 64, 28, 28)),
    "resnet18": forward(resnet18, picture(1, 3, 224, 224)),
    "resnet18-b8": forward(resnet18, picture(8, 3, 224, 224)),
    "mobilenet1": forward(mobilenet1, picture(1, 3, 224, 224)),
    "mobilenet1-b8": forward(mobilenet1, picture(8, 3, 224, 224)),
    "mobilenet2": forward(mobilenet2, picture(1, 3, 224, 224)),
    "densenet121": forward(densenet121, picture(1, 3, 224, 224)),
    "digits-step": step(digits, picture(128, 1, 28, 28), 10, sgd),
    "resnet18-step": step(resnet18, picture(32, 3, 64, 64), 10, sgd),
    "mlp-step": step(mlp, picture(32, 784), 10, adam),
    "cnn-step": step(digits, picture(128, 1, 28, 28), 10, adam),
    "gpt-step": step(lambda: Gpt(4, 64, 128, 4, 65, False), tokens(12, 64, 65), 64, adam),
    "gpt2-64": forward(lambda: Gpt(12, 64, 768, 12, 50257, True), tokens(1, 64, 50257)),
}


def gpu_seconds(run, times):
    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    torch.cuda.synchronize()
    begin.record()
    for _ in range(times):
        run()
    end.record()
    torch.cuda.synchronize()
    return begin.elapsed_time(end) / 1e3


def cpu_seconds(run, times):
    begin = time.perf_counter()
    for _ in range(times):
        run()
    return time.perf_counter() - begin


def microseconds(run, samples=5):
    """The best of some samples. Of calls of seconds, as products of bf16 are without units for them, two are enough."""
    timed = gpu_seconds if options.device == "cuda" else cpu_seconds
    first = timed(run, 1)
    if first > 1:
        return min(first, timed(run, 1) if first < 10 else first) * 1e6
    timed(run, 2)
    times = max(1, int(20e-3 / max(timed(run, 1), 1e-6)))
    many = samples if times > 1 else max(samples, int(0.5 / max(timed(run, 1), 1e-6)))
    return min(timed(run, times) for _ in range(many)) / times * 1e6


groups = {"ops": ops, "small": small, "net": net}
cases = {}
for name in options.wanted or groups:
    cases.update(groups.get(name) or {name: next(g[name] for g in groups.values() if name in g)})
for name, make in cases.items():
    best = float("inf")
    for compiled in (False, True) if options.compile else (False,):
        call = make()
        best = min(best, microseconds(call if name in net or not compiled else torch.compile(call)))
    print(json.dumps({"case": name, "us": round(best, 2)}), flush=True)
