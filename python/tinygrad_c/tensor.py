"""tensor.py: Tensor. Its operators, indexing and data in and out are here; all else, some 300 methods, is made from the
headers (calls.py), with the few names and defaults that are other than C's in the tables below."""
import array
import contextlib
import ctypes
import inspect
import math
import numbers
import os
import weakref

from . import abi, calls, context as contexts, values
from .calls import Function, lib
from .context import c, context
from .dtypes import DType, dtypes

try:
    import numpy
except ImportError:
    numpy = None

# The order of arguments and their defaults, where C has others or none.
SPECS = {"flatten": "first=0 last=-1", "transpose": "a=1 b=0", "chunk": "chunks axis=0", "cat": "axis=0", "stack": "axis=0",
         "diagonal": "offset=0 axis1=0 axis2=1", "roll": "shifts axes=None", "tril": "diagonal=0", "triu": "diagonal=0",
         "leaky_relu": "slope=0.01", "elu": "alpha=1.0", "celu": "alpha=1.0", "hardtanh": "lo=-1.0 hi=1.0", "cumsum": "axis=0",
         "cumprod": "axis=0", "cummax": "axis=0", "cummin": "axis=0", "logcumsumexp": "axis=0", "dropout": "p=0.5",
         "meshgrid": "xy=False", "randint": "dims low=0 high=10 dtype=i32", "uniform": "dims low=0.0 high=1.0",
         "normal": "dims mean=0.0 std=1.0", "empty": "dims dtype=f32", "linear": "weight bias=None", "pad_to": "dims value=0.0",
         "softplus_beta": "beta=1.0", "from_file": "path dtype='uint8' dims=-1", "keccak": "name='sha3_256'",
         "newton_schulz": "steps coefficients eps=0.0", "batch_norm_train": "running_mean=None running_var=None",
         "to": "device=None", "gather_to": "device=None", "size_tensor": "size dtype=i32", "shard": "devices axis=0",
         "select": "axis index"}
# What is said otherwise in Python, or is not for it: handles, scopes, memory of the caller's.
NOT_METHODS = set("""keep release context origin origin_here origin_of dim len getitem setitem setitem_scalar item_f64 item_i64 read read_f64
  comm_read map realize_many schedule schedule_parts is_parameter to_context from from_f64 borrow squeeze_all pad_mode pad_value shard_bounds
  training is_symbolic max_shape lookup4 alu assign_slice split_sizes clamp_tensor""".split())
ALIASES = {"view": "reshape", "clip": "clamp", "concat": "cat", "concatenate": "cat", "swish": "silu", "layernorm": "layer_norm", "idiv": "floordiv",
           "binary_crossentropy": "binary_cross_entropy", "binary_crossentropy_logits": "binary_cross_entropy_logits", "nll_loss": "nll",
           "sparse_categorical_crossentropy": "sparse_cross_entropy", "bitwise_and": "bitand", "bitwise_or": "bitor", "bitwise_xor": "bitxor",
           "bitwise_not": "bitnot", "lshift": "shl", "rshift": "shr", "swapaxes": "transpose", "negative": "neg", "mm": "matmul"}


class _Meta(type):
    @property
    def training(cls):
        """Whether Tensor.dropout drops and BatchNorm takes the batch's statistics."""
        return lib.tg_training()

    @training.setter
    def training(cls, on):
        lib.tg_set_training(bool(on))


def number(v):
    return isinstance(v, (int, float)) or isinstance(v, numbers.Number)


def flat(data, shape, depth, out):
    """The numbers of nested lists, which must be of this shape."""
    if depth == len(shape):
        if isinstance(data, (list, tuple)):
            raise ValueError("nested lists are deeper in one place than in another")
        out.append(data)
        return
    if not isinstance(data, (list, tuple)) or len(data) != shape[depth]:
        raise ValueError(f"nested lists are not of one shape: {data!r:.60} where {tuple(shape[depth:])} is expected")
    for d in data:
        flat(d, shape, depth + 1, out)


