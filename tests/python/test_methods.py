"""Every method that is made of the headers is called, with tensors that suit it; its result beside NumPy's, where NumPy has a
function of that name or meaning."""
import inspect
import pathlib
import tempfile
import unittest

from support import Case, numbers, numpy
from tinygrad_c import Tensor, Variable, dtypes

X, Y, Z = numbers(1, 2, 3), numbers(2, 2, 3), numbers(3, 2, 3)
WORDS = [[1, -2, 3], [4, 5, -6]]
# NumPy's name, or a function of NumPy's arrays, where the name is another.
NUMPY = {"asin": "arcsin", "acos": "arccos", "atan": "arctan", "asinh": "arcsinh", "acosh": "arccosh", "atanh": "arctanh", "neg": "negative",
         "atan2": "arctan2", "pow": "power", "div": "divide", "sub": "subtract", "mul": "multiply", "lt": "less", "gt": "greater",
         "le": "less_equal", "ge": "greater_equal", "eq": "equal", "ne": "not_equal", "floordiv": "floor_divide", "idiv": "floor_divide",
         "bitand": "bitwise_and", "bitor": "bitwise_or", "bitxor": "bitwise_xor", "shl": "left_shift", "shr": "right_shift", "logical_not": "logical_not",
         "lshift": "left_shift", "rshift": "right_shift", "concat": "concatenate", "cat": "concatenate", "mm": "matmul", "bitnot": "bitwise_not",
         "mod": "remainder"}
AS_IT_STANDS = """add maximum minimum exp exp2 log log2 log10 sin cos tan sinh cosh sqrt reciprocal square abs sign trunc floor ceil isnan isinf isposinf
  isneginf isfinite signbit tanh logaddexp copysign sum prod max min mean any all argmax argmin cumsum cumprod matmul dot tril triu diag bitwise_and
  bitwise_or bitwise_xor bitwise_not negative sort argsort stack fmod""".split()
NOT_COMPUTED = {"empty", "empty_like", "hash"}  # without a value; of a mebibyte, which takes long where it is interpreted
WITHOUT = {"shard", "replicate", "shard_like", "shard_part"}  # of several devices: test_more_devices


