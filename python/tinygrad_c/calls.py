"""calls.py: Python's arguments -> a call of the library -> Python's results, for any function of tg_abi.json. There is no
code for a function of its own: what a parameter is follows from its type, and from `count`, which says what tells a list's
length. Options are keywords, shapes and axes are numbers or tuples, tensors in lists are lists, what a function writes to
is a result, and numbers stand where tensors do.

`lib` has them all, with arguments in C's order: lib.tg_onnx_opset(model), lib.tg_sum(t, axis=1). Tensor's methods are made by
the same class, with an order and defaults of Python's where tensor.py says so."""
import ctypes
import inspect
import numbers
import os
import re
import textwrap

from . import abi, context as contexts
from .context import c, context

OMITTED = object()  # an option that was not written: the library's default
ROOM = ("cap", "most")
# Names of other frameworks for ours: (our name, whether the meaning is turned round).
SYNONYMS = {"dim": "axis axes order axis1", "dims": "axis axes order dims", "shape": "dims sizes", "axis": "axes order", "keepdims": "keepdim",
            "num_classes": "classes", "fill_value": "value", "return_indices": "indices", "min": "lo", "max": "hi", "min_": "lo", "max_": "hi",
            "kernel_size": "kernel", "attn_mask": "mask", "is_causal": "causal", "dropout_p": "dropout", "enable_gqa": "grouped",
            "repeats": "times", "start_dim": "first", "end_dim": "last", "dim0": "a", "dim1": "b", "offset": "offset", "low": "lo", "high": "hi",
            "neg_slope": "slope", "negative_slope": "slope", "output_size": "output_size size", "sizes": "size", "b1": "beta1", "b2": "beta2",
            "memory_format": "", "num_samples": "k", "diagonal": "diagonal", "dtype": "to dtype", "mean": "mean", "size": "dims sizes",
            "chunks": "chunks", "weight": "weight", "input": "x", "other": "b x", "largest": "!smallest", "sorted": "!unsorted", "sorted_": "!unsorted",
            "unbiased": "!biased", "ddof": "correction", "affine": "!plain", "elementwise_affine": "!plain", "track_running_stats": "!untracked", "num_layers": "layers"}
BORROWED = ("tg_optim_at", "tg_llm_tokenizer", "tg_jit_variable")  # pointers that stay another thing's
LENT = ("tg_state_get", "tg_state_at", "tg_value_tensor", "tg_onnx_weight", "tg_loader_next", "tg_grad",
        "tg_module_parameters", "tg_llm_parameters")  # tensors that stay the first argument's
NOT_FOR_PYTHON = ("tg_open", "tg_close", "tg_keep", "tg_release", "tg_scope_begin", "tg_scope_end", "tg_alloc")  # and all tg_.._free
MAKES_GRADIENTS = ("tg_backward_opt", "tg_clip_grad_norm", "tg_clip_grad_value", "tg_clone", "tg_jit_run")
LISTS = {"int64_t *": ctypes.c_int64, "int32_t *": ctypes.c_int32, "float *": ctypes.c_float, "double *": ctypes.c_double, "double": ctypes.c_double}
NUMBERS = {"int64_t *": ctypes.c_int64, "size_t *": ctypes.c_size_t, "double *": ctypes.c_double, "char **": ctypes.c_char_p}
FREE = {abi.plain(f["params"][0]["type"]): f["name"] for f in abi.FUNCTIONS.values()
        if f["name"].endswith("_free") and len(f["params"]) == 1 and abi.plain(f["params"][0]["type"])[:-2] not in abi.STRUCTS}
