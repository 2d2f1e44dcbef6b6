"""values.py: what Python gives, as C takes it: tensors and what becomes one, sizes, lists, texts, buffers, indices, structs,
enumerators; and Handle, which stands for the things of the library that are no tensors."""
import ctypes
import os

from . import abi, context as contexts
from .context import context

LISTS = {"int64_t *": ctypes.c_int64, "int32_t *": ctypes.c_int32, "float *": ctypes.c_float, "double *": ctypes.c_double}
FREE = {abi.plain(f["params"][0]["type"]): f["name"] for f in abi.FUNCTIONS.values()
        if f["name"].endswith("_free") and len(f["params"]) == 1 and abi.plain(f["params"][0]["type"])[:-2] not in abi.STRUCTS}
Tensor = None  # set by tensor.py


class Handle:
    """Anything of the library but a tensor: a state dictionary, an optimiser, a model. It ends with its last reference;
    `keep` is what must not end before it."""
    end = None
    p = None

    def __init__(self, kind, p, owned, keep=()):
        self.kind, self.p, self.keep, self.context = kind, p, list(keep), context()
        if owned and kind in FREE:
            self.end = abi.function(abi.FUNCTIONS[FREE[kind]])
            self.context.handles[p] = self.end

    def __repr__(self):
        return f"<{self.kind[:-2]} of tinygrad_c{'' if self.p else ', ended'}>"

    def __del__(self):
        if self.end:
            self.context.ended.append(self.p)

    def free(self):
        """Ends it now."""
        with contexts.LOCK:
            end, p, self.end, self.p = self.end, self.p, None, None
            if end and self.context.handles.pop(p, None):
                end(p)


def as_size(v):
    """A size of a shape: a number, or a Variable and what is made of it, whose _size is a number too."""
    size = getattr(v, "_size", None)
    if size is not None:
        return size
    try:
        return v.__index__()
    except AttributeError:
        raise TypeError(f"a whole number is expected, not {v!r}") from None


def as_list(v):
    return list(v) if isinstance(v, (list, tuple)) or hasattr(v, "tolist") and getattr(v, "ndim", 1) else [v]


def check_context(t, now):
    if t._ctx is now:
        return
    if t._ctx is None:
        raise contexts.StateError("this tensor was an argument of a captured function, and ended with its call; .clone() keeps a copy")
    raise contexts.StateError("this tensor belongs to the process that this one was forked from; give a child .numpy() or .tolist()")