def arguments():
    """name -> (arguments, options): what is not one or two tensors of (2, 3)."""
    t, labels, parameter = Tensor(X), Tensor([0, 2]), Tensor(X, requires_grad=True)
    square = Tensor(numbers(4, 3, 3))
    image, kernel = Tensor(numbers(5, 1, 2, 6, 6)), Tensor(numbers(6, 4, 2, 3, 3))
    positive = Tensor(numbers(7, 2, 3, lo=0.1, hi=0.9))
    found = {
        "reshape": ([t, 3, -1],), "view": ([t, (3, 2)],), "expand": ([t[None], 4, -1, -1],), "broadcast_to": ([t, (4, 2, 3)],), "permute": ([t, 1, 0],),
        "pad_to": ([t, 4, 4],), "shrink_to": ([t, 1, 2],), "flip": ([t, 0],), "unflatten": ([t, 1, (3, 1)],), "unsqueeze": ([t, 0],), "slice": ([t, 1, 0, 2],),
        "select": ([t, 1, -1],), "split": ([t, 1],), "chunk": ([t, 2],), "cat": ([t, t],), "stack": ([t, t],),
        "diag": ([t[0]],), "roll": ([t, 1],), "unfold": ([t, 1, 2, 1],), "meshgrid": ([t[0], t[:, 0]],), "repeat": ([t, 2, 2],),
        "rearrange": ([t, "a (b c) -> a b c"], {"b": 3}), "where": ([t > 0, t, 0],), "masked_fill": ([t, t > 0, 9],), "clamp": ([t, -1, 1],),
        "lerp": ([t, Tensor(Y), 0.25],), "cast": ([t, dtypes.float16],), "bitcast": ([t, "int32"],),
        "dot4": ([Tensor(WORDS)] * 2,), "dot2": ([Tensor(WORDS)] * 2,), "hash": ([t.cast("uint8").reshape(6)],), "keccak": ([t.cast("uint8")],),
        "threefry": ([Tensor([1], dtype="uint64")] * 2,), "random_bits": ([Tensor([1, 2], dtype="uint32")] * 2 + [5],), "multinomial": ([positive, 2],),
        "einsum": (["ij,kj->ik", t, t],), "linear": ([t, square],), "qr": ([square],), "svd": ([square],), "newton_schulz": ([t, 2, [3.4445, -4.775, 2.0315]],),
        "conv2d": ([image, kernel],), "conv_transpose2d": ([image, Tensor(numbers(8, 2, 4, 3, 3))],), "max_pool2d": ([image],), "avg_pool2d": ([image, (3, 3)],),
        "interpolate": ([image, (4, 5)],), "max_unpool2d": ([*image.max_pool2d(indices=True)],), "take": ([t, labels % 2],),
        "embedding": ([square, labels],), "one_hot": ([labels, 4],), "gather": ([t, 1, Tensor([[0, 2], [1, 1]])],),
        "scatter": ([t, 1, Tensor([[0], [1]]), Tensor([[5.0], [6.0]])],), "scatter_reduce": ([t, 1, Tensor([[0], [1]]), Tensor([[5.0], [6.0]]), "add"],),
        "masked_select": ([t, t > 0],), "batch_norm": ([t, Tensor([0.0] * 3), Tensor([1.0] * 3)],), "batch_norm_train": ([t],),
        "scaled_dot_product_attention": ([t[None]] * 3,), "gradient": ([(leaf := Tensor(X)).square().sum(), leaf],),
        "vjp": ([leaf.square(), Tensor(Y), [leaf]],), "index_put": ([t, (0, slice(1, 3)), Tensor([7.0, 8.0])],), "assign": ([t.clone(), Tensor(Y)],),
        "replace": ([t.detach(), Tensor(Y)],), "full_like": ([t, 3],), "scalar_like": ([t, 3],), "cross_entropy": ([t, labels],), "nll": ([t.log_softmax(), labels],),
        "sparse_cross_entropy": ([t, labels],), "mse": ([t, Tensor(Y)],), "binary_cross_entropy": ([positive, Tensor([[1.0, 0, 1], [0, 0, 1]])],),
        "binary_cross_entropy_logits": ([t, Tensor([[1.0, 0, 1], [0, 0, 1]])],), "topk": ([t, 2],), "explain": ([t + 1],), "matmul": ([t, square],),
        "dot": ([t, square],), "matmul_": ([square.clone(), square],), "cumsum": ([t, 1],), "normalize": ([t],), "max_numel": ([t],), "nonzero": ([t > 0],),
        # what is written for Python
        "pad": ([t, ((1, 1), None)],), "shrink": ([t, ((0, 1), None)],), "repeat_interleave": ([t, 2],), "sequential": ([t, [Tensor.relu]],),
        "custom_gradient": ([t, [t], lambda g: g],), "backward": ([parameter.square().sum()],), "realize": ([t],), "numel": ([t],), "nbytes": ([t],), "size_of": ([t, 1],),
        # what makes tensors
        "from_text": (["[[1, 2], [3, 4]]"],), "from_bytes": ([b"abcd", "uint8"],), "empty": ([2, 3],), "full": ([(2, 3), 1.5],), "full_i64": ([[2], 1 << 40, "int64"],),
        "linspace": ([0, 1, 5],), "eye": ([3],), "randperm": ([5],), "size_tensor": ([Variable("n", 1, 9).bind(4)],),
    }
    path = pathlib.Path(tempfile.mkdtemp()) / "bytes"
    path.write_bytes(b"12345678")
    found["from_file"] = ([path],)
    for name in ("zeros", "ones", "rand", "randn", "uniform", "normal", "randint", "scaled_uniform", "kaiming_uniform", "kaiming_normal", "glorot_uniform"):
        found[name] = ([2, 3],)
    for name in ("bitand", "bitor", "bitxor", "bitnot", "bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_not", "truncdiv"):
        found[name] = ([Tensor(WORDS)] * (1 if name.endswith("not") else 2),)
    for name in ("shl", "shr", "lshift", "rshift"):
        found[name] = ([Tensor(WORDS).abs(), Tensor(2)],)
    for name in ("bitand_", "bitor_", "bitxor_", "shl_", "shr_", "floordiv_"):
        found[name] = ([Tensor(WORDS), Tensor(2)],)
    for name in ("add_", "sub_", "mul_", "div_", "pow_"):
        found[name] = ([Tensor(X), Tensor(2.0)],)
    for name in ("log", "log2", "log10", "sqrt", "rsqrt", "asin", "acos", "atanh", "reciprocal", "pow", "div"):
        found[name] = ([positive] * (2 if name in ("pow", "div") else 1),)
    found["acosh"] = ([positive + 1],)
    for alias, name in (("binary_crossentropy", "binary_cross_entropy"), ("binary_crossentropy_logits", "binary_cross_entropy_logits"), ("mm", "matmul"),
                        ("sparse_categorical_crossentropy", "sparse_cross_entropy"), ("nll_loss", "nll"), ("clip", "clamp"), ("concat", "cat"), ("concatenate", "cat")):
        found[alias] = found[name]
    found["zero_grad"] = ([parameter],)
    return found


def methods():
    return {name: getattr(v, "__func__", v) for name, v in vars(Tensor).items() if hasattr(getattr(v, "__func__", v), "__tinygrad__")}