Tensor = None  # set by tensor.py
live_parameters = None  # tensors that require a gradient, by id: a WeakValueDictionary, set by tensor.py


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
        return f"<{self.kind[:-2]} of tinygrad_c>"

    def __del__(self):
        if self.end:
            self.context.ended.append(self.p)

    def free(self):
        """Ends it now."""
        with contexts.LOCK:
            end, self.end = self.end, None
            if end and self.context.handles.pop(self.p, None):
                end(self.p)


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
        if v is None or isinstance(v, int):
            return v, 0
        if isinstance(v, ctypes._SimpleCData) or isinstance(v, (ctypes.Array, ctypes.Structure)):
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
                i = Tensor._indices(i)
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
            if isinstance(v, int) and v > 1 << 20 or isinstance(v, ctypes.Array):
                return v, len(v) if isinstance(v, ctypes.Array) else 0
            v = as_list(v)
            return self.array(LISTS[kind], [float(n) for n in v] if LISTS[kind] in (ctypes.c_float, ctypes.c_double) else [as_size(n) for n in v]), len(v)
        if kind[:-2] in abi.STRUCTS:  # of {name: value} or of tuples
            one = abi.struct(kind[:-2])
            rows = [[self.text(f) if isinstance(f, (str, bytes)) else as_size(f) for f in row] for row in (v.items() if isinstance(v, dict) else v)]
            return self.array(one, [one(*row) for row in rows]), len(rows)
        v = list(v)  # of handles
        return self.array(ctypes.c_void_p, [handle_of(h) for h in v]), len(v)

    def value(self, kind, v, name):
        """What a parameter or an option of this C type is given, as ctypes takes it."""
        if kind == "TgTensor *":
            return self.tensor(v)
        if kind == "TgDType":
            return Tensor._dtype(v).id if v is not None else 0
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
            return None if v is None else self.list(kind, v)[0]
        if isinstance(v, (ctypes.Structure, ctypes.Array)):
            self.keep.append(v)
            return ctypes.addressof(v) if kind.endswith("*") else v
        if callable(v) and "(*)" in abi.CALLBACKS.get(kind, kind):
            v = v if isinstance(v, ctypes._CFuncPtr) else abi.ctype(kind)(v)
            self.keep.append(v)
            return v
        return handle_of(v)


def handle_of(v):
    v = getattr(v, "_handle", v)
    if v is None or isinstance(v, (int, ctypes._CFuncPtr)):
        return v
    if not isinstance(v, Handle):
        raise TypeError(f"a thing of the library is expected here, not {v!r}")
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


class Parameter:
    def __init__(self, entry):
        self.name, self.type, self.count = entry["name"], entry["type"], entry.get("count")
        self.kind = abi.plain(self.type)
        if self.kind.startswith("double ["):
            self.kind = "double *"
        if self.type == "char *":  # memory of the caller's for a text
            self.kind = "void *"
        constant = self.type != "const char **" and (self.type.startswith("const ") or "*const *" in self.type)
        fixed = re.match(r"TgTensor \*\[(\d+)\]", self.type)
        self.fixed = int(fixed.group(1)) if fixed else 0
        self.many = bool(self.count) and constant and self.kind not in ("char *", "void *")
        # what the function writes: one thing, or a list of them; bytes are the caller's
        self.out = bool(fixed) or not constant and (self.kind in NUMBERS or self.kind == "TgTensor **" or bool(self.count) and self.kind in LISTS)


