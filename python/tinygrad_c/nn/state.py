"""state.py: state dictionaries of any Python object, and model files."""
from .. import files
from ..calls import lib
from ..tensor import Tensor


def get_state_dict(obj, prefix=""):
    """{dotted name: tensor} of what stands in lists, tuples, dicts and attributes; of an optimiser what it remembers. An
    object that is met within itself is passed over."""
    found = {}
    visit(obj, prefix.rstrip("."), found, set())
    return found


def visit(obj, name, found, above):
    if isinstance(obj, Tensor):
        found[name] = obj
        return
    if id(obj) in above or isinstance(obj, (str, bytes, int, float)):
        return
    if hasattr(obj, "state_dict"):
        parts = obj.state_dict().items()
    elif isinstance(obj, (list, tuple)):
        parts = enumerate(obj)
    elif isinstance(obj, dict):
        parts = obj.items()
    else:
        parts = ((k, v) for k, v in getattr(obj, "__dict__", {}).items() if not k.startswith("_"))
    for k, v in parts:
        visit(v, f"{name}.{k}" if name else str(k), found, above | {id(obj)})


def get_parameters(obj):
    """The tensors of get_state_dict, running statistics too; optimisers leave those out."""
    return list(get_state_dict(obj).values())


def load_state_dict(model, state_dict, strict=True):
    """Values into the tensors of a model, by name: all of them or, where shapes or names do not fit, none. strict=False:
    names that one of both lacks are no error. Values take the model's dtypes."""
    lib.tg_load_state(files.as_state(get_state_dict(model)), files.as_state(state_dict), partial=not strict, more=not strict)


def load_optimizer(optimizer, state_dict):
    """What steps remember, as get_state_dict gave it."""
    lib.tg_load_state(files.as_state(optimizer.state_dict()), files.as_state(state_dict))


safe_save, safe_load, torch_load, gguf_load = files.safe_save, files.safe_load, files.torch_load, files.gguf_load
