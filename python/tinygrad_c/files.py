"""files.py: model files and arrays: safetensors, PyTorch's, gguf, npy and npz, archives, Hugging Face's folders. Tensors are
views of the file, so nothing is read before it is needed; what a file says is not trusted."""
import ctypes

from . import abi, context as contexts
from .calls import lib
from .context import context
from .tensor import Tensor

KINDS = {n: name for name, n in abi.ENUMS["TgKind"].items()}
_names = ("kind", "int", "float", "string", "tensor", "count", "at", "key", "free")
_value = {name: abi.function(abi.FUNCTIONS[f"tg_value_{name}"]) for name in _names}
_value["string"].restype = ctypes.c_void_p


class Other:
    """What a file names but nothing here needs, such as torch.device."""

    def __repr__(self):
        return "<other>"


OTHER = Other()


def as_state(tensors):
    """A state dictionary of the library of {name: tensor}."""
    s = lib.tg_state_new()
    for name, t in tensors.items():
        lib.tg_state_put(s, name, t)
    return s


def lent_items(s):
    """(name, tensor) of a state dictionary; the tensors are its own."""
    for i in range(lib.tg_state_count(s)):
        t, name = lib.tg_state_at(s, i)
        yield name, t


def items(s):
    """{name: tensor} of a state dictionary that a reader made, with handles of our own."""
    return {name: t.detach() for name, t in lent_items(s)}


def tree(root):
    """What a file says, as Python has it: dicts, lists, texts (bytes where they are no UTF-8), numbers, tensors."""
    if root is None:
        return None
    with contexts.LOCK:
        try:
            return branch(root.p, context())
        finally:
            root.free()


def branch(v, now):
    kind = KINDS[_value["kind"](v)]
    if kind == "TG_KIND_TENSOR":
        t = Tensor.__new__(Tensor)
        t._h, t._ctx, t._lent = _value["tensor"](v), now, True
        return t.detach()
    if kind == "TG_KIND_STRING":
        size = ctypes.c_size_t()
        text = ctypes.string_at(_value["string"](v, ctypes.byref(size)), size.value)
        try:
            return text.decode()
        except UnicodeDecodeError:
            return text
    if kind in ("TG_KIND_LIST", "TG_KIND_MAP"):
        n, at = _value["count"](v), _value["at"]
        values = [branch(at(v, i), now) for i in range(n)]
        return values if kind == "TG_KIND_LIST" else dict(zip([branch(_value["key"](v, i), now) for i in range(n)], values))
    if kind == "TG_KIND_BOOL":
        return bool(_value["int"](v))
    return {"TG_KIND_INT": _value["int"], "TG_KIND_FLOAT": _value["float"], "TG_KIND_NONE": lambda v: None}.get(kind, lambda v: OTHER)(v)


def file(path):
    """The bytes of a file as a u8 tensor, which readers take as well as a path; nothing is read yet."""
    return path if isinstance(path, Tensor) else Tensor.from_file(path)


def safe_load(path):
    """{name: tensor} of a safetensors file, or of an index with its shards."""
    return items(lib.tg_safe_load(path) if isinstance(path, Tensor) else lib.tg_safe_load_file(path))


def safe_save(tensors, path, metadata=None):
    """Computes the tensors and writes them; the file takes path's place at once, whole."""
    lib.tg_safe_save(as_state(tensors), path, metadata=metadata)


def safe_metadata(path):
    """What the header says: names with dtype, shape and place, and __metadata__ if there is one."""
    return tree(lib.tg_safe_load_metadata(file(path))[0])


def torch_load(path):
    """What a checkpoint of PyTorch holds; the pickle runs nothing."""
    return tree(lib.tg_torch_load(path) if isinstance(path, Tensor) else lib.tg_torch_load_file(path))


def gguf_load(path):
    """(key-values, {name: tensor}) of a gguf file; quantised tensors are computed where they are used."""
    found = tree(lib.tg_gguf_load(path) if isinstance(path, Tensor) else lib.tg_gguf_load_file(path))
    return found["kv"], found["tensors"]


def hf_load(folder):
    """(key-values, {name: tensor}) of a language model's folder as Hugging Face has it, by gguf's names."""
    found = tree(lib.tg_hf_load(folder))
    return found["kv"], found["tensors"]


def load(path):
    """{name: tensor} of a model file of any kind, by its first bytes."""
    return items(lib.tg_state_from_file(path))


def npy_load(path):
    return lib.tg_npy_load(path) if isinstance(path, Tensor) else lib.tg_npy_load_file(path)


def npy_save(t, path):
    lib.tg_npy_save(t, path)


def npz_load(path):
    """{name: tensor} of a zip of arrays."""
    return {name.rsplit(".", 1)[0]: lib.tg_npy_load(t) for name, t in zip_extract(path).items()}


def zip_extract(path):
    """{name: u8 tensor} of a zip archive."""
    return items(lib.tg_zip_extract(file(path)))


def tar_extract(path):
    return items(lib.tg_tar_extract(file(path)))


def gunzip(path):
    return lib.tg_gunzip(file(path))