class Function:
    """A function of the library. spec: names in the order that Python has them, with defaults: "size axis=0"."""

    def __init__(self, entry, spec=""):
        self.entry, self.c, self.cname = entry, abi.function(entry), entry["name"]
        self.name = entry.get("macro", entry["name"])[len("tg_"):]
        self.params = [Parameter(p) for p in entry["params"]]
        self.options, self.fields = None, {}
        if "macro" in entry:
            kind = abi.plain(self.params[-1].type)[:-2]
            self.options = abi.struct(kind)
            self.fields = {f["name"]: abi.plain(f["type"]) for f in abi.STRUCTS[kind]["fields"] if f["name"] not in ("size", "set", "end_")}
        self.needs_context = bool(self.params) and abi.plain(self.params[0].type) == "TgContext *"
        lists = {p.count for p in self.params if p.count and (not p.out or p.name == "out" and p.count == "n" and any(q.many for q in self.params))}
        hidden = [p for p in self.params if p.out or p.name in lists or p.name == "user" or p.name in ROOM and any(q.count == p.name for q in self.params)]
        self.places = [p.name for p in self.params if p.out]
        self.visible = {p.name: p for p in self.params[self.needs_context:len(self.params) - bool(self.options)] if p not in hidden}
        self.defaults = {}
        order = []
        for word in spec.split():
            name, has, value = word.partition("=")
            order.append(name)
            if has:
                self.defaults[name] = eval(value, {"inf": float("inf"), "i32": "int32", "f32": "float32"})
        rest = [n for n in self.visible if n not in order]
        ahead = rest[:1] if self.visible and not self.needs_context and rest[:1] == list(self.visible)[:1] else []
        self.order = ahead + order + [n for n in rest if n not in ahead] + [f for f in self.fields if f not in self.visible]
        returns = abi.plain(entry["returns"])
        self.returns = returns
        self.gives_bytes = returns in ("char *", "void *") and any(p.kind == "size_t *" and p.name == "nbytes" for p in self.params)
        if self.gives_bytes:
            self.c.restype = ctypes.c_void_p
        # a question about a tensor computes nothing and makes none
        self.asks = returns != "TgTensor *" and bool(self.params) and self.params[0].type.startswith("const Tg")
        self.computes = not self.asks and (returns != "TgTensor *" or self.cname in ("tg_getitem", "tg_masked_select_opt", "tg_nonzero_opt"))
        kinds = [p.kind for p in self.params]
        plain = returns == "TgTensor *" and all(k in ("TgTensor *", "double", "int", "int64_t") for k in kinds) and self.order == list(self.visible)
        self.quick = len(kinds) if plain and not self.computes and not self.options and self.cname not in MAKES_GRADIENTS else 0
        self.numbers = [None if k == "TgTensor *" else (int, float) if k == "double" else (int,) for k in kinds]
        self.__doc__ = self.documentation()

    # ---- arguments
    def argument_name(self, name, given):
        """(our name of a keyword, whether it is turned round)."""
        if name in self.places:  # how many places there are, where no count tells it
            return name, False
        for known in (name, *SYNONYMS.get(name, "").split()):
            turned = known.startswith("!")
            known = known.lstrip("!")
            if known in self.order and known not in given:
                return known, turned
        if any(known.lstrip("!") in given for known in (name, *SYNONYMS.get(name, "").split())):
            raise TypeError(f"{self.name}() is given '{name}' twice")
        raise TypeError(f"{self.name}() has no argument '{name}'; there are: {', '.join(self.order) or 'none'}")

    def bind(self, args, kw):
        given, at, n = {}, 0, len(args)
        for key, v in kw.items():
            if key in ("out", "dtype") and v is None:  # of numpy.mean(tensor), which calls the method
                continue
            name, turned = self.argument_name(key, given)
            given[name] = (not v) if turned else v
        left = [name for name in self.order if name not in given]
        for k, name in enumerate(left):
            if at >= n:
                break
            p, v = self.visible.get(name), args[at]
            if p is not None and p.many and p.kind != "TgIndex *" and not isinstance(v, (list, tuple)):
                tensors = p.kind == "TgTensor **"
                needed = [m for m in left[k + 1:] if m in self.visible and (m not in self.defaults or self.visible[m].many)]
                take = next((i for i, a in enumerate(args[at:]) if not isinstance(a, Tensor)), n - at) if tensors else n - at - len(needed)
                if tensors or isinstance(v, numbers.Integral) or hasattr(v, "_size"):
                    v, at = list(args[at:at + max(take, 1)]), at + max(take, 1) - 1
            given[name], at = v, at + 1
        if at < n:
            raise TypeError(f"{self.name}() takes {len(self.order)} arguments ({', '.join(self.order)}), {n} were given")
        for name in self.visible:
            if name not in given:
                if name not in self.defaults:
                    raise TypeError(f"{self.name}() needs '{name}'")
                given[name] = self.defaults[name]
        return given

    def option_struct(self, call):
        o, written = self.options(size=ctypes.sizeof(self.options)), []
        for name, kind in self.fields.items():
            v = call.given.get(name, OMITTED)
            if v is OMITTED or v is None:
                continue
            if kind == "TgTensor **" and isinstance(v, bool):
                if not v:
                    continue
                place = ctypes.c_void_p()
                call.outs.append(("TgTensor **", place, None))
                v = ctypes.addressof(place)
            else:
                v = call.value(kind, v, name)
            if isinstance(v, ctypes.Array):
                v = ctypes.addressof(v)
            setattr(o, name, v)
            written.append(f".{name}")
        o.set = ",".join(written).encode()
        call.keep.append(o)
        return ctypes.byref(o)

    def arguments(self, call, room):
        """What C is given, in its order. Lists are made first, because their lengths stand before some of them."""
        given, made, counts = call.given, {}, {}
        for name, p in self.visible.items():
            v = given[name]
            try:
                if p.count and not p.out and v is not None:
                    made[name], length = call.list(p.kind, v)
                    if counts.setdefault(p.count, length) != length and not p.count.startswith("tg_"):
                        raise ValueError(f"{name} has {length} entries, not {counts[p.count]}")
                    if p.count.startswith("tg_ndim") and length != call.tensors[0].ndim:
                        raise contexts.ShapeError(f"{self.name}: {name} has {length} entries, the tensor {call.tensors[0].ndim} axes")
                else:
                    made[name] = None if v is None else call.value(p.kind, v, name)
            except (TypeError, ValueError, OverflowError) as e:
                if isinstance(e, contexts.TinygradError):
                    raise
                raise type(e)(f"{self.name}(): {name}: {e}") from None
        out = []
        for p in self.params[:len(self.params) - bool(self.options)]:
            if p.name in made:
                out.append(made[p.name])
            elif p.out:
                length = p.fixed or (None if not p.count else room if p.count in ROOM else counts.get(p.count, given.get(p.count)))
                length = given.get(p.name, length)
                one = NUMBERS.get(p.kind) or LISTS.get(p.kind) or ctypes.c_void_p
                place = one() if length is None else (one * max(length, 1))()
                call.outs.append((p.kind, place, p.count if length is not None and p.count in ROOM else length))
                out.append(ctypes.byref(place) if length is None else place)
            else:
                out.append(call.now.p if p is self.params[0] and self.needs_context else counts.get(p.name, room if p.name in ROOM else None))
        if self.options:
            out.append(self.option_struct(call))
        return [0 if v is None and (p.kind in ("int", "int64_t", "size_t") or p.kind in abi.ENUMS) else v for p, v in zip(self.params, out)]

    # ---- the call
    def __call__(self, *args, **kw):
        if self.quick and len(args) == self.quick and not kw:
            result = quick_run(self, args)
            if result is not OMITTED:
                return result
        given = self.bind(args, kw)
        room = 64 if any(p.out and p.count in ROOM for p in self.params) else 0
        while True:
            with contexts.LOCK:
                call = Call(self, given, context())
                result = run(self, call, self.arguments(call, room))
            if not room or not isinstance(result, tuple) or result[0] <= room:
                return result if not room else result[1] if len(result) == 2 else result[1:]
            room = result[0]

    def finish(self, call, r):
        """The results: what is returned, then what was written, as one thing where there is one."""
        values = [] if self.returns in ("TgStatus", "void") else [self.result(call, r)]
        if self.gives_bytes:
            return values[0]
        for kind, place, length in call.outs:
            if isinstance(length, str):
                length = min(int(r), len(place))
            values.append(self.written(call, kind, place) if length is None else [self.written(call, kind, v) for v in place[:length]])
        for p in self.params:  # a state dictionary does not own what is put there, or what it is of
            if p.type == "TgState *" and isinstance(call.given.get(p.name), Handle):
                call.given[p.name].keep.extend(v for v in call.given.values() if v is not call.given[p.name])
        return values[0] if len(values) == 1 else tuple(values) or None

    def written(self, call, kind, v):
        """What was written to a place of this type."""
        v = getattr(v, "value", v)
        if kind.startswith("TgTensor *"):
            return self.tensor(call, v)
        return v.decode(errors="replace") if isinstance(v, bytes) else v

    def result(self, call, r):
        kind = self.returns
        if kind == "TgTensor *":
            return self.tensor(call, r)
        if self.gives_bytes:
            size = next(place.value for k, place, _ in call.outs if k == "size_t *")
            return ctypes.string_at(r, size) if r else None
        if kind == "char *":
            return r.decode(errors="replace") if r is not None else None
        if kind == "TgDType":
            return Tensor._dtype(r)
        if kind.endswith("*") and kind not in ("void *", "float *", "int32_t *", "int64_t *", "TgTensor **"):
            owned = not self.entry["returns"].startswith("const") and self.cname not in BORROWED
            return Handle(kind, r, owned, (call.keep, list(call.given.values()))) if r else None
        return r

    def tensor(self, call, h):
        if self.cname not in LENT or not h:
            return made_tensor(h, self.name, call.tensors)
        t = Tensor.__new__(Tensor)
        t._h, t._ctx, t._lent, t._owner = h, call.now, True, next(iter(call.given.values()))
        return t

    # ---- what help() tells
    def documentation(self):
        params = ", ".join(f"{p['type']} {p['name']}".replace("* ", "*") for p in self.entry["params"])
        text = f"{self.entry['returns']} {self.entry['name']}({params})".replace("* ", "*")
        said = abi.DOCS.get(self.entry.get("macro", self.cname))
        return f"{textwrap.fill(said.replace('[options] ', ''), 100)}\n\nIn C: {text}" if said else f"In C: {text}"

    def signature(self):
        kinds = inspect.Parameter
        made = []
        stated = self.entry.get("defaults", {})
        for name in self.order:
            p = self.visible.get(name)
            default = kinds.empty if p is not None and name not in self.defaults else self.defaults.get(name, python_name(stated.get(name)))
            if made and made[-1].default is not kinds.empty and default is kinds.empty:
                default = None
            made.append(kinds(name if name.isidentifier() and name not in ("in", "from") else name + "_", kinds.POSITIONAL_OR_KEYWORD, default=default))
        return inspect.Signature(made)


