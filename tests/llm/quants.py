"""Random blocks of ggml's quantised types, and their values, in NumPy and f64, written from the descriptions of the
types. blocks(random, NAME, rows, columns, size) -> the bytes of a file, and the matrix that they stand for, whose
largest values are about size."""
import numpy as np

NL = np.array([-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113])
E2M1 = np.array([0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12])


def halves(q):
    """Bytes (n, k): their low nibbles, then their high ones"""
    return np.concatenate([q & 15, q >> 4], -1)


def bits(q, width):
    """Bytes (n, k): (n, 8 / width, k), the lowest bits first"""
    return np.stack([q >> s & (1 << width) - 1 for s in range(0, 8, width)], 1)


def sixes(s):
    """12 bytes: eight scales and eight minima of six bits"""
    low, high, rest = s[:, 0:4], s[:, 4:8], s[:, 8:12]
    return np.concatenate([low & 63, rest & 15 | low >> 6 << 4], 1), np.concatenate([high & 63, rest >> 4 | high >> 6 << 4], 1)


def fifth(b):
    """32 bits, one of each element"""
    return np.unpackbits(b.astype(np.uint8), axis=1, bitorder="little").astype(int)


def q4_k(b, d, m, five):
    scale, least = sixes(b[:, 4:16])
    q = np.concatenate([halves(b[:, at:at + 32]) for at in range(48 if five else 16, 176 if five else 144, 32)], 1)
    if five:
        q = q + 16 * bits(b[:, 16:48], 1).reshape(len(b), 256)
    return d * np.repeat(scale, 32, 1) * q - m * np.repeat(least, 32, 1)


def q6_k(b, d):
    q = []
    for half in range(2):
        low, high = b[:, 64 * half:64 * half + 64], bits(b[:, 128 + 32 * half:160 + 32 * half], 2)
        q.append(np.concatenate([low & 15, low >> 4], 1) + 16 * high.reshape(len(b), 128))
    scale = b[:, 192:208].astype(np.uint8).view(np.int8).astype(int)
    return d * np.repeat(scale, 16, 1) * (np.concatenate(q, 1) - 32)


def q3_k(b, d):
    q = np.concatenate([bits(b[:, at:at + 32], 2).reshape(len(b), 128) for at in (32, 64)], 1)
    q = q + 4 * bits(b[:, :32], 1).reshape(len(b), 256) - 4
    scale = halves(b[:, 96:104]) + 16 * bits(b[:, 104:108], 2).reshape(len(b), 16) - 32
    return d * np.repeat(scale, 16, 1) * q


def q2_k(b, d, m):
    q = np.concatenate([bits(b[:, at:at + 32], 2).reshape(len(b), 128) for at in (16, 48)], 1)
    return d * np.repeat(b[:, :16] & 15, 16, 1) * q - m * np.repeat(b[:, :16] >> 4, 16, 1)


def iq4_xs(b, d):
    low = np.stack([b[:, 4:8] & 15, b[:, 4:8] >> 4], 2).reshape(len(b), 8)
    high = (b[:, 2:3] | b[:, 3:4] << 8) >> np.arange(0, 16, 2) & 3
    q = np.concatenate([halves(b[:, at:at + 16]) for at in range(8, 136, 16)], 1)
    return d * np.repeat(low + 16 * high - 32, 32, 1) * NL[q]


# type: number, elements and bytes of a block, places of its halves; the largest value where these are 1; the second of
# halves beside the first; values of bytes b and halves d, m
TYPES = {
    "Q4_0": (2, 32, 18, (0,), 8, 0, lambda b, d, m: d * (halves(b[:, 2:]) - 8)),
    "Q4_1": (3, 32, 20, (0, 2), 8, -7.5, lambda b, d, m: d * halves(b[:, 4:]) + m),
    "Q5_0": (6, 32, 22, (0,), 16, 0, lambda b, d, m: d * (halves(b[:, 6:]) + 16 * fifth(b[:, 2:6]) - 16)),
    "Q5_1": (7, 32, 24, (0, 2), 16, -15.5, lambda b, d, m: d * (halves(b[:, 8:]) + 16 * fifth(b[:, 4:8])) + m),
    "Q8_0": (8, 32, 34, (0,), 128, 0, lambda b, d, m: d * b[:, 2:].astype(np.uint8).view(np.int8).astype(int)),
    "Q2_K": (10, 256, 84, (80, 82), 24, 1.5, q2_k),
    "Q3_K": (11, 256, 110, (108,), 128, 0, lambda b, d, m: q3_k(b, d)),
    "Q4_K": (12, 256, 144, (0, 2), 500, 7.5, lambda b, d, m: q4_k(b, d, m, False)),
    "Q5_K": (13, 256, 176, (0, 2), 1000, 15.5, lambda b, d, m: q4_k(b, d, m, True)),
    "Q6_K": (14, 256, 210, (208,), 4096, 0, lambda b, d, m: q6_k(b, d)),
    "IQ4_NL": (20, 32, 18, (0,), 128, 0, lambda b, d, m: d * NL[halves(b[:, 2:])]),
    "IQ4_XS": (23, 256, 136, (0,), 4096, 0, lambda b, d, m: iq4_xs(b, d)),
    "MXFP4": (39, 32, 17, (), 12, 0, lambda b, d, m: 2.0 ** (b[:, :1] - 128.0) * E2M1[halves(b[:, 1:])]),
}


def blocks(random, name, rows, columns, size):
    _, block, nbytes, places, largest, beside, values = TYPES[name]
    n = rows * columns // block
    b = random.integers(0, 256, (n, nbytes)).astype(np.uint8)
    d = (size / largest * random.uniform(0.5, 1, (n, 1))).astype("<f2")
    for place, x in zip(places, (d, (d.astype(float) * beside).astype("<f2"))):
        b[:, place:place + 2] = x.view(np.uint8)
    if not places:
        b[:, 0] = np.log2(size / largest).round() + 128 - random.integers(0, 2, n)
    half = [b[:, place:place + 2].copy().view("<f2").astype(float) for place in places] + [None, None]
    return b.tobytes(), values(b.astype(int), half[0], half[1]).reshape(rows, columns)