def empty_lists(shape):
    """Nested lists of a shape that has a 0."""
    return [empty_lists(shape[1:]) for _ in range(shape[0])]


class Tensor(metaclass=_Meta):
    """A lazy array: Tensor([[1, 2], [3, 4]]), Tensor(numpy_array), Tensor.zeros(2, 3). Calls build a graph and compute
    nothing; .numpy(), .tolist(), .item(), .realize(), print and an optimiser's step compute."""
    _h = _ctx = _grad = None
    _fixed = False      # requires_grad was set to False: no optimiser takes it
    _lent = False       # the handle is another thing's, which _owner keeps, where it is Python's
    _detached = False   # within Tensor.no_grad()
    __array_priority__ = 1000  # NumPy's operators leave theirs to ours
    __hash__ = object.__hash__

    def __init__(self, data=None, device=None, dtype=None, requires_grad=None):
        made = self._of(data, dtypes.of(dtype) if dtype is not None else None)
        if device is not None:
            made = made.to(device)
        self._h, self._ctx = made._h, made._ctx
        made._ctx = None  # one object alone has the handle
        if requires_grad is not None:
            self.requires_grad = requires_grad

    def __del__(self):
        if self._ctx is not None and not self._lent:
            self._ctx.dead.append(self._h)

    # ---- data in
    @staticmethod
    def _of(data, dtype=None):
        """Anything as a tensor of its own handle."""
        if isinstance(data, Tensor):
            made = data.clone()
        elif data is None:
            made = lib.tg_empty(dtype or dtypes.float32, [0])
        elif isinstance(data, str):
            raise TypeError("a text is no tensor; a file is Tensor(pathlib.Path(..)), nested lists as text Tensor.from_text(..)")
        elif isinstance(data, os.PathLike):
            made = Tensor.from_file(data)
        elif number(data) and not hasattr(data, "dtype"):
            made = Tensor._list(data, [], dtype)
        elif isinstance(data, (list, tuple)):
            made = Tensor._lists(data, dtype)
        else:
            made = Tensor._array(data)
        return made if dtype is None or made.dtype is dtype else made.cast(dtype)

    @staticmethod
    def _array(data):
        try:
            view = memoryview(data)
        except TypeError:
            if numpy is None or not hasattr(data, "__array__"):
                raise TypeError(f"{type(data).__name__} is no tensor: numbers, nested lists, arrays and what has the buffer protocol are") from None
            data = numpy.asarray(data)
            view = memoryview(data)
        return lib.tg_from(view, dtypes.of_format(view.format, view.itemsize), list(view.shape))

    @staticmethod
    def _lists(data, dtype):
        shape, first = [], data
        while isinstance(first, (list, tuple)):
            shape.append(len(first))
            first = first[0] if first else 0.0
        if isinstance(first, Tensor):
            made = Tensor.stack([d if isinstance(d, Tensor) else Tensor(d) for d in data])
            return made
        if numpy is not None and hasattr(first, "__array__") and getattr(first, "ndim", 0):
            return Tensor._array(numpy.asarray(data))
        values = []
        flat(data, shape, 0, values)
        return Tensor._list(values, shape, dtype)

    @staticmethod
    def _list(values, shape, dtype=None):
        values = values if isinstance(values, list) else [values]
        if all(isinstance(v, bool) or type(v).__name__ == "bool_" for v in values) and values:
            return lib.tg_from(bytes(bool(v) for v in values), dtypes.bool, shape)
        if values and all(isinstance(v, numbers.Integral) for v in values):
            values = [int(v) for v in values]
            least, most = min(values), max(values)
            kind = dtypes.int32 if -(1 << 31) <= least and most < 1 << 31 else dtypes.int64 if most < 1 << 63 else dtypes.uint64
        elif all(isinstance(v, numbers.Real) for v in values):
            kind = dtypes.float32 if dtype in (None, dtypes.float32) or not dtype.is_float else dtypes.float64
        else:
            raise TypeError(f"a tensor is of numbers, not of {next(v for v in values if not isinstance(v, numbers.Real))!r:.60}")
        return lib.tg_from(memoryview(array.array(kind.format, values)), kind, shape)

    @staticmethod
    def _beside(v, other):
        """A number as a tensor beside another: of its kind, as the library has it; but a float is none of the integers."""
        if not number(v) or hasattr(v, "dtype") or other is None:
            return Tensor(v)
        if isinstance(v, bool):
            return lib.tg_full_i64([], v, dtypes.bool)
        if isinstance(v, numbers.Integral):
            if abs(v) <= 1 << 53 or other.dtype.is_float:
                return lib.tg_scalar_like(other, v)
            return Tensor(int(v))
        whole = not other.dtype.is_float and float(v).is_integer()
        return lib.tg_full([], v) if whole else lib.tg_scalar_like(other, v)

    _dtype = staticmethod(dtypes.of)

    # ---- what it is
    @property
    def ndim(self):
        return self._ask("tg_ndim")

    @property
    def shape(self):
        """Sizes, as numbers; of variables what they are bound to. (size_of(axis) keeps them.)"""
        with contexts.LOCK:
            n = self._ask("tg_ndim")
            return tuple((ctypes.c_int64 * n).from_address(self._ask("tg_shape"))) if n else ()

    @property
    def dtype(self):
        return dtypes.by_id[self._ask("tg_dtype")]

    @property
    def device(self):
        return self._ask("tg_device").decode()

    def _ask(self, name):
        values.check_context(self, context())
        with contexts.LOCK:
            return asks(name)(self._h)

    @property
    def T(self):
        """The axes in reverse."""
        return self.permute(*range(self.ndim)[::-1])

    def numel(self):
        return self._ask("tg_numel")

    def nbytes(self):
        return self._ask("tg_nbytes")

    def size(self, dim=None):
        return self.shape if dim is None else self.shape[dim]

    def size_of(self, axis):
        """The size of an axis, which may be made of variables."""
        from .jit import Size
        return Size(lib.tg_size_of(self, axis)) if lib.tg_is_symbolic(self, axis) else self.shape[axis]

    def __len__(self):
        if not self.ndim:
            raise TypeError("len() of a 0-d tensor")
        return self.shape[0]

    def __iter__(self):
        return (self[i] for i in range(len(self)))

    # ---- data out: these compute
    def data(self):
        """The elements as a memoryview of this shape, in memory of its own; bf16, f16 and fp8 as float32."""
        t = self if self.dtype.format not in ("", "e") else self.float()
        shape, out = t.shape, bytearray(t.nbytes())
        lib.tg_read(t, out)
        view = memoryview(out)
        return view.cast(t.dtype.format, shape) if shape and 0 not in shape else view.cast(t.dtype.format)

    def numpy(self):
        """A NumPy array with memory of its own; bf16 and fp8 as float32."""
        if numpy is None:
            raise ImportError("NumPy is not installed; .tolist() and .data() do without it")
        t = self if self.dtype.format else self.float()
        out = numpy.empty(t.shape, dtype=t.dtype.name)
        lib.tg_read(t, memoryview(out).cast("B") if out.nbytes else b"")
        return out

    def tolist(self):
        """Nested lists of Python's numbers; of a 0-d tensor the number."""
        view, shape = self.data(), self.shape
        return view[0] if not shape else view.tolist() if 0 not in shape else empty_lists(shape)

    def item(self):
        """The one element as a number."""
        if self.numel() != 1:
            raise contexts.ShapeError(f"item: a tensor of shape {self.shape} has {self.numel()} elements, not one")
        return self.data().cast("B").cast(self.dtype.format if self.dtype.format not in ("", "e") else "f")[0]

    def __bool__(self):
        if self.numel() != 1:
            raise ValueError(f"the truth of a tensor of {self.numel()} elements is not one; .any() and .all() say which is meant")
        return bool(self.item())

    def __int__(self):
        return int(self.item())

    def __float__(self):
        return float(self.item())

    def __index__(self):
        if self.dtype.is_float or self.ndim:
            raise TypeError(f"a tensor of {self.dtype.name} and shape {self.shape} is no index")
        return int(self.item())

    def __format__(self, spec):
        return format(self.item(), spec) if spec else str(self)

    def __array__(self, dtype=None, copy=None):
        return self.numpy() if dtype is None else self.numpy().astype(dtype)

    def __repr__(self):
        try:
            text = shown(self)
        except Exception as e:  # a debugger that prints it shall not fail
            text = f"<not computed: {e}>"
        more = f", dtype={self.dtype!r}, device={self.device!r}" if self._ctx is not None else ""
        return f"Tensor({text}{more}{', requires_grad=True' if self._ctx is not None and self.requires_grad else ''})"

    def __deepcopy__(self, memo):
        made = memo[id(self)] = self.clone()
        made._fixed = self._fixed
        return made

    def __reduce__(self):
        return (_again, (bytes(self.data()), self.dtype.name, self.shape, self.requires_grad or (False if self._fixed else None)))

    # ---- parts
    def __getitem__(self, index):
        try:
            return lib.tg_getitem(self, index)
        except contexts.ShapeError as e:
            raise contexts.OutOfRangeError(str(e)) from None

    def __setitem__(self, index, v):
        if number(v) and not hasattr(v, "dtype"):
            lib.tg_setitem_scalar(self, index, float(v))
        else:
            v = v if isinstance(v, Tensor) else Tensor(v)
            lib.tg_setitem(self, index, v if v.dtype is self.dtype else v.cast(self.dtype))

    def __delitem__(self, index):
        raise TypeError("items of a tensor cannot be deleted")

    # ---- gradients
    @property
    def requires_grad(self):
        """Whether backward() of what is computed from it leaves a .grad here. None was said: False, but an optimiser that
        is given this tensor says True; False that was said stays."""
        return bool(self._ask("tg_is_parameter"))

    @requires_grad.setter
    def requires_grad(self, on):
        self._fixed = not on
        lib.tg_requires_grad(self, bool(on))
        if not on:
            calls.live_parameters.pop(id(self), None)

    def requires_grad_(self, on=True):
        self.requires_grad = on
        return self

    def backward(self, gradient=None):
        """Adds the gradient of this loss, one element or with its own `gradient`, to .grad of the tensors that require one."""
        lib.tg_backward(self, gradient=gradient)
        return self

    @property
    def grad(self):
        values.check_context(self, context())
        h = c["tg_grad"](self._h)
        if not h or self._grad is None or self._grad._h != h:
            self._grad = calls.made_tensor(h, "") if h else None
        return self._grad

    @grad.setter
    def grad(self, v):
        if v is not None:
            raise TypeError("a gradient comes from backward(); .grad = None drops it")
        lib.tg_zero_grad(self)
        self._grad = None

    def zero_grad(self):
        self.grad = None

    def custom_gradient(self, inputs, fn):
        """This tensor with a gradient of your own: fn(g) gives a gradient for each of the inputs, or None."""
        inputs = [inputs] if isinstance(inputs, Tensor) else list(inputs)

        def call(g, y, x, n, out, user):
            try:
                with context().in_callback():
                    found = fn(lent(g))
                    found = [found] if isinstance(found, Tensor) or found is None else list(found)
                    for i, t in enumerate(found):
                        ctypes.cast(out, ctypes.POINTER(ctypes.c_void_p))[i] = t.detach()._give() if t is not None else None
                return 0
            except BaseException as e:
                return context().refuse(e)
        return lib.tg_custom_gradient(self, inputs, call)  # which is kept, as long as there may be a graph with it

    def _give(self):
        """The handle, which from now on is not this object's."""
        h, self._ctx = self._h, None
        return h

    @classmethod
    @contextlib.contextmanager
    def no_grad(cls):
        """Within it, what is computed has no gradient. (Nothing is saved by it: without backward() there is no graph of
        gradients at all.)"""
        before, Tensor._detached = Tensor._detached, True
        try:
            yield
        finally:
            Tensor._detached = before

    class train:
        """with Tensor.train(): what is called within drops and normalises as in training; train(False) as in use."""

        def __init__(self, mode=True):
            self.mode = mode

        def __enter__(self):
            self.before, Tensor.training = Tensor.training, self.mode

        def __exit__(self, *_):
            Tensor.training = self.before

    # ---- what C has under several names
    def realize(self, *others):
        """Computes this tensor, with others in one schedule: t.realize(), Tensor.realize(a, b)."""
        lib.tg_realize_many([self, *others])
        return self

    def squeeze(self, dim=None):
        """Without the axis, or all axes, of size 1."""
        return lib.tg_squeeze_all(self) if dim is None else lib.tg_squeeze(self, dim)

    def pad(self, padding, mode="constant", value=0.0):
        """padding: ((before, after), ..) of each axis, None for none, or flat as PyTorch has it, the last axis first."""
        if padding and not isinstance(padding[0], (tuple, list, type(None))):
            pairs = [tuple(padding[i:i + 2]) for i in range(0, len(padding), 2)]
            padding = [(0, 0)] * (self.ndim - len(pairs)) + pairs[::-1]
        lo, hi = zip(*(p or (0, 0) for p in padding)) if padding else ((), ())
        return lib.tg_pad_value(self, lo, hi, value) if mode == "constant" else lib.tg_pad_mode(self, lo, hi, mode)

    def shrink(self, bounds):
        """bounds: (begin, end) of each axis, None for all of it."""
        begin, end = zip(*(b if b is not None else (0, n) for b, n in zip(bounds, self.shape))) if bounds else ((), ())
        return lib.tg_shrink(self, begin, end)

    def split(self, sizes, dim=0):
        """Parts of at most this size, or of these sizes."""
        return lib.tg_split_sizes(self, dim, sizes) if isinstance(sizes, (list, tuple)) else lib.tg_split(self, dim, sizes)

    def clamp(self, min=None, max=None):
        """Within bounds: numbers, tensors or None."""
        if isinstance(min, Tensor) or isinstance(max, Tensor):
            return lib.tg_clamp_tensor(self, min, max)
        return lib.tg_clamp(self, -math.inf if min is None else min, math.inf if max is None else max)

    def masked_fill(self, mask, value):
        """value: a number or a tensor."""
        return lib.tg_where(mask, value, self) if isinstance(value, Tensor) else lib.tg_masked_fill(self, mask, value)

    def rearrange(self, formula, **sizes):
        """t.rearrange("b (h w) c -> b c h w", h=8)"""
        return lib.tg_rearrange(self, formula, sizes or None)

    def repeat_interleave(self, repeats, dim=None):
        """Each element of the axis so many times in place; of the flattened tensor, where no axis is named."""
        return lib.tg_repeat_interleave(self.flatten(), repeats, 0) if dim is None else lib.tg_repeat_interleave(self, repeats, dim)

    def sequential(self, functions):
        """Through functions in order."""
        for f in functions:
            self = f(self)
        return self

    @staticmethod
    def arange(start, stop=None, step=1, **options):
        """Tensor.arange(5), (2, 5), (0, 1, .1)."""
        start, stop = (0, start) if stop is None else (start, stop)
        if any(isinstance(v, float) for v in (start, stop, step)) and options.get("dtype") is None:
            options["dtype"] = dtypes.float32
        return created(lib.tg_arange, (start, stop, step), options)

    @staticmethod
    def manual_seed(seed=0):
        """Random numbers begin anew from this seed."""
        lib.tg_manual_seed(seed)


