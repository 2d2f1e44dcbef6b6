"""nn: layers. Each is a struct of tg_nn.h: made by its _new, run by its _run. Its tensors are attributes by PyTorch's names,
which the library's own tables tell, and may be replaced by others; what is an attribute when it is called is what counts."""
import ctypes
import inspect

from .. import abi, calls, files, values
from ..calls import lib
from ..context import context
from ..tensor import Tensor
from . import datasets, optim, state

# Python's class: what its functions in C are called after, and its arguments in order. A word that begins with ! is the
# contrary of C's; "size axes" is C's name for an array that a number stands for too.
LAYERS = {
    "Linear": ("linear", "in_features=in out_features=out bias"),
    "Conv1d": ("conv1d", "in_channels=in out_channels=out kernel_size=kernel stride padding dilation groups bias"),
    "Conv2d": ("conv2d", "in_channels=in out_channels=out kernel_size=kernel stride padding dilation groups bias"),
    "ConvTranspose1d": ("conv_transpose1d", "in_channels=in out_channels=out kernel_size=kernel stride padding output_padding groups bias dilation"),
    "ConvTranspose2d": ("conv_transpose2d", "in_channels=in out_channels=out kernel_size=kernel stride padding output_padding groups bias dilation"),
    "LayerNorm": ("layer_norm", "normalized_shape=dims eps elementwise_affine=!plain"),
    "LayerNorm2d": ("layer_norm2d", "dim=channels eps elementwise_affine=!plain"),
    "GroupNorm": ("group_norm", "num_groups=groups num_channels=channels eps affine=!plain"),
    "InstanceNorm": ("instance_norm", "num_features=channels eps affine=!plain"),
    "RMSNorm": ("rms_norm", "dim eps elementwise_affine=!plain"),
    "BatchNorm": ("batch_norm", "num_features=channels eps affine=!plain track_running_stats=!untracked momentum counted"),
    "Embedding": ("embedding", "vocab_size=count embed_size=width"),
    "LSTMCell": ("lstm_cell", "input_size=in hidden_size=hidden bias"),
    "LSTM": ("lstm", "input_size=in hidden_size=hidden num_layers=layers bias=!plain batch_first dropout bidirectional"),
    "GRU": ("gru", "input_size=in hidden_size=hidden num_layers=layers bias=!plain batch_first dropout bidirectional"),
    "MultiheadAttention": ("multihead_attention", "embed_dim=width num_heads=heads dropout bias=!plain batch_first kdim vdim"),
}
OTHERS = {"num_embeddings": "vocab_size", "embedding_dim": "embed_size", "embed_size": "embed_size"}  # PyTorch's, of the same
# what runs a layer that several make
RUNS = {"conv1d": "conv2d", "conv_transpose1d": "conv_transpose2d", "instance_norm": "group_norm"}


class Part:
    """A layer within a layer, as out_proj of an attention: its tensors alone."""


