#!/usr/bin/env python3
"""Prints tests/goldens/random.txt: the first numbers of tinygrad's random stream, from the description of the algorithm and nothing else.

threefry2x32 with 20 rounds (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", 2011). A draw of n words at counter c:
  k = threefry(block c, key (device, seed)), device = the low 32 bits of SHA-256(0000);  h = ceil(n/2)
  word i = low half of threefry(block (i, i+h), key k) for i < h, the high halves after them.
An element of b bytes takes b bytes of the words, little endian; its top mantissa-width bits go under the exponent of 1.0, and 1 is taken off.
    python3 tests/goldens/make_random.py > tests/goldens/random.txt
"""
import hashlib, math, struct

MASK = 0xffffffff
def threefry(block, key):
    k = [key[0], key[1], key[0] ^ key[1] ^ 0x1BD11BDA]
    a, b = (block[0] + k[0]) & MASK, (block[1] + k[1]) & MASK
    for group in range(5):
        for r in ((13, 15, 26, 6), (17, 29, 16, 24))[group % 2]:
            a = (a + b) & MASK
            b = ((b << r | b >> (32 - r)) & MASK) ^ a
        a, b = (a + k[(group + 1) % 3]) & MASK, (b + k[(group + 2) % 3] + group + 1) & MASK
    return a, b
assert threefry((0, 0), (0, 0)) == (0x6b200159, 0x99ba4efe)           # the vectors of the authors' Random123
assert threefry((MASK, MASK), (MASK, MASK)) == (0x1cb996fc, 0xbb002be7)
assert threefry((0x243f6a88, 0x85a308d3), (0x13198a2e, 0x03707344)) == (0xc4923a9c, 0x483df7a0)

DEVICE = int.from_bytes(hashlib.sha256(bytes(4)).digest()[-4:], "big")
SIZE = {"fp8e4m3": (1, 3, 0x38), "fp8e5m2": (1, 2, 0x3c), "f16": (2, 10, 0x3c00), "bf16": (2, 7, 0x3f80), "f32": (4, 23, 0x3f800000), "f64": (8, 52, 0x3ff0000000000000)}
def f32(x): return struct.unpack("<f", struct.pack("<f", x))[0]

def random_bits(key, counter, n):
    k, h = threefry(counter, key), (n + 1) // 2
    pairs = [threefry((i, i + h), k) for i in range(h)]
    return ([p[0] for p in pairs] + [p[1] for p in pairs])[:n]

class Stream:
    def __init__(self, seed): self.seed, self.counter = seed & MASK, 0
    def rand(self, n, dtype):
        size, mant, one = SIZE[dtype]
        count = (n * size + 3) // 4
        raw = b"".join(struct.pack("<I", w) for w in random_bits((DEVICE, self.seed), (self.counter & MASK, self.counter >> 32), count))
        self.counter += count
        bits = [int.from_bytes(raw[i * size:(i + 1) * size], "little") for i in range(n)]
        return [((b >> (8 * size - mant)) | one) & ((1 << mant) - 1) for b in bits], mant      # (1 + m / 2^mant) - 1 is exact
    def unit(self, n, dtype="f32"):
        m, mant = self.rand(n, dtype)
        return [v / 2 ** mant for v in m]
    def uniform(self, n, low, high): return [f32(f32(f32(high - low) * u) + f32(low)) for u in self.unit(n)]
    def randn(self, n):
        u = self.unit(2 * n)
        return [math.cos(f32(u[i] * f32(2 * math.pi))) * math.sqrt(-2 * math.log(f32(1 - u[n + i]))) for i in range(n)]

def show(name, values): print(name, "=", " ".join(v if isinstance(v, str) else repr(v) for v in values))
print("# Made by tests/goldens/make_random.py; do not edit. After `seed`: one stream, in this order. A number per element, row-major.")
for key, counter, n in (((1, 2), (3, 0), 5), ((0xdeadbeef, 0), (MASK, 7), 8), ((DEVICE, 42), (0, 0), 1)):
    show("bits %d %d %d %d %d" % (*key, *counter, n), random_bits(key, counter, n))
for seed in (0, 42, 1337, 0xffffffff, 0x123456789):
    s = Stream(seed)
    print("seed", seed)
    show("rand f32 6", s.unit(6))
    show("rand f32 1", s.unit(1))
    for dtype in ("f16", "bf16", "fp8e4m3", "fp8e5m2", "f64", "f32"): show("rand %s 7" % dtype, s.unit(7, dtype))
    show("randn f32 5", s.randn(5))
    show("randint 5 10 8", [int(f32(5 * u)) + 5 for u in s.unit(8)])
    show("randint -1000 1000 4", [int(f32(2000 * u)) - 1000 for u in s.unit(4)])
    show("uniform -2.5 7.25 4", s.uniform(4, -2.5, 7.25))
    show("normal 10 2 4", [2 * x + 10 for x in s.randn(4)])
    b = math.sqrt(6 / (1 + 0.01 ** 2) / 6)
    show("kaiming_uniform 0 12", s.uniform(12, -b, b))
    b = math.sqrt(6 / (1 + 5) / 6)
    show("kaiming_uniform 2.23606797749979 12", s.uniform(12, -b, b))
    show("kaiming_normal 0 12", [math.sqrt(2 / (1 + 0.01 ** 2) / 6) * x for x in s.randn(12)])
    b = math.sqrt(6 / (2 + 6))
    show("glorot_uniform 12", s.uniform(12, -b, b))
    show("scaled_uniform 12", [x * 12 ** -0.5 for x in s.uniform(12, -1, 1)])
    w = [1, 2, 3, 4]
    u = s.unit(10)
    show("multinomial 10", [sum(x >= f32(sum(w[:i + 1]) / 10) for i in range(4)) for x in u])
    keys = [math.log2(x) / v if x else -math.inf for x, v in zip(s.unit(4), w)]
    show("choose 3", sorted(range(4), key=lambda i: -keys[i])[:3])
    show("dropout 0.25 8", [0.0 if x < 0.25 else 1 / 0.75 for x in s.unit(8)])
    show("rand f32 3", s.unit(3))