def lent(h):
    """A tensor of the library's own handle, which ends with a callback."""
    t = Tensor.__new__(Tensor)
    t._h, t._ctx, t._lent = h, context(), True
    return t


_asks = {}


def asks(name):
    if name not in _asks:
        _asks[name] = abi.function(abi.FUNCTIONS[name])
    return _asks[name]


def _again(data, dtype, shape, requires_grad):
    """Of a pickle."""
    d = dtypes.of(dtype)
    wide = d if d.format not in ("", "e") else dtypes.float32
    t = lib.tg_from(data, wide, list(shape))
    t = t if d is wide else t.cast(d)
    return t if requires_grad is None else t.requires_grad_(requires_grad)


def created(f, args, options):
    """A tensor of a function that makes one, with requires_grad as an option."""
    on = options.pop("requires_grad", None)
    t = f(*args, **options)
    return t if on is None else t.requires_grad_(on)


def shown(t, most=1000, edge=3):
    """The values as text, the middle of long axes left out, as PyTorch prints them."""
    cut = [n > 2 * edge + 1 and t.numel() > most for n in t.shape]
    if any(cut) and t.numel():
        for axis, n in enumerate(t.shape):
            if cut[axis]:
                t = Tensor.cat(t[(slice(None),) * axis + (slice(0, edge),)], t[(slice(None),) * axis + (slice(n - edge, n),)], dim=axis)
    values = t.tolist()
    numbers_ = t.flatten().tolist() if t.ndim else [values]
    if t.dtype.is_float:
        finite = [abs(v) for v in numbers_ if math.isfinite(v) and v]
        whole = all(v.is_integer() for v in finite) and (not finite or max(finite) < 1e8)
        wide = not whole and (max(finite) >= 1e5 or max(finite) < 1e-3 or min(finite) < 1e-8)
        text = (lambda v: f"{v:.0f}." if math.isfinite(v) else str(v)) if whole else (lambda v: f"{v:.4e}") if wide else (lambda v: f"{v:.4f}")
    else:
        text = str
    width = max((len(text(v)) for v in numbers_), default=0)

    def rows(v, depth):
        if not isinstance(v, list):
            return text(v).rjust(width if depth else 0)
        parts = [rows(e, depth + 1) for e in v]
        if depth < len(cut) and cut[depth]:
            parts.insert(edge, "..")
        deeper = t.ndim - depth - 1
        return "[" + ("," + "\n" * deeper + " " * (depth + 8 if deeper else 1)).join(parts) + "]"
    return rows(values, 0)


