"""jit.py: TinyJit, which captures what a function computes and replays it, and Variable, a size that is bound later.

A captured function is the library's tg_jit: its first call here runs in Python as it stands, because how many tensors it
gives is known only then; the next two run in Python under the library's eyes, and from the fourth on nothing of it runs in
Python. A call with other shapes, dtypes or other arguments that are no tensors is captured by itself."""
import collections
import ctypes
import functools

from . import abi, context as contexts, tensor
from .calls import lib
from .context import context
from .tensor import Tensor
from .values import as_size

POINTERS = ctypes.POINTER(ctypes.c_void_p)


class Size:
    """A size made of variables: it stands where a shape, an end of a slice or an index is named. + - * with numbers."""

    def __init__(self, size):
        self._size = size

    def __add__(self, other):
        return Size(lib.tg_size_add(self._size, as_size(other)))

    def __sub__(self, other):
        return Size(lib.tg_size_sub(self._size, as_size(other)))

    def __mul__(self, other):
        return Size(lib.tg_size_mul(self._size, as_size(other)))

    def __rsub__(self, other):
        return Size(lib.tg_size_sub(as_size(other), self._size))

    __radd__, __rmul__ = __add__, __mul__

    def __repr__(self):
        _, least, most = lib.tg_size_bounds(self._size)
        return f"Size({least} .. {most})"

    def tensor(self, dtype=None):
        """Its value, when it is computed, as a 0-d tensor."""
        return lib.tg_size_tensor(self._size, dtype)


class Variable(Size):
    """Variable("n", 1, 512).bind(17): one plan and one kernel for all of its values."""

    def __init__(self, name, lo, hi, multiple_of=1):
        self._handle = lib.tg_variable(name, lo, hi, multiple_of=multiple_of)
        self.name, self.lo, self.hi = name, lo, hi
        super().__init__(lib.tg_size(self._handle))

    def bind(self, value):
        lib.tg_variable_bind(self._handle, value)
        return self

    def unbind(self):
        """What it was bound to, and it is not any more."""
        return lib.tg_variable_unbind(self._handle)

    @property
    def value(self):
        """What it is bound to; None where it is not."""
        bound, value = lib.tg_variable_value(self._handle)
        return value if bound else None

    def __repr__(self):
        return f"Variable({self.name!r}, {self.lo}, {self.hi}){f'.bind({self.value})' if self.value is not None else ''}"


def take_apart(v, tensors):
    """Nested lists, tuples and dicts -> a key that says all but which tensors stand there; these go to the list. A tensor
    that is there twice is one."""
    if isinstance(v, Tensor):
        for i, t in enumerate(tensors):
            if t is v:
                return ("tensor", i)
        tensors.append(v)
        return ("tensor", len(tensors) - 1)
    if isinstance(v, (list, tuple)):
        return (type(v), tuple(take_apart(e, tensors) for e in v))
    if isinstance(v, dict):
        return (dict, tuple((k, take_apart(e, tensors)) for k, e in v.items()))
    if hasattr(v, "__array__") and getattr(v, "ndim", 0):
        raise TypeError("TinyJit: an array would be the same at every replay; give it as a Tensor")
    return ("value", Same(v))


class Same:
    """Anything as a part of a key: by its value where it has a hash, else itself."""

    def __init__(self, v):
        self.v = v
        try:
            self.hash = hash((type(v), v))
        except TypeError:
            self.hash = id(v)

    def __hash__(self):
        return self.hash

    def __eq__(self, other):
        return self.v is other.v or self.hash == other.hash and type(self.v) is type(other.v) and bool(self.v == other.v)


def put_together(key, tensors):
    kind, what = key
    if kind == "tensor":
        return tensors[what]
    if kind == "value":
        return what.v
    if kind is dict:
        return {k: put_together(e, tensors) for k, e in what}
    parts = [put_together(e, tensors) for e in what]
    return kind(*parts) if hasattr(kind, "_fields") else kind(parts)