class Methods(Case):
    def test_all(self):
        """Each is called, and what it gives is computed."""
        self.assertGreater(len(methods()), 250)
        given = arguments()
        for name, f in methods().items():
            if name in WITHOUT:
                continue
            with self.subTest(name):
                args, *more = given.get(name) or ([Tensor(v) for v in (X, Y, Z)[:sum(p.default is p.empty for p in inspect.signature(f).parameters.values())]],)
                made = getattr(Tensor, name)(*args, **(more[0] if more else {}))
                self.assertTrue(made is not None or name == "zero_grad")
                for t in made if isinstance(made, (tuple, list)) else [made]:
                    if isinstance(t, Tensor) and name not in NOT_COMPUTED:
                        self.assertEqual(len(t.flatten().tolist()), t.numel())
                if numpy is not None and (name in AS_IT_STANDS or name in NUMPY):
                    self.beside_numpy(name, args, made)

    def beside_numpy(self, name, args, made):
        args = [a.numpy() if isinstance(a, Tensor) else a for a in args]
        if name in ("cat", "stack", "concat", "concatenate"):
            args = [args]
        elif name in ("cumprod", "sort", "argsort"):
            args = [*args, 0 if name == "cumprod" else -1]
        want = getattr(numpy, NUMPY.get(name, name))(*args)
        self.close(made[0] if isinstance(made, tuple) else made, want, 3e-5, name)

    def test_more_devices(self):
        t = Tensor(X)
        parts = t.shard(["INTERP", "INTERP:1"], axis=1)
        self.assertEqual([parts.shard_count(), parts.shard_axis(), parts.device], [2, 1, "INTERP,INTERP:1"])
        self.close(parts.shard_part(1), [row[2:] for row in X])
        self.close(parts * 2, t * 2)
        self.close(t.replicate(["INTERP", "INTERP:1"]).gather_to("INTERP"), X)
        self.close(t.shard_like(parts), X)
        self.assertEqual(t.to("INTERP:1").device, "INTERP:1")

    def test_options(self):
        """Options as keywords and in their order, a zero that is written, other frameworks' names."""
        t = Tensor(X)
        self.close(t.sum(1), [sum(r) for r in X])
        self.assertEqual(t.sum(axis=(0, 1), keepdim=True).shape, (1, 1))
        self.assertEqual(t.sum(dim=-1, keepdim=True).shape, (2, 1))
        self.close(t.var(axis=0, correction=0), t.var(0, biased=True))
        self.close(t.std(0, unbiased=False), t.std(0, correction=0))
        self.close(t.topk(1, largest=False)[0], [[min(r)] for r in X])
        self.assertEqual(t.sum(dtype=dtypes.float64).dtype, dtypes.float64)
        self.assertEqual(Tensor.zeros(2, 3, dtype="int8").dtype, dtypes.int8)
        self.assertEqual(Tensor.full((2, 2), 7, dtype=dtypes.int32).tolist(), [[7, 7], [7, 7]])
        self.assertEqual(t.flatten(start_dim=0).shape, (6,))
        self.assertEqual(t.transpose(0, 1).shape, (3, 2))
        self.assertEqual(t.mse(Tensor(Y), reduction="none").shape, (2, 3))
        self.assertEqual(t.reshape([3, 2]).shape, t.reshape(3, 2).shape)
        self.assertEqual(Tensor.arange(4).reshape(2, 2).roll(1, 0).tolist(), Tensor.arange(4).reshape(2, 2).roll((1,), dims=(0,)).tolist())
        self.assertEqual(Tensor.zeros(2, device="interp").device, "INTERP")
        image = Tensor.ones(1, 1, 4, 4)
        self.assertEqual(image.conv2d(Tensor.ones(1, 1, 3, 3), padding=(1, 1), stride=2).shape, (1, 1, 2, 2))
        self.assertEqual(image.max_pool2d(kernel_size=(2, 2), stride=1).shape, (1, 1, 3, 3))
        self.assertEqual(image.pad((1, 2)).shape, (1, 1, 4, 7))
        self.assertEqual(image.pad((None, None, (1, 1), (0, 2)), value=5).sum().item(), 16 + 5 * (6 * 6 - 16))
        self.assertEqual(Tensor([1.0, 2, 3]).pad((2, 0), mode="reflect").tolist(), [3, 2, 1, 2, 3])
        self.assertEqual(image.shrink(((0, 1), (0, 1), (1, 3), (1, 3))).shape, (1, 1, 2, 2))
        self.assertEqual(Tensor.arange(6).rearrange("(a b) -> b a", a=2).tolist(), [[0, 3], [1, 4], [2, 5]])

    def test_signatures(self):
        """What help() tells, and the mistakes that a call can have."""
        self.assertIn("axis", str(inspect.signature(Tensor.softmax)))
        self.assertIn("tg_softmax_opt", Tensor.softmax.__doc__)
        t = Tensor(X)
        with self.assertRaisesRegex(TypeError, "no argument 'axes'; there are: x, axis, keepdim, dtype"):
            t.sum(axes=1)
        with self.assertRaisesRegex(TypeError, "needs 'order'"):
            t.permute()
        with self.assertRaisesRegex(TypeError, "takes 1 arguments"):
            t.exp(1)
        with self.assertRaisesRegex(TypeError, "twice"):
            t.sum(axis=0, dim=1)
        with self.assertRaisesRegex(ValueError, "none of mean, sum, none"):
            t.mse(t, reduction="all")
        with self.assertRaisesRegex(TypeError, "a whole number is expected, not 'a'"):
            t.reshape("a")
        with self.assertRaisesRegex(TypeError, "no dtype"):
            t.cast("float12")


if __name__ == "__main__":
    unittest.main()