# ---- operators
EXACT = 1 << 53  # whole numbers up to here are doubles, which C's functions of a number take
ARITHMETIC = {"add", "sub", "mul", "pow", "floordiv", "mod", "maximum", "minimum"}


def binary(name, reflected=False):
    """An operator: with a number by the function for that, where it says the same."""
    two, one = getattr(lib, f"tg_{name}"), None
    scalar = f"tg_{'r' if reflected else ''}{name}_scalar"
    commutes = name in ("add", "mul", "bitand", "bitor", "bitxor")
    scalar = f"tg_{name}_scalar" if reflected and commutes else scalar
    if scalar in abi.FUNCTIONS:
        one = getattr(lib, scalar)

    def operator(a, b):
        if isinstance(b, Tensor):
            return two(b, a) if reflected else two(a, b)
        kind = type(b)
        if one and kind is int and -EXACT <= b <= EXACT:
            return one(a, b)
        if one and kind is float and not (name in ARITHMETIC and b.is_integer() and not a.dtype.is_float):
            return one(a, b)
        if not number(b) and not isinstance(b, (list, tuple)) and not hasattr(b, "__array__"):
            return NotImplemented
        b = Tensor._beside(b, a) if not isinstance(b, (list, tuple)) else Tensor(b)
        return two(b, a) if reflected else two(a, b)
    return operator


