"""tinygrad_c: tinygrad-c for Python, by ctypes alone.

    from tinygrad_c import Tensor
    x = Tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    y = (x @ x.T).relu().sum()
    y.backward()
    print(y.item(), x.grad.tolist())

Tensor has every function of tg.h that is about a tensor as a method; `lib` has all functions of the headers by their C
names; nn, onnx, files and llm are modules. docs/python.md is the guide."""
from .abi import VERSION as __version__
from .calls import lib
from .context import (ArgumentError, Cancelled, CompileError, DeviceError, DTypeError, FileError, LimitError, OutOfMemoryError, OutOfRangeError,
                      ShapeError, StateError, TinygradError)
from .dtypes import DType, dtypes
from .tensor import Device, Tensor

from .jit import Program, Size, TinyJit, Variable
from . import files, nn, onnx

__all__ = ["Tensor", "TinyJit", "Program", "Variable", "Device", "DType", "dtypes", "nn", "files", "onnx", "lib", "counters", "setting", "TinygradError",
           "ShapeError", "OutOfRangeError", "DTypeError", "ArgumentError", "OutOfMemoryError", "FileError", "DeviceError", "CompileError",
           "StateError", "LimitError", "Cancelled"]


def __getattr__(name):
    if name == "llm":  # its library is loaded when it is asked for
        import importlib
        return importlib.import_module(".llm", __name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def counters():
    """What was done so far: kernels, launches, bytes and so on, by TgCounters' names."""
    made = lib.tg_counters()
    return {name: getattr(made, name) for name, _ in made._fields_}


def setting(name, value=-1):
    """A setting of the library, "NOOPT", "PREPACK", "DEBUG" .., set where a value is given; gives the value before."""
    return lib.tg_setting(name, value)
