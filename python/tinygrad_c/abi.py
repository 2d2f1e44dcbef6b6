"""abi.py: where the library is, and what tg_abi.json says of it: ctypes types for its enums, structs, callbacks and
functions. Nothing of the library is known here but that file, which the build writes from the headers: a library of
another version is refused, because its structs may have other fields."""
import ctypes
import ctypes.util
import json
import os
import pathlib
import re
import sys

HERE = pathlib.Path(__file__).resolve().parent
SUFFIX = ".dylib" if sys.platform == "darwin" else ".so"
SCALARS = {"void": None, "bool": ctypes.c_bool, "char": ctypes.c_char, "int": ctypes.c_int, "int32_t": ctypes.c_int32,
           "int64_t": ctypes.c_int64, "uint8_t": ctypes.c_uint8, "uint64_t": ctypes.c_uint64, "size_t": ctypes.c_size_t,
           "float": ctypes.c_float, "double": ctypes.c_double}


def _installed():
    """Folders of an installation: the library and where its tg_abi.json is, beside it or in the prefix's share."""
    listed = os.environ.get("DYLD_LIBRARY_PATH" if SUFFIX == ".dylib" else "LD_LIBRARY_PATH", "").split(":")
    usual = [pathlib.Path(p) / "lib" for p in (sys.prefix, "/usr/local", "/usr", "/opt/homebrew")]
    for lib in [pathlib.Path(p) for p in listed if p] + [d for u in usual for d in (u, *u.glob("*-linux-gnu*"))]:
        yield from _at(lib)
    name = ctypes.util.find_library("tinygrad")
    if name and os.path.exists("/proc/self/maps"):  # the system's loader knows it: where it is, is known once it is loaded
        ctypes.CDLL(name)
        for line in open("/proc/self/maps"):
            if "/libtinygrad.so" in line:
                yield from _at(pathlib.Path(line.split()[-1]).parent)


def _at(lib):
    for abi in (lib, *(p / "share" / "tinygrad" for p in list(lib.parents)[:2])):
        if (lib / f"libtinygrad{SUFFIX}").exists() and (abi / "tg_abi.json").exists():
            yield lib, abi


def _find():
    """(folder of the libraries, tg_abi.json): $TINYGRAD_C, else beside this package, else what is installed."""
    named = os.environ.get("TINYGRAD_C")
    if named:
        lib = pathlib.Path(named)
        for need in (f"libtinygrad{SUFFIX}", "tg_abi.json"):
            if not (lib / need).exists():
                raise ImportError(f"TINYGRAD_C is {named}, where there is no {need}; it is to name a folder with both, such as a build's")
        return lib, lib / "tg_abi.json"
    if (HERE / "lib" / "tg_abi.json").exists():
        return HERE / "lib", HERE / "lib" / "tg_abi.json"
    for lib, abi in _installed():
        return lib, abi / "tg_abi.json"
    raise ImportError(f"no libtinygrad{SUFFIX} with its tg_abi.json: not in {HERE / 'lib'}, not installed; TINYGRAD_C may name the folder of a build")


FOLDER, ABI_PATH = _find()
try:
    ABI = json.loads(ABI_PATH.read_text())
    FUNCTIONS = {f["name"]: f for f in ABI["functions"]}
    MACROS = {f["macro"]: f for f in ABI["functions"] if "macro" in f}
    STRUCTS = {s["name"]: s for s in ABI["structs"]}
    ENUMS = {e["name"]: e["values"] for e in ABI["enums"]}
    CALLBACKS = {c["name"]: c["type"] for c in ABI["callbacks"]}
    VERSION = ABI["version"]
except (ValueError, KeyError) as e:
    raise ImportError(f"{ABI_PATH} is not the tg_abi.json of this package: {e!r}") from None


def _load(name):
    """The library of this name; the first one of all is asked for its version."""
    path = FOLDER / f"lib{name}{SUFFIX}"
    try:
        library = ctypes.CDLL(str(path))
    except OSError as e:
        raise ImportError(f"{path} does not load: {e}") from None
    if name == "tinygrad":
        library.tg_version.restype = ctypes.c_char_p
        there = library.tg_version().decode()
        if there != VERSION:
            raise ImportError(f"{path} is version {there}, but {ABI_PATH} is of version {VERSION}; both are to be of one build")
    return library


class _Libraries(dict):
    """By name, loaded when first asked for: language models are a library of their own."""

    def __missing__(self, name):
        self[name] = library = _load(name)
        return library


LIBRARIES = _Libraries()
LIBRARIES["tinygrad"]  # what is wrong with it is told at import


def plain(text):
    """A type without what does not change its form: const, and the word struct."""
    return re.sub(r"\s+", " ", re.sub(r"\b(const|struct)\b", "", text)).strip().replace("* *", "**")


def _split(text):
    """Pieces between commas that stand outside of brackets."""
    out, depth, piece = [], 0, ""
    for c in text:
        depth += (c in "([") - (c in ")]")
        if c == "," and not depth:
            out.append(piece)
            piece = ""
        else:
            piece += c
    return out + [piece] if piece.strip() else out


_made = {}  # ctypes types by their text


def ctype(text):
    """The ctypes type of a C type. Pointers are addresses, because what they lead to is the business of a call; texts
    are c_char_p."""
    if text not in _made:
        _made[text] = _make(text)
    return _made[text]


def _make(text):
    bare = plain(text)
    if bare in SCALARS:
        return SCALARS[bare]
    if bare in ENUMS:
        return ctypes.c_int
    if bare in CALLBACKS:
        return ctype(CALLBACKS[bare])
    if "(*)" in bare:
        returns, _, rest = bare.partition("(*)")
        # names of parameters are left off: the last word, where a type stands before it
        types = [re.sub(r"(?<=[\w*])\s*\b\w+$", "", p.strip()) if re.search(r"[ *]\w+$", p.strip()) else p for p in _split(rest[1:-1])]
        return ctypes.CFUNCTYPE(ctype(returns), *(ctype(t) for t in types if t != "void"))
    if bare == "char *" and "const" in text:
        return ctypes.c_char_p
    if "*" in bare or "[" in bare:
        return ctypes.c_void_p
    return struct(bare)


def struct(name):
    """A struct as ctypes has it; its places are those of the file, or the file is of another machine."""
    if name in _made:
        return _made[name]
    fields = []
    for f in STRUCTS[name]["fields"]:
        base, _, _ = f["type"].partition("[")
        one = ctype(base.strip())
        fields.append((f["name"], one if "[" not in f["type"] else one * (f["size"] // ctypes.sizeof(one))))
    made = type(name, (ctypes.Structure,), {"_fields_": fields})
    for f in STRUCTS[name]["fields"]:
        if getattr(made, f["name"]).offset != f["offset"]:
            raise ImportError(f"{ABI_PATH}: {name}.{f['name']} is not where this machine has it")
    _made[name] = made
    return made


def function(entry):
    """The function of the library, with its types."""
    library = ABI["libraries"][entry["header"]]
    try:
        f = LIBRARIES[library][entry["name"]]
    except AttributeError:
        raise NotImplementedError(f"lib{library} was built without {entry['name']}") from None
    f.argtypes = [ctype(p["type"]) for p in entry["params"]]
    f.restype = ctype(entry["returns"])
    return f


def _docs():
    """What the headers say of each function, where the package was made with it (tools/python/package.py)."""
    path = HERE / "docs.json"
    return json.loads(path.read_text()) if path.exists() else {}


DOCS = _docs()