def assigning(operator):
    """t += x: to t's memory; of an expression t becomes another one, and gradients go on."""
    def operate(t, x):
        result = operator(t, x)
        if result is NotImplemented:
            return result
        if result.dtype is not t.dtype:
            raise contexts.DTypeError(f"in place: the result is {result.dtype.name}, and the tensor stays {t.dtype.name}")
        return lib.tg_setitem(t, ..., result)
    return operate


OPERATORS = {"add": "add", "sub": "sub", "mul": "mul", "truediv": "div", "floordiv": "floordiv", "mod": "mod", "pow": "pow", "matmul": "matmul",
             "and": "bitand", "or": "bitor", "xor": "bitxor", "lshift": "shl", "rshift": "shr"}
for python, name in OPERATORS.items():
    setattr(Tensor, f"__{python}__", binary(name))
    setattr(Tensor, f"__r{python}__", binary(name, reflected=True))
    setattr(Tensor, f"__i{python}__", assigning(binary(name)))
for name in ("lt", "gt", "le", "ge", "eq", "ne"):
    setattr(Tensor, f"__{name}__", binary(name))
Tensor.__hash__ = object.__hash__
for python, name in {"neg": "neg", "abs": "abs", "invert": "bitnot"}.items():
    setattr(Tensor, f"__{python}__", (lambda f: lambda t: f(t))(getattr(lib, f"tg_{name}")))