class Call:
    """One call: its arguments by name, and what must live until it returns."""

    def __init__(self, function, given, now):
        self.function, self.given, self.now = function, given, now
        self.keep, self.tensors, self.outs = [], [], []

    def reference(self):
        """The tensor beside which a number stands: the last one, because of where(mask, 1, x)."""
        found = None
        for v in self.given.values():
            if isinstance(v, Tensor):
                found = v
        return found

    def tensor(self, v):
        if v is None:
            return None
        if not isinstance(v, Tensor):
            v = Tensor._beside(v, self.reference())
        check_context(v, self.now)
        self.tensors.append(v)
        return v._h

    def array(self, kind, values):
        made = (kind * max(len(values), 1))(*values)
        self.keep.append(made)
        return made

    def text(self, v):
        if v is None or isinstance(v, bytes):
            return v
        if isinstance(v, str):
            return v.encode()
        if hasattr(v, "__fspath__"):
            return os.fsencode(v)
        raise TypeError(f"a text is expected, not {v!r}")

    def texts(self, v):
        """A list of texts ended by NULL; of a dict its keys and values in turn."""
        flat = [part for pair in v.items() for part in pair] if isinstance(v, dict) else [v] if isinstance(v, str) else list(v)
        return self.array(ctypes.c_char_p, [self.text(s) for s in flat] + [None]), len(flat)

    def buffer(self, v):
        """(address, bytes) of an object with the buffer protocol; a copy, where it may not be written to or has gaps."""
        if v is None:
            return None, 0
        handle = getattr(v, "_handle", v)
        if isinstance(handle, Handle):  # an object of the library's, as a module's layer
            self.keep.append(handle)
            return handle.p, 0
        if isinstance(v, (ctypes.Array, ctypes.Structure)):
            self.keep.append(v)
            return ctypes.addressof(v), ctypes.sizeof(v)
        view = memoryview(v)
        if not view.nbytes:
            return None, 0
        whole = view.c_contiguous and not view.readonly
        made = (ctypes.c_char * view.nbytes).from_buffer(view) if whole else ctypes.create_string_buffer(view.tobytes(), view.nbytes)
        self.keep += [view, made]
        return ctypes.addressof(made), view.nbytes

    def index(self, v):
        """x[..] as TgIndex."""
        kind, items = abi.ENUMS["TgIndexKind"], v if isinstance(v, tuple) else (v,)
        open_end, made = -(1 << 63), []
        for i in items:
            if i is None:
                made.append((kind["TG_INDEX_NEW"],))
            elif i is Ellipsis:
                made.append((kind["TG_INDEX_ELLIPSIS"],))
            elif isinstance(i, slice):
                first, last = (open_end if e is None else as_size(e) for e in (i.start, i.stop))
                made.append((kind["TG_INDEX_SLICE"], first, last) if i.step is None else (kind["TG_INDEX_STEP"], first, last, as_size(i.step)))
            elif isinstance(i, (Tensor, list)) or (hasattr(i, "__array__") and getattr(i, "ndim", 0)):
                i = i if isinstance(i, Tensor) else Tensor(i, dtype=None if len(i) else "int32")
                self.keep.append(i)
                made.append((kind["TG_INDEX_MASK" if i.dtype.is_bool else "TG_INDEX_TENSOR"], 0, 0, 0, self.tensor(i)))
            elif isinstance(i, bool):
                raise TypeError("a bool is no index; a mask is a tensor")
            else:
                made.append((kind["TG_INDEX_AT"], as_size(i)))
        one = abi.struct("TgIndex")
        return self.array(one, [one(*m) for m in made]), len(made)

    def list(self, kind, v):
        """(C list, length) of what a list parameter of this type is given."""
        if kind == "TgTensor **":
            v = as_list(v) if not isinstance(v, Tensor) else [v]
            return self.array(ctypes.c_void_p, [self.tensor(t) for t in v]), len(v)
        if kind == "char **":
            return self.texts(v)
        if kind == "TgIndex *":
            return self.index(v)
        if kind == "char *":
            text = self.text(v)
            return text, len(text or b"")
        if kind == "void *":
            return self.buffer(v)
        if kind in LISTS:
            if isinstance(v, (ctypes.Array, ctypes._Pointer)) and v._type_ is LISTS[kind]:
                return v, len(v) if isinstance(v, ctypes.Array) else 0
            v = as_list(v)
            return self.array(LISTS[kind], [float(n) for n in v] if LISTS[kind] in (ctypes.c_float, ctypes.c_double) else [as_size(n) for n in v]), len(v)
        if kind[:-2] in abi.STRUCTS:  # of {name: value} or of tuples
            one = abi.struct(kind[:-2])
            rows = [[self.text(f) if isinstance(f, (str, bytes)) else as_size(f) for f in row] for row in (v.items() if isinstance(v, dict) else v)]
            return self.array(one, [one(*row) for row in rows]), len(rows)
        v = list(v)  # of handles
        return self.array(ctypes.c_void_p, [handle_of(h, kind[:-1].strip() if kind.endswith("**") else kind) for h in v]), len(v)

    def value(self, kind, v, name):
        """What a parameter or an option of this C type is given, as ctypes takes it."""
        if kind == "TgTensor *":
            return self.tensor(v)
        if kind == "TgDType":
            return Tensor._dtype(v).id
        if kind in abi.ENUMS:
            return enumerator(kind, v)
        if kind in ("int", "int64_t", "size_t", "uint64_t"):
            return int(v) if isinstance(v, (bool, float)) and v == int(v) else as_size(v)
        if kind in ("double", "float"):
            return float(v)
        if kind == "bool":
            return bool(v)
        if kind in ("TgAxes", "TgSizes"):
            made = abi.struct(kind)()
            for i, n in enumerate(as_list(v)):
                made.v[i] = as_size(n)
            made.n = len(as_list(v))
            return made
        if kind == "char *":
            return self.text(v.upper() if name == "device" and isinstance(v, str) and v.islower() else v)
        if kind in ("void *", "uint8_t *"):
            return self.buffer(v)[0]
        if kind in LISTS or kind.endswith("**"):
            return self.list(kind, v)[0]
        if type(v).__name__ == kind.rstrip(" *") and isinstance(v, ctypes.Structure):
            self.keep.append(v)
            return ctypes.addressof(v) if kind.endswith("*") else v
        if callable(v) and "(*)" in abi.CALLBACKS.get(kind, kind):
            if isinstance(getattr(v, "c", None), ctypes._CFuncPtr):  # a function of the library's own, as lib.tg_lora_module
                v = ctypes.cast(v.c, abi.ctype(kind))
            elif not isinstance(v, ctypes._CFuncPtr):  # the library may call it later; one that the caller made is kept by the caller
                v = abi.ctype(kind)(v)
                self.now.callbacks.append(v)
            return v
        return handle_of(v, kind)


def handle_of(v, kind):
    """The address of a Handle of this type, or of the object that has one."""
    v = getattr(v, "_handle", v)
    if v is None:
        return None
    if not isinstance(v, Handle) or v.kind != kind:
        raise TypeError(f"a {kind.rstrip(' *')} is expected, not {v!r:.80}")
    if v.context is not context() or not v.p:
        raise contexts.StateError(f"this {kind.rstrip(' *')} was ended, or belongs to the process that this one was forked from")
    return v.p


def enumerator(kind, v):
    """A number, or its name: "sum" of TgReduction, "reflect" of TgPadMode."""
    if isinstance(v, int):
        return v
    names = {name.rsplit("_", 1)[1].lower() if kind != "TgInterpolation" else name[3:].lower().replace("_", "-"): n for name, n in abi.ENUMS[kind].items()}
    word = str(v).lower()
    if word in names:
        return names[word]
    raise ValueError(f"{v!r} is none of {', '.join(names)}")
