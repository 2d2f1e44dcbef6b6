"""calls.py: Python's arguments -> a call of the library -> Python's results, for any function of tg_abi.json. There is no
code for a function of its own: what a parameter is follows from its type, and from `count`, which says what tells a list's
length. Options are keywords, shapes and axes are numbers or tuples, tensors in lists are lists, what a function writes to
is a result, and numbers stand where tensors do.

`lib` has them all, with arguments in C's order: lib.tg_onnx_opset(model), lib.tg_sum(t, axis=1). Tensor's methods are made by
the same class, with an order and defaults of Python's where tensor.py says so."""
import ctypes
import inspect
import re
import textwrap

from . import abi, context as contexts
from .context import c, context
from .values import LISTS, Call, Handle

OMITTED = object()  # an option that was not written: the library's default
ROOM = ("cap", "most")  # counts of places that may be too few
# Names of other frameworks, and ours that they may stand for; ! turns the meaning round.
SYNONYMS = {name: ours.split() for name, ours in {
    "dim": "axis axes order axis1", "dims": "axis axes order", "axis": "axes order", "shape": "dims sizes", "size": "dims sizes", "sizes": "size",
    "keepdims": "keepdim", "dtype": "to", "num_classes": "classes", "fill_value": "value", "return_indices": "indices", "min": "lo", "max": "hi",
    "low": "lo", "high": "hi", "kernel_size": "kernel", "output_size": "size", "attn_mask": "mask", "is_causal": "causal", "dropout_p": "dropout",
    "enable_gqa": "grouped", "repeats": "times", "start_dim": "first", "end_dim": "last", "dim0": "a", "dim1": "b", "neg_slope": "slope",
    "negative_slope": "slope", "num_samples": "k", "input": "x", "other": "b x", "b1": "beta1", "b2": "beta2", "largest": "!smallest",
    "sorted": "!unsorted", "unbiased": "!biased", "ddof": "correction", "include_self": "!exclude_self"}.items()}
BORROWED = ("tg_optim_at", "tg_llm_tokenizer", "tg_jit_variable", "tg_vision_open_opt")  # pointers that stay another thing's, or end with it
LENT = ("tg_state_get", "tg_state_at", "tg_value_tensor", "tg_onnx_weight", "tg_loader_next", "tg_grad",
        "tg_module_parameters", "tg_llm_parameters")  # tensors that stay the first argument's
MAY_BE_NONE = LENT + ("tg_jit_memory",)
NOT_FOR_PYTHON = ("tg_open", "tg_close", "tg_keep", "tg_release", "tg_scope_begin", "tg_scope_end", "tg_alloc")  # and all tg_.._free
MAY_REQUIRE = ("tg_clone", "tg_requires_grad", "tg_module_parameters", "tg_llm_parameters")  # a gradient, that is
MAKES_GRADIENTS = ("tg_backward_opt", "tg_clip_grad_norm", "tg_clip_grad_value", "tg_clone", "tg_jit_run")
SCALARS = ("int", "int64_t", "size_t", "uint64_t", "double", "float", "bool")
NUMBERS = {"int64_t *": ctypes.c_int64, "size_t *": ctypes.c_size_t, "double *": ctypes.c_double, "char **": ctypes.c_char_p}
Tensor = None  # set by tensor.py
live_parameters = None  # tensors that require a gradient, by id: a WeakValueDictionary, set by tensor.py


class Parameter:
    """One of C's. many: a list that the caller gives; out: what the function writes, one thing or a list; bytes are the
    caller's. role: where its value comes from."""

    def __init__(self, entry):
        self.name, self.type, self.count = entry["name"], entry["type"], entry.get("count")
        self.kind = {"char *": "void *"}.get(self.type, abi.plain(self.type))  # a text that is written is memory of the caller's
        if self.kind.startswith("double ["):
            self.kind = "double *"
        constant = self.type != "const char **" and (self.type.startswith("const ") or "*const *" in self.type)
        fixed = re.match(r"TgTensor \*\[(\d+)\]", self.type)
        self.fixed = int(fixed.group(1)) if fixed else 0
        self.many = bool(self.count) and constant and self.kind not in ("char *", "void *")
        self.out = bool(fixed) or not constant and (self.kind in NUMBERS or self.kind == "TgTensor **" or bool(self.count) and self.kind in LISTS)
        self.role = "place" if self.out else "given"