def python_name(default):
    """An enumerator, TG_F32 or TG_MEAN, as Python's user writes it."""
    if default in abi.ENUMS["TgDType"]:
        return Tensor._dtype(abi.ENUMS["TgDType"][default]).name if abi.ENUMS["TgDType"][default] else None
    return default.rsplit("_", 1)[1].lower() if isinstance(default, str) and default.startswith("TG_") else default


def made_tensor(h, name, given=()):
    """A tensor that lives as long as its Python object; one that was given is the object that it was; None for none."""
    if not h:
        return None
    for t in given:
        if isinstance(t, Tensor) and t._h == h:
            return t
    now = context()
    if contexts.ORIGINS and name:
        c["tg_origin"](h, contexts.place(name))
    if Tensor._detached and name not in ("detach", "requires_grad"):
        h = detach(h)
    t = Tensor.__new__(Tensor)
    t._h = c["tg_keep"](h)
    t._ctx = now
    return t


_begin, _end, _error = c["tg_scope_begin"], c["tg_scope_end"], c["tg_error"]
detach = abi.function(abi.FUNCTIONS["tg_detach"])


def run(f, call, args):
    """Calls under the lock: in a scope of its own, so that what the library makes on the way ends with the call. `used`
    stays said where another exception than ours ends it, Ctrl-C's: then the next call clears up."""
    now = call.now
    before = begin(now)
    p, raised = now.p, None
    if not f.asks:
        _begin(p)
    try:
        if f.computes:
            with contexts.interruptible():
                r = f.c(*args)
        else:
            r = f.c(*args)
        failed = r if f.returns == "TgStatus" else (not r if f.returns == "TgTensor *" else _error(p))
        raised = now.error() if failed else None
        if raised is None:
            if f.cname in MAKES_GRADIENTS:
                keep_gradients(now)
            result = f.finish(call, r)
    finally:
        if not f.asks:
            _end(p)
    now.used = before
    if raised is not None:
        raise raised
    return result


