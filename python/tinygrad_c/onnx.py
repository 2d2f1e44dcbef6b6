"""onnx.py: ONNX models: OnnxRunner("model.onnx")({"x": tensor}) -> {name: tensor}."""
from . import abi
from .calls import lib
from .context import ArgumentError
from .dtypes import dtypes
from .tensor import Tensor


class OnnxRunner:
    """A model. inputs and outputs: {name: (dtype, shape)}, where a free size is its name, or None. Weights are the file's;
    a call builds a graph, TinyJit captures it."""

    def __init__(self, model):
        self._handle = lib.tg_onnx_load(model) if isinstance(model, Tensor) else lib.tg_onnx_open(model)
        self.inputs, self.optional = self._values("input")
        self.outputs, _ = self._values("output")

    def _values(self, which):
        import ctypes
        found, optional, v = {}, set(), abi.struct("TgOnnxValue")()
        while getattr(lib, f"tg_onnx_{which}")(self, len(found), v):
            sizes = (ctypes.c_int64 * max(v.ndim, 0)).from_address(v.dims) if v.ndim > 0 else ()
            names = (ctypes.c_char_p * v.ndim).from_address(v.dim_names) if v.ndim > 0 and v.dim_names else [None] * len(sizes)
            shape = tuple(n if n >= 0 else name.decode() if name else None for n, name in zip(sizes, names)) if v.ndim >= 0 else None
            found[v.name.decode()] = (dtypes.by_id.get(v.dtype), shape)
            if v.has_default:
                optional.add(v.name.decode())
        return found, optional

    @property
    def opset(self):
        return lib.tg_onnx_opset(self)

    def fix(self, name, value):
        """From now on the input has this value, as if the file gave it: what decides a shape is known then."""
        lib.tg_onnx_fix(self, name, value if isinstance(value, Tensor) else Tensor(value, dtype=self.inputs[name][0]))
        self.inputs, self.optional = self._values("input")

    def __call__(self, inputs=None, **more):
        """inputs: {name: tensor, array or list}; gives {name: tensor}, lazy."""
        given = {**(inputs or {}), **more}
        for name in given:
            if name not in self.inputs:
                raise ArgumentError(f"the model has no input '{name}'; there are: {', '.join(self.inputs)}")
        tensors = [v if isinstance(v, Tensor) else Tensor(v, dtype=self.inputs[name][0]) for name, v in given.items()]
        made = lib.tg_onnx_run(self, list(given), tensors, len(self.outputs))
        return dict(zip(self.outputs, made))