class Function:
    """A function of the library. spec: names in the order that Python has them, with defaults: "size axis=0"."""

    def __init__(self, entry, spec=""):
        self.entry, self.c, self.cname, self.returns = entry, abi.function(entry), entry["name"], abi.plain(entry["returns"])
        self.name = entry.get("macro", entry["name"])[len("tg_"):]
        if entry["header"] == "tg_nn.h" and self.name.endswith("_run"):
            self.name = self.name[:-len("_run")]
        self.params = [Parameter(p) for p in entry["params"]]
        self.options, self.fields = None, {}
        if "macro" in entry:
            kind = self.params[-1].kind[:-2]
            self.options = abi.struct(kind)
            self.fields = {f["name"]: abi.plain(f["type"]) for f in abi.STRUCTS[kind]["fields"] if f["name"] not in ("size", "set", "end_")}
        self.set_roles()
        self.set_order(spec)
        self.gives_bytes = self.returns in ("char *", "void *") and any(p.kind == "size_t *" and p.name == "nbytes" for p in self.params)
        if self.gives_bytes:
            self.c.restype = ctypes.c_void_p
        # a question computes nothing and makes no tensor
        self.asks = self.returns not in ("TgTensor *", "TgStatus") and bool(self.params) and self.params[0].type.startswith("const Tg")
        self.computes = not self.asks and (self.returns != "TgTensor *" or self.cname in ("tg_getitem", "tg_masked_select_opt", "tg_nonzero_opt"))
        kinds = [p.kind for p in self.params]
        plain = self.returns == "TgTensor *" and all(k in ("TgTensor *", "double", "int", "int64_t") for k in kinds) and self.order == list(self.visible)
        self.quick = len(kinds) if plain and self.cname not in MAKES_GRADIENTS + LENT else 0
        self.numbers = [None if k == "TgTensor *" else (int, float) if k == "double" else (int,) for k in kinds]
        self.__doc__ = self.documentation()

    def set_roles(self):
        told = {p.count for p in self.params if p.count and not p.out}  # by lists that are given
        room = {p.count for p in self.params if p.out and p.count in ROOM}
        for p in self.params:
            p.role = "length" if p.name in told else "room" if p.name in room else "nothing" if p.name == "user" else p.role
        if self.params and self.params[0].kind == "TgContext *":
            self.params[0].role = "context"
        if self.options:
            self.params[-1].role = "options"
        self.room, self.places = bool(room), [p.name for p in self.params if p.out]
        self.visible = {p.name: p for p in self.params if p.role == "given"}

    def set_order(self, spec):
        words = [w.partition("=") for w in spec.split()]
        self.defaults = {name: eval(value, {"inf": float("inf"), "i32": "int32", "f32": "float32"}) for name, has, value in words if has}
        named = [name for name, _, _ in words]
        subject = [n for n in list(self.visible)[:1] if n not in named and self.params[0].role == "given"]
        rest = [n for n in self.visible if n not in named + subject]
        self.order = subject + named + rest + [f for f in self.fields if f not in self.visible]

    # ---- arguments
    def argument_name(self, name, given):
        """(our name of a keyword, whether it is turned round)."""
        if name in self.places:  # how many places there are, where no count tells it
            return name, False
        names = [name, *SYNONYMS.get(name.rstrip("_"), ())]
        for known in names:
            if known.lstrip("!") in self.order and known.lstrip("!") not in given:
                return known.lstrip("!"), known.startswith("!")
        if any(known.lstrip("!") in given for known in names):
            raise TypeError(f"{self.name}() is given '{name}' twice")
        raise TypeError(f"{self.name}() has no argument '{name}'; there are: {', '.join(self.order) or 'none'}")

    def bind(self, args, kw):
        """Arguments by our names. A list may be given as one, or as numbers or tensors that follow each other."""
        given, at = {}, 0
        for key, v in kw.items():
            if key in ("out", "dtype") and v is None:  # of numpy.mean(tensor), which calls the method
                continue
            name, turned = self.argument_name(key, given)
            given[name] = (not v) if turned else v
        left = [name for name in self.order if name not in given]
        for k, name in enumerate(left):
            if at == len(args):
                break
            p, v, take = self.visible.get(name), args[at], 1
            if p is not None and p.kind == "TgTensor **" and isinstance(v, Tensor):
                take = next((i for i, a in enumerate(args[at:]) if not isinstance(a, Tensor)), len(args) - at)
            elif p is not None and p.many and p.kind in LISTS and not isinstance(v, (list, tuple)):
                needed = [m for m in left[k + 1:] if m in self.visible and (m not in self.defaults or self.visible[m].many)]
                take = max(len(args) - at - len(needed), 1)
            given[name] = v if take == 1 else list(args[at:at + take])
            at += take
        if at < len(args):
            raise TypeError(f"{self.name}() takes {len(self.order)} arguments ({', '.join(self.order)}), {len(args)} were given")
        for name in self.visible:
            if name not in given and name not in self.defaults:
                raise TypeError(f"{self.name}() needs '{name}'")
            given.setdefault(name, self.defaults.get(name))
        return given

    def option_struct(self, call):
        """The options that were given, and which these are; the library has its defaults for the others."""
        o, written = self.options(size=ctypes.sizeof(self.options)), []
        for name, kind in self.fields.items():
            v = call.given.get(name)
            if v is None or v is False and kind == "TgTensor **":
                continue
            if v is True and kind == "TgTensor **":  # a result besides
                place = ctypes.c_void_p()
                call.outs.append((kind, place, None))
                v = ctypes.addressof(place)
            else:
                v = call.value(kind, v, name)
            setattr(o, name, ctypes.addressof(v) if isinstance(v, ctypes.Array) else v)
            written.append(f".{name}")
        o.set = ",".join(written).encode()
        call.keep.append(o)
        return ctypes.byref(o)

    def lengths(self, call):
        """The values that are given, by name, and the lengths that their lists tell."""
        made, counts = {}, {}
        for name, p in self.visible.items():
            v = call.given[name]
            try:
                if v is None:
                    made[name] = abi.ctype(p.type)() if p.kind in SCALARS or p.kind in abi.ENUMS or "(*)" in abi.CALLBACKS.get(p.kind, p.kind) else None
                elif not p.count:
                    made[name] = call.value(p.kind, v, name)
                else:
                    made[name], n = call.list(p.kind, v)
                    want = call.tensors[0].ndim if p.count.startswith("tg_ndim") else counts.setdefault(p.count, n)
                    if n != want:
                        raise ValueError(f"{n} entries, where {want} are expected")
            except (TypeError, ValueError, OverflowError) as e:
                if isinstance(e, contexts.TinygradError):
                    raise
                raise type(e)(f"{self.name}(): {name}: {e}") from None
        return made, counts

    def arguments(self, call, room):
        """What C is given, in its order."""
        made, counts = self.lengths(call)
        out = []
        for p in self.params:
            if p.role == "given":
                out.append(made[p.name])
            elif p.role == "place":
                out.append(self.place(call, p, counts, room))
            elif p.role == "context":
                out.append(call.now.p)
            elif p.role == "options":
                out.append(self.option_struct(call))
            else:
                out.append(room if p.role == "room" else counts.get(p.name, 0) if p.role == "length" else None)
        return out

    def place(self, call, p, counts, room):
        """Where the function writes: to one place, or as many as a count says."""
        n = p.fixed or (room if p.count in ROOM else counts.get(p.count, call.given.get(p.count)) if p.count else None)
        first = call.given.get(p.name, n)  # a number of places, or what stands in them before
        n = len(first) if isinstance(first, (list, tuple)) else first
        one = NUMBERS.get(p.kind) or LISTS.get(p.kind) or ctypes.c_void_p
        place = one() if n is None else (one * max(n, 1))(*(first if n is not first else ()))
        call.outs.append((p.kind, place, "returned" if p.count in ROOM else n))
        return ctypes.byref(place) if n is None else place

    # ---- the call
    def __call__(self, *args, **kw):
        if self.quick and len(args) == self.quick and not kw:
            result = quick_run(self, args)
            if result is not OMITTED:
                return result
        given = self.bind(args, kw)
        room = 64 if self.room else 0
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
            if length == "returned":
                length = min(int(r), len(place))
            values.append(self.written(call, kind, place) if length is None else [self.written(call, kind, v) for v in place[:length]])
        for p in self.params:  # a state dictionary does not own what is put there, or what it is of
            if p.type == "TgState *" and isinstance(call.given.get(p.name), Handle):
                call.given[p.name].keep.extend([v for v in call.given.values() if v is not call.given[p.name]] + call.tensors)
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
        if kind in LISTS:  # of as many as the library says elsewhere
            return ctypes.cast(r, ctypes.POINTER(LISTS[kind])) if r else None
        if kind.endswith("*") and kind not in ("void *", "TgTensor **"):
            owned = not self.entry["returns"].startswith("const") and self.cname not in BORROWED
            return Handle(kind, r, owned, (call.keep, list(call.given.values()))) if r else None
        return r

    def tensor(self, call, h):
        if not h and self.cname not in MAY_BE_NONE:
            raise contexts.ArgumentError(f"{self.name}: a tensor is missing among its arguments")
        if self.cname not in LENT or not h:
            t = made_tensor(h, self.name, call.tensors)
        else:
            t = Tensor.__new__(Tensor)
            t._h, t._ctx, t._lent, t._owner = h, call.now, True, next(iter(call.given.values()))
        if self.cname in MAY_REQUIRE and t is not None and is_parameter(h):
            live_parameters[id(t)] = t
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
detach, is_parameter = (abi.function(abi.FUNCTIONS[f"tg_{name}"]) for name in ("detach", "is_parameter"))


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
        raised = (now.error() or f.returns == "TgStatus" and contexts.of_status(r)) if failed else None
        if not raised:
            if f.cname in MAKES_GRADIENTS:
                keep_gradients(now)
            result = f.finish(call, r)
    finally:
        if not f.asks:
            _end(p)
    now.used = before
    if raised:
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
            raised = None if r else now.error() or contexts.ArgumentError(f"{f.name}: a tensor is missing among its arguments")
            result = made_tensor(r, f.name, args)
        finally:
            _end(p)
        now.used = before
        if raised is not None:
            raise raised
        return result


def keep_gradients(now):
    """The gradients of the innermost scope, which is about to end, belong to their tensors from here on."""
    for ref in live_parameters.valuerefs():
        t = ref()
        if t is None:
            continue
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
