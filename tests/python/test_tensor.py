"""Tensors as a user has them: data in and out, operators and indexing beside NumPy's on random shapes, printing, errors."""
import array
import copy
import math
import operator
import pathlib
import pickle
import random
import unittest

from support import Case, needs_numpy, numbers, numpy
from tinygrad_c import ArgumentError, DTypeError, Device, OutOfRangeError, ShapeError, StateError, Tensor, TinygradError, Variable, dtypes, lib

SHAPES = [(), (1,), (3,), (0,), (2, 3), (3, 1), (1, 3), (2, 0), (0, 3), (2, 1, 3), (4, 2, 3)]


class Data(Case):
    def test_lists(self):
        for data, dtype, shape in [([[1, 2], [3, 4]], dtypes.int32, (2, 2)), ([1.5, 2], dtypes.float32, (2,)), ([True, False], dtypes.bool, (2,)),
                                   (3, dtypes.int32, ()), (2.5, dtypes.float32, ()), (True, dtypes.bool, ()), ([], dtypes.float32, (0,)),
                                   ([[], []], dtypes.float32, (2, 0)), ([1 << 40], dtypes.int64, (1,)), ([1 << 63], dtypes.uint64, (1,)),
                                   (((1, 2), (3, 4)), dtypes.int32, (2, 2)), (range(3).__class__(3) and [0, 1, 2], dtypes.int32, (3,))]:
            t = Tensor(data)
            self.assertEqual((t.dtype, t.shape), (dtype, shape))
            self.assertEqual(t.tolist(), [list(r) for r in data] if isinstance(data, tuple) else data)
        self.assertEqual(Tensor([1, 2], dtype=dtypes.float16).dtype, dtypes.float16)
        self.assertEqual(Tensor([0.1], dtype="float64").item(), 0.1)
        self.assertEqual(Tensor([300], dtype=dtypes.uint8).item(), 44)
        self.assertEqual(Tensor([Tensor([1, 2]), Tensor([3, 4])]).tolist(), [[1, 2], [3, 4]])
        for wrong in ([[1], [2, 3]], [[1], 2], [1, [2]]):
            with self.assertRaises(ValueError):
                Tensor(wrong)
        for wrong in ("abc", object(), ["a"], [None], 1j):
            with self.assertRaises(TypeError):
                Tensor(wrong)
        self.assertEqual(Tensor().shape, (0,))

    def test_buffers(self):
        self.assertEqual(Tensor(array.array("d", [1.5, 2])).tolist(), [1.5, 2])
        self.assertEqual(Tensor(array.array("l", [1, 2])).dtype, dtypes.int64)
        self.assertEqual(Tensor(b"\x01\xff").tolist(), [1, 255])
        self.assertEqual(Tensor(bytearray(b"ab")).dtype, dtypes.uint8)
        self.assertEqual(Tensor(memoryview(array.array("f", range(6))).cast("B").cast("f", (2, 3))).shape, (2, 3))
        self.assertEqual(Tensor(memoryview(b"abcdef")[::2]).tolist(), [97, 99, 101])
        view = Tensor([[1, 2], [3, 4]]).data()
        self.assertEqual((view.shape, view.format, view.tolist()), ((2, 2), "i", [[1, 2], [3, 4]]))
        at = self.folder() / "f"
        at.write_bytes(b"\x07\x08")
        self.assertEqual(Tensor(pathlib.Path(at)).tolist(), [7, 8])

    def test_dtypes(self):
        for name in ("bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "float16", "bfloat16", "float32", "float64", "fp8e4m3", "fp8e5m2"):
            d = dtypes.of(name)
            t = Tensor([0, 1, 1]).cast(d)
            self.assertEqual((t.dtype, t.tolist(), t.nbytes()), (d, [0, 1, 1], 3 * d.itemsize))
            self.assertIs(copy.deepcopy(d), d)
            self.assertEqual(pickle.loads(pickle.dumps(t)).dtype, d)
        self.assertIs(dtypes.of(float), dtypes.float32)
        self.assertIs(dtypes.half, dtypes.float16)
        self.assertTrue(dtypes.is_float(dtypes.bfloat16) and dtypes.is_int(dtypes.uint8) and dtypes.is_unsigned(dtypes.uint8) and not dtypes.is_int(dtypes.bool))

    @needs_numpy
    def test_arrays(self):
        for dtype in ("bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "float16", "float32", "float64"):
            for shape in SHAPES:
                a = numpy.asarray(numpy.random.default_rng(1).uniform(0, 100, shape)).astype(dtype)
                t = Tensor(a)
                self.assertEqual((t.shape, t.dtype.name), (a.shape, dtype))
                got = t.numpy()
                self.assertEqual((got.dtype, got.shape), (a.dtype, a.shape))
                self.assertTrue((got == a).all())
                self.assertEqual(t.tolist(), a.tolist())
        a = numpy.arange(12.0).reshape(3, 4)
        self.assertTrue((Tensor(a.T[::-1, 1:]).numpy() == a.T[::-1, 1:]).all())
        frozen = a.copy()
        frozen.flags.writeable = False
        self.assertTrue((Tensor(frozen).numpy() == a).all())
        self.assertEqual(Tensor(numpy.float64(2.5)).dtype, dtypes.float64)
        self.assertEqual(Tensor([a[0], a[1]]).shape, (2, 4))
        with self.assertRaisesRegex(TypeError, "high byte"):
            Tensor(a.astype(">f8"))
        with self.assertRaises(TypeError):
            Tensor(a.astype(complex))
        t = Tensor(a, dtype=dtypes.float32)
        self.assertTrue((numpy.asarray(t) == a).all() and (numpy.array(t, dtype="int64") == a).all())
        self.assertIsInstance(a + t, Tensor)
        self.assertIsInstance(numpy.float32(2) * t, Tensor)
        self.close(a @ t.T.double(), a @ a.T)
        self.close(numpy.mean(t), a.mean())
        self.close(numpy.std(t, axis=0), a.std(axis=0))
        x = t.numpy()
        x[:] = 0
        self.assertEqual(t.sum().item(), 66)  # memory of its own

    def test_numbers(self):
        t = Tensor([[2.5]])
        self.assertEqual((float(t), int(t), bool(t), t.item(), f"{t:.2f}", f"{Tensor(3):03d}"), (2.5, 2, True, 2.5, "2.50", "003"))
        self.assertEqual([10, 20, 30][Tensor(1)], 20)
        self.assertEqual(Tensor(1).cast("bfloat16").item(), 1.0)
        self.assertEqual(round(Tensor([2.567]), 1).tolist()[0], Tensor([2.6]).item())
        for wrong in (Tensor([1, 2]), Tensor([])):
            with self.assertRaises(ValueError):
                bool(wrong)
            with self.assertRaises(ShapeError):
                wrong.item()
        with self.assertRaises(TypeError):
            len(Tensor(1))
        with self.assertRaises(TypeError):
            [1, 2][Tensor(0.5)]
        self.assertEqual([r.tolist() for r in Tensor([[1, 2], [3, 4]])], [[1, 2], [3, 4]])
        self.assertEqual(len({Tensor(1), Tensor(1)}), 2)

    def test_copies(self):
        t = Tensor([[1.0, 2.0]], requires_grad=True)
        for again in (copy.deepcopy(t), pickle.loads(pickle.dumps(t)), copy.copy(t)):
            self.assertEqual((again.tolist(), again.requires_grad), ([[1.0, 2.0]], True))
            self.assertIsNot(again, t)
        u = Tensor(t)
        u.assign(Tensor([[5.0, 6.0]])).realize()
        self.assertEqual(t.tolist(), [[1.0, 2.0]])


class Operators(Case):
    TWO = [operator.add, operator.sub, operator.mul, operator.truediv, operator.lt, operator.le, operator.gt, operator.ge, operator.eq, operator.ne]

    @needs_numpy
    def test_beside_numpy(self):
        draw = random.Random(2)
        rng = numpy.random.default_rng(2)
        for _ in range(60):
            shape = draw.choice(SHAPES)
            other = tuple(draw.choice([n, 1]) for n in shape)[draw.randint(0, len(shape)):] if shape else draw.choice(SHAPES)
            a, b = (numpy.asarray(rng.uniform(.5, 4, s).astype("float32")) for s in (shape, other))
            f = draw.choice(self.TWO)
            with numpy.errstate(all="ignore"):
                self.close(f(Tensor(a), Tensor(b)), f(a, b), 1e-5, f"{f.__name__} {shape} {other}")
                self.close(f(Tensor(a), 2), f(a, 2), 1e-5)
                self.close(f(2.5, Tensor(a)), f(numpy.float32(2.5), a), 1e-5)
            self.assertEqual(f(Tensor(a), Tensor(b)).shape, f(a, b).shape)
        for f in (operator.floordiv, operator.mod, operator.and_, operator.or_, operator.xor, operator.lshift, operator.rshift, operator.pow):
            a, b = rng.integers(1, 9, (2, 3)).astype("int32"), rng.integers(1, 5, (3,)).astype("int32")
            self.assertEqual(f(Tensor(a), Tensor(b)).tolist(), f(a, b).tolist(), f.__name__)
            self.assertEqual(f(Tensor(a), 3).tolist(), f(a, 3).tolist(), f.__name__)
            self.assertEqual(f(3, Tensor(b)).tolist(), f(numpy.int32(3), b).tolist(), f.__name__)

    def test_numbers(self):
        i, f, b = Tensor([1, 2, 3]), Tensor([1.0, 2.0, 3.0]), Tensor([True, False, True])
        for got, want, dtype in [(2 - i, [1, 0, -1], "int32"), (1 / f, [1, .5, 1 / 3], "float32"), (2 ** f, [2, 4, 8], "float32"), (i * 1.0, [1, 2, 3], "float32"),
                                 (i + .5, [1.5, 2.5, 3.5], "float32"), (i / 2, [.5, 1, 1.5], "float32"), (7 // i, [7, 3, 2], "int32"), (7 % i, [0, 1, 1], "int32"),
                                 (i ** 2, [1, 4, 9], "int32"), (i > 1.5, [False, True, True], "bool"), (i == 2, [False, True, False], "bool"), (2.0 < f, [False, False, True], "bool"),
                                 (~b, [False, True, False], "bool"), (b & True, [True, False, True], "bool"), (False | b, [True, False, True], "bool"), (b ^ b, [False] * 3, "bool"),
                                 (i & 1, [1, 0, 1], "int32"), (4 | i, [5, 6, 7], "int32"), (1 << i, [2, 4, 8], "int32"), (i << 1, [2, 4, 6], "int32"), (-f, [-1, -2, -3], "float32"),
                                 (abs(-i), [1, 2, 3], "int32"), (+i, [1, 2, 3], "int32"), (f * math.inf, [math.inf] * 3, "float32"), (i.long() + (1 << 60), [(1 << 60) + n for n in (1, 2, 3)], "int64"),
                                 (f.half() + 1, [2, 3, 4], "float16"), (f + True, [2, 3, 4], "float32"), (i + [1, 1, 1], [2, 3, 4], "int32"), (b.where(1.0, 0.5), [1, .5, 1], "float32"),
                                 (b.where(i, 0), [1, 0, 3], "int32"), (f.maximum(2), [2, 2, 3], "float32"), (f.pow(2), [1, 4, 9], "float32")]:
            self.close(got, want)
            self.assertEqual(got.dtype.name, dtype)
        for wrong in (lambda: f + "a", lambda: None * f, lambda: f < object()):
            with self.assertRaises(TypeError):
                wrong()
        self.assertFalse(i.__eq__("a") is True)
        with self.assertRaises(DTypeError):
            f << 1
        self.close(Tensor([[1.0, 2], [3, 4]]) @ Tensor([1.0, 1.0]), [3, 7])
        self.close([1.0, 1.0] @ Tensor([[1.0, 2], [3, 4]]), [4, 6])

    def test_in_place(self):
        t = Tensor([1.0, 2.0, 3.0])
        view, same = t[1:], t
        t += 1
        t *= 2
        t -= Tensor([1.0, 1.0, 1.0])
        self.assertIs(t, same)
        self.assertEqual((t.tolist(), view.tolist()), ([3, 5, 7], [5, 7]))
        x = Tensor([2.0], requires_grad=True)
        loss = (x * 3).sum()
        loss += (x * x).sum()  # of an expression: gradients go on
        loss.backward()
        self.assertEqual(x.grad.tolist(), [7])
        i = Tensor([1, 2])
        with self.assertRaises(DTypeError):
            i += .5
        with self.assertRaises(TypeError):
            i += "a"
        self.assertEqual(i.tolist(), [1, 2])


class Indexing(Case):
    def random_index(self, draw, shape):
        index, axes, arrays = [], list(shape), 0
        ellipsis = draw.random() < .3
        for n in axes[:draw.randint(0, len(axes))]:
            kind = draw.choice(["slice", "step", "int", "new", "all", "array"])
            if kind == "new":
                index.append(None)
            if kind == "int" and n:
                index.append(draw.randrange(-n, n))
            elif kind == "array" and n and not arrays:
                index.append(numpy.asarray([draw.randrange(-n, n) for _ in range(draw.randint(1, 3))]))
                arrays += 1
            elif kind == "step":
                index.append(slice(draw.choice([None, -n - 1, 0, 1]), draw.choice([None, n, -1]), draw.choice([1, 2, -1, -2])))
            else:
                index.append(slice(draw.choice([None, 0, 1, -2]), draw.choice([None, n, n - 1, 5])))
        if ellipsis:
            index.insert(draw.randint(0, len(index)) if not arrays else len(index), Ellipsis)
        return tuple(index)

    @needs_numpy
    def test_beside_numpy(self):
        draw = random.Random(3)
        for _ in range(120):
            shape = draw.choice([s for s in SHAPES if s])
            a = numpy.arange(math.prod(shape), dtype="float32").reshape(shape)
            index = self.random_index(draw, shape)
            try:
                want = a[index]
            except IndexError:
                with self.assertRaises(IndexError):
                    Tensor(a)[index]
                continue
            ours = tuple(Tensor(i) if isinstance(i, numpy.ndarray) and draw.random() < .5 else i for i in index)
            got = Tensor(a)[ours]
            self.assertEqual((got.shape, got.tolist()), (want.shape, want.tolist()), f"{shape} {index}")
            t, b = Tensor(a).realize(), a.copy()
            t[ours] = -1
            b[index] = -1
            self.assertEqual(t.tolist(), b.tolist(), f"{shape} {index}")

    def test_more(self):
        t = Tensor([[1, 2, 3], [4, 5, 6]])
        self.assertEqual(t[t > 2].tolist(), [3, 4, 5, 6])
        self.assertEqual(t[[1, 0]].tolist(), [[4, 5, 6], [1, 2, 3]])
        self.assertEqual(t[[0, 1], [2, 0]].tolist(), [3, 4])
        self.assertEqual(t[:, [True, False, True]].tolist(), [[1, 3], [4, 6]])
        self.assertEqual(t[..., -1].tolist(), [3, 6])
        self.assertEqual(t[Tensor(1)].tolist(), [4, 5, 6])
        self.assertEqual(t[[]].shape, (0, 3))
        self.assertEqual((t[0, 1].shape, t[0, 1].item()), ((), 2))
        t[0] = Tensor([7, 8, 9])
        t[:, 1] = [0, 0]
        t[t == 9] = 1
        t[1] = Tensor([2.0, 2.0, 2.0])  # takes the tensor's dtype
        self.assertEqual(t.tolist(), [[7, 0, 1], [2, 2, 2]])
        for wrong in (lambda: t[2], lambda: t[0, 0, 0], lambda: t[5:, 7]):
            with self.assertRaises(IndexError) as e:
                wrong()
            self.assertIsInstance(e.exception, OutOfRangeError)
        for wrong in ("a", 1.5, True, [1.5]):
            with self.assertRaises(TypeError):
                t[wrong]
        with self.assertRaises(ValueError):
            t[::0]
        with self.assertRaises(TypeError):
            del t[0]
        n = Variable("n", 1, 2)
        part = t[:n.bind(1)]
        self.assertEqual((part.shape, part.sum().item()), ((1, 3), 8))
        n.bind(2)
        self.assertEqual((part.shape, part.sum().item(), n.value, repr(n)), ((2, 3), 14, 2, "Variable('n', 1, 2).bind(2)"))
        self.assertEqual((n * 2 + 1).tensor().item(), 5)


class Text(Case):
    def test_repr(self):
        self.assertEqual(repr(Tensor([[1, 2], [3, 40]])), "Tensor([[ 1,  2],\n        [ 3, 40]], dtype=dtypes.int32, device='INTERP')")
        self.assertIn("[1.0000, 2.5000]", str(Tensor([1, 2.5])))
        self.assertIn("Tensor(3.5000", repr(Tensor(3.5)))
        self.assertIn("[ 1., nan, inf]", repr(Tensor([1.0, math.nan, math.inf])))
        self.assertIn("e+10", repr(Tensor([1.5e10])))
        self.assertIn("Tensor([]", repr(Tensor([])))
        self.assertIn("True", repr(Tensor([True])))
        self.assertIn("requires_grad=True", repr(Tensor([1.0], requires_grad=True)))
        long = repr(Tensor.arange(100000).reshape(100, 1000))
        self.assertIn("..", long)
        self.assertLess(len(long), 800)
        self.assertIn("99999]]", long)
        self.assertIn("not computed", repr(Tensor.empty(3)))


class Errors(Case):
    def test_kinds(self):
        for wrong, kinds, words in [(lambda: Tensor([1, 2]).reshape(3), (ShapeError, ValueError), "reshape"), (lambda: Tensor([1.0]).bitand(1), (DTypeError, TypeError), "bitand"),
                                    (lambda: Tensor([1.0]) + Tensor([1.0, 2]) + Tensor([1.0, 2, 3]), (ShapeError,), "(2)"), (lambda: Tensor.empty(2).tolist(), (StateError,), "value"),
                                    (lambda: Tensor.from_file("/nothing/there"), (OSError,), "/nothing/there"), (lambda: Tensor([1.0]).to("NOWHERE"), (ValueError,), "NOWHERE"),
                                    (lambda: Tensor([[1.0]]).backward(), (TinygradError,), "backward")]:
            with self.assertRaises(TinygradError) as e:
                wrong()
            for kind in kinds:
                self.assertIsInstance(e.exception, kind)
            self.assertIn(words, str(e.exception))
            self.assertGreater(e.exception.status, 0)
            self.assertEqual(Tensor([1, 2]).sum().item(), 3)  # the context goes on

    def test_library(self):
        self.assertEqual(lib.tg_version(), "0.1.0")
        self.assertIn("tg_llm_open", dir(lib))
        with self.assertRaises(AttributeError):
            lib.tg_nothing
        state = lib.tg_state_new()
        for wrong in (lambda: lib.tg_onnx_opset("a"), lambda: lib.tg_onnx_opset(5), lambda: lib.tg_onnx_opset(state), lambda: lib.tg_from(5, "int32", [1]),
                      lambda: lib.tg_linear_run(state, Tensor([1.0]))):
            with self.assertRaises(TypeError):
                wrong()
        for _ in range(3):
            lib.tg_state_put(state, "a", [1.5, 2.5])  # what is made of a list lives as long as the dictionary
            [Tensor([float(i)] * 2).realize() for i in range(20)]
        self.assertEqual((lib.tg_state_count(state), lib.tg_state_get(state, "a").tolist(), lib.tg_state_get(state, "b")), (1, [1.5, 2.5], None))
        state.free()
        with self.assertRaises(StateError):
            lib.tg_state_count(state)
        with self.assertRaises(ArgumentError):
            Tensor.cat([])
        for name in ("tg_release", "tg_close", "tg_state_free"):
            self.assertFalse(hasattr(lib, name))
        told = []
        lib.tg_watch_kernels(lambda kernel, user: told.append(kernel))
        (Tensor([1.0, 2.0]) * 3).realize()
        lib.tg_watch_kernels(None)
        self.assertTrue(told)
        parts = Tensor([1, 2, 3]).shard(["INTERP", "INTERP:1"])
        self.assertEqual((lib.tg_shard_bounds(parts, bounds=3), lib.tg_comm_max(value=[5])), ([0, 2, 3], [5]))
        self.assertEqual(lib.tg_read_f64(Tensor([1, 2]), 2), [1.0, 2.0])
        self.assertIn("INTERP", Device.names())
        self.assertEqual(Device.DEFAULT, "INTERP")
        Device.DEFAULT = "INTERP:1"
        self.assertEqual(Tensor([1.0]).device, "INTERP:1")
        Device.DEFAULT = "INTERP"

    def test_draws(self):
        Tensor.manual_seed(7)
        a = Tensor.rand(4).tolist()
        Tensor.manual_seed(7)
        self.assertEqual(Tensor.rand(4).tolist(), a)
        self.assertTrue(all(5 <= n < 9 for n in Tensor.randint(50, low=5, high=9).tolist()))
        self.assertTrue(all(5 <= n < 9 for n in Tensor.randint((50,), 5, 9).tolist()))
        self.assertEqual([Tensor.arange(3).tolist(), Tensor.arange(1, 3).tolist(), Tensor.arange(1, 0, -.5).tolist()], [[0, 1, 2], [1, 2], [1, .5]])
        self.assertEqual(Tensor.arange(3.0).dtype, dtypes.float32)
        self.assertTrue(Tensor.zeros(2, requires_grad=True).requires_grad)


if __name__ == "__main__":
    unittest.main()