class Capture:
    """One capture: a function with arguments of one form."""

    def __init__(self, fn, form):
        self.fn, self.form, self.given, self.outputs, self.handle, self.runs = fn, form, None, None, None, 0
        self.callback = abi.ctype("TgJitFn")(self.call)

    def python(self, tensors):
        args, kw = put_together(self.form, tensors)
        out, found = [], self.fn(*args, **kw)
        self.outputs = take_apart(found, out)
        return out

    def call(self, ctx, given, nin, out, nout, user):
        """What the library calls: with the caller's tensors, or copies of them that end with the call."""
        given = ctypes.cast(given, POINTERS) if nin else []
        mine = [t if t._h == given[i] else tensor.lent(given[i]) for i, t in enumerate(self.given)]
        try:
            with context().in_callback():
                made = self.python(mine)
                if len(made) != nout:
                    raise ValueError(f"TinyJit: the function gave {nout} tensors, and now {len(made)}")
                # an output that is an input, or that something else holds too, is given as a handle of its own
                self.alive = [t.detach() for t in made]
            for i, t in enumerate(self.alive):
                ctypes.cast(out, POINTERS)[i] = t._h
            return 0
        except BaseException as e:
            return context().refuse(e)
        finally:
            for t in mine:
                if t._lent:
                    t._ctx = None

    def run(self, tensors):
        self.runs += 1
        if self.handle is None:  # the first
            made = self.python(tensors)
            if made:
                Tensor.realize(*made)
            self.handle, self.count = lib.tg_jit(self.callback), len(made)
            return put_together(self.outputs, made)
        with contexts.LOCK:
            self.given, form = tensors, self.outputs
            try:
                made = lib.tg_jit_run(self.handle, tensors, self.count)
            finally:
                self.given = self.alive = None
        return put_together(self.outputs or form, list(made or []))


class TinyJit:
    """A decorator, or TinyJit(f): what f computes is captured and replayed. Tensors may stand in its arguments and results
    in lists, tuples and dicts; what else f knows, such as weights, is its state, and what it assigns to is written."""

    def __init__(self, fn, limit=8):
        self.fn, self.limit, self.captures = fn, limit, collections.OrderedDict()
        functools.update_wrapper(self, fn, updated=())

    def __get__(self, obj, owner=None):
        return self if obj is None else functools.partial(self, obj)

    def __call__(self, *args, **kw):
        tensors = []
        form = take_apart((args, kw), tensors)
        key = (form, tuple((t.shape, t.dtype.id, t.device) for t in tensors), Tensor.training)
        capture = self.captures.get(key)
        if capture is None:
            capture = self.captures[key] = Capture(self.fn, form)
            while len(self.captures) > self.limit:  # the one that was not used for longest
                self.captures.popitem(last=False)
        self.captures.move_to_end(key)
        return capture.run(tensors)

    @property
    def captured(self):
        """The library's function of the arguments that were given last, for lib.tg_jit_save and the like; None: none yet."""
        last = next(reversed(self.captures.values()), None)
        return last.handle if last is not None and last.runs > 2 else None

    def reset(self):
        """Forgets what was captured."""
        self.captures.clear()

    def save(self, path, **options):
        """What was captured of the arguments given last, with its state, as a file that needs neither the function nor a
        model: Program(path) runs it, on any device. inputs, outputs: lists of names."""
        if self.captured is None:
            raise contexts.StateError("TinyJit: nothing is captured before the third call")
        lib.tg_jit_save(self.captured, path, **options)


class Program:
    """A captured function from a file of TinyJit.save or `tg run --capture`: called with tensors, it gives a list."""

    def __init__(self, path):
        self._handle = lib.tg_jit_load_file(path)
        self.inputs, self.outputs = self._names("input"), self._names("output")

    def _names(self, which):
        found, v = [], abi.struct("TgJitValue")()
        while getattr(lib, f"tg_jit_{which}")(self, len(found), v):
            found.append(v.name.decode())
        return found

    def __call__(self, *tensors):
        return lib.tg_jit_run(self, list(tensors), len(self.outputs))