Tensor.__pos__ = lambda t: t
Tensor.__round__ = lambda t, digits=0: t.round() if not digits else (t * 10 ** digits).round() / 10 ** digits


# ---- methods: every function of tg.h that is about a tensor, and those that make one
def method(f, name, makes):
    if makes:
        def call(*args, **options):
            return created(f, args, options)
    else:
        def call(*args, **options):
            return f(*args, **options)
    call.__name__ = name
    call.__qualname__ = f"Tensor.{name}"
    call.__doc__, call.__signature__ = f.__doc__, f.signature()
    call.__tinygrad__ = f.cname
    return staticmethod(call) if makes else call


def _methods():
    for entry in abi.FUNCTIONS.values():
        name = entry.get("macro", entry["name"])[len("tg_"):]
        kinds = [abi.plain(p["type"]) for p in entry["params"]]
        about = bool(kinds) and kinds[0] in ("TgTensor *", "TgTensor **")
        makes = bool(kinds) and kinds[0] == "TgContext *" and entry["returns"] == "TgTensor *" or name == "einsum"
        if entry["header"] != "tg.h" or not (about or makes) or name in NOT_METHODS or name.endswith("_scalar"):
            continue
        f = Function(entry, SPECS.get(name, ""))
        own = vars(Tensor).get(name)
        if own is None:
            setattr(Tensor, name, method(f, name, makes))
        elif inspect.isfunction(own):  # written above, because it takes more than C's
            own.__doc__, own.__tinygrad__ = f"{own.__doc__ or ''}\n\n{f.__doc__}".strip(), f.cname
    for alias, name in ALIASES.items():
        setattr(Tensor, alias, getattr(Tensor, name))


calls.Tensor = values.Tensor = Tensor
calls.live_parameters = weakref.WeakValueDictionary()
_methods()


class _Device:
    """Device.DEFAULT: where tensors are made that name no device; it can be set. Device.names(): what the library knows."""

    @property
    def DEFAULT(self):
        return lib.tg_default_device()

    @DEFAULT.setter
    def DEFAULT(self, name):
        lib.tg_set_default_device(name)

    @staticmethod
    def names():
        found = []
        while lib.tg_device_name(len(found)) is not None:
            found.append(lib.tg_device_name(len(found)))
        return found

    @staticmethod
    def describe():
        return lib.tg_device_describe()

    @staticmethod
    def synchronize():
        """Waits until the device has done all that it was given."""
        lib.tg_sync()


Device = _Device()