def begin(now):
    """Clears up what was left, and says that a call is under way."""
    if now.used and not now.inside:
        now.recover()
    if now.dead or now.ended:
        now.bury()
    before, now.used = now.used, True
    return before


def quick_run(f, args):
    """The same for tensors and numbers alone, most calls of a program, in a third of the time; OMITTED: it is no such call."""
    with contexts.LOCK:
        now = context()
        values = []
        for a, number in zip(args, f.numbers):
            if number is None:
                if not isinstance(a, Tensor) or a._ctx is not now:
                    return OMITTED
                values.append(a._h)
            elif type(a) not in number:
                return OMITTED
            else:
                values.append(a)
        before, p = begin(now), now.p
        _begin(p)
        try:
            r = f.c(*values)
            raised = None if r else now.error()
            result = made_tensor(r, f.name, args) if r else None
        finally:
            _end(p)
        now.used = before
        if raised is not None:
            raise raised
        return result


def keep_gradients(now):
    """The gradients of the innermost scope, which is about to end, belong to their tensors from here on."""
    for t in list(live_parameters.values()):
        h = c["tg_grad"](t._h) if t._ctx is now else None
        if not h:
            t._grad = None
        elif t._grad is None or t._grad._h != h:
            t._grad = Tensor.__new__(Tensor)
            t._grad._h, t._grad._ctx = c["tg_keep"](h), now


class Library:
    """Every function of the headers by its C name; with options by the macro's, tg_sum."""

    def __getattr__(self, name):
        entry = abi.MACROS.get(name) or abi.FUNCTIONS.get(name)
        if entry is None:
            raise AttributeError(f"there is no {name} in the headers of tinygrad-c")
        if name in NOT_FOR_PYTHON or name.endswith("_free"):
            raise AttributeError(f"{name} is not for Python, where things end with their last reference; .free() of a handle ends it now")
        f = Function(entry)
        setattr(self, name, f)
        return f

    def __dir__(self):
        return sorted(set(abi.FUNCTIONS) | set(abi.MACROS))


lib = Library()