def slots(kind, base=0, prefix=""):
    """(name, offset) of each tensor of a struct and of the structs in it."""
    for f in abi.STRUCTS[kind]["fields"]:
        name = f["type"].split("[")[0].strip()
        if abi.plain(name) == "TgTensor *":
            yield prefix + f["name"], base + f["offset"]
        elif name in abi.STRUCTS and not name.endswith(("Options", "Run")):
            size = abi.STRUCTS[name]["size"]
            for i in range(f["size"] // size):
                yield from slots(name, base + f["offset"] + i * size, f"{prefix}{f['name']}.")


def named_tensors(fill, *args):
    """{name: address} of a state dictionary that a function of the library fills."""
    s = lib.tg_state_new()
    fill(*args, s, None)
    return {name: t._h for name, t in files.lent_items(s)}


class Layer:
    """A layer of tg_nn.h. Parameters require gradients; running statistics do not, and no optimiser takes them."""

    def __init__(self, *args, **kw):
        given = self._given(args, kw)
        new = getattr(lib, f"tg_{self._new_name(given)}_new")
        python = {ours.lstrip("!") or name: name for name, _, ours in (w.partition("=") for w in self._arguments.split())}
        for name in new.visible:
            if name not in given:
                raise TypeError(f"{type(self).__name__}() needs '{python[name]}'")
        made = new(**given)
        self._struct, self._kind = made, type(made).__name__
        self._slots = {}
        address = ctypes.addressof(made)
        found = named_tensors(getattr(lib, f"tg_{self._run_name}_state"), made)
        for name, offset in slots(self._kind):
            if "." not in name:
                setattr(self, name, None)
                self._slots[name] = offset
        names = {h: name for name, h in found.items()}
        for _, offset in slots(self._kind):
            h = ctypes.c_void_p.from_address(address + offset).value
            if h:
                self._take(names[h], h, offset)

    @classmethod
    def _given(cls, args, kw):
        words = [w.partition("=") for w in cls._arguments.split()]
        names = [name for name, _, _ in words]
        if len(args) > len(names):
            raise TypeError(f"{cls.__name__}() takes {', '.join(names)}")
        given = dict(zip(names, args))
        for k, v in kw.items():
            k = OTHERS.get(k, k)
            if k not in names or k in given:
                raise TypeError(f"{cls.__name__}() {'is given twice' if k in given else 'has no argument'} '{k}'; there are: {', '.join(names)}")
            given[k] = v
        out = {}
        for name, _, ours in words:
            ours = ours or name
            if name in given:
                out[ours.lstrip("!")] = (not given[name]) if ours.startswith("!") else given[name]
            elif name == "bias" and not ours.startswith("!"):
                out[ours] = True
        if cls.__name__.startswith("ConvTranspose") or out.get("padding") != "same":
            return out
        d, k = out.get("dilation", 1), out["kernel"]
        each = [(d[i] if isinstance(d, (list, tuple)) else d) * (n - 1) for i, n in enumerate(k if isinstance(k, (list, tuple)) else [k] * int(cls.__name__[4]))]
        out["padding"] = [n for e in reversed(each) for n in (e // 2, e - e // 2)]
        return out

    @classmethod
    def _new_name(cls, given):
        """tg_conv_new, where a kernel has sizes of its own along the axes."""
        if isinstance(given.get("kernel"), (list, tuple)):
            if cls._name not in ("conv1d", "conv2d"):
                raise TypeError(f"{cls.__name__}: kernel_size is one number, of every axis")
            return "conv"
        return cls._name

    def _take(self, name, h, offset):
        """An attribute by its name in a state dictionary: weight, out_proj.weight."""
        t = Tensor.__new__(Tensor)
        t._h, t._ctx = h, context()
        if t.requires_grad:
            calls.live_parameters[id(t)] = t
        else:
            t._fixed = True
        at, *rest = name.split(".")
        if not rest:
            setattr(self, at, t)
        else:
            if not isinstance(getattr(self, at, None), Part):
                setattr(self, at, Part())
            setattr(getattr(self, at), rest[0], t)
        self._slots[name] = offset

    def _filled(self):
        """The struct with what the attributes are now."""
        address = ctypes.addressof(self._struct)
        for name, offset in self._slots.items():
            at, _, rest = name.partition(".")
            t = getattr(getattr(self, at), rest) if rest else getattr(self, at)
            if t is not None:
                values.check_context(t, context())
            ctypes.c_void_p.from_address(address + offset).value = t._h if t is not None else None
        return self._struct

    def __call__(self, x, *args, **kw):
        return getattr(lib, f"tg_{self._run_name}_run")(self._filled(), x, *args, **kw)

    def __repr__(self):
        text = ctypes.create_string_buffer(1000)
        table = abi.LIBRARIES["tinygrad"][f"tg_{self._run_name}_module"]
        lib.tg_module_print(abi.ctype("TgModuleFn")(ctypes.cast(table, ctypes.c_void_p).value), self._filled(), text)
        return text.value.decode()

    def __getstate__(self):  # of a copy and of a pickle: the struct's numbers
        return {**vars(self), "_struct": bytes(self._struct)}

    def __setstate__(self, state):
        vars(self).update(state)
        self._struct = abi.struct(self._kind).from_buffer_copy(state["_struct"])


def recurrent(self, x, state=None):
    """(outputs, state): of an LSTM state is (h, c), of a GRU h; None: zeros."""
    if self._name == "gru":
        return getattr(lib, "tg_gru_run")(self._filled(), x, state)
    h, c = state if state is not None else (None, None)
    out, *state = getattr(lib, f"tg_{self._name}_run")(self._filled(), x, h, c)
    return (out, state[0]) if len(state) == 1 else (out, tuple(state))


def attention(self, query, key=None, value=None, mask=None, causal=False, weights=False):
    """The output; with weights=True (output, weights)."""
    key = query if key is None else key
    return lib.tg_multihead_attention_run(self._filled(), query, key, key if value is None else value, mask=mask, causal=causal, weights=weights)


for name, (c_name, arguments) in LAYERS.items():
    run = RUNS.get(c_name, c_name)
    new = abi.MACROS.get(f"tg_{c_name}_new") or abi.FUNCTIONS[f"tg_{c_name}_new"]
    names = [w.partition("=")[0] for w in arguments.split()]
    body = {"_name": c_name, "_run_name": run, "_arguments": arguments, "__doc__": f"{name}({', '.join(names)})\n\n{calls.Function(new).__doc__}",
            "__module__": __name__, "__signature__": inspect.Signature([inspect.Parameter(n, inspect.Parameter.POSITIONAL_OR_KEYWORD) for n in names])}
    body.update({"__call__": recurrent} if c_name in ("lstm", "gru", "lstm_cell") else {"__call__": attention} if c_name == "multihead_attention" else {})
    globals()[name] = type(name, (Layer,), body)
BatchNorm1d = BatchNorm2d = BatchNorm3d = BatchNorm  # noqa: F821  by channels, whatever follows them
