#!/usr/bin/env python3
"""package.py BUILD [OUT]: the Python package with its libraries inside, OUT/python/tinygrad_c, and as a wheel that pip takes
without a network, OUT/tinygrad_c-VERSION-py3-none-PLATFORM.whl. OUT is BUILD, where it is not named. In: python/tinygrad_c, an installation of BUILD to a folder of its
own, the headers, whose comments become what help() tells. The standard library alone is used."""
import base64
import hashlib
import inspect
import json
import pathlib
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import zipfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.dont_write_bytecode = True
sys.path.insert(0, str(ROOT / "tools" / "docs"))
import headers


def put_libraries(build, to):
    """lib/: what cmake --install gives, without what debuggers want."""
    to.mkdir()
    with tempfile.TemporaryDirectory() as at:
        subprocess.run(["cmake", "--install", str(build), "--prefix", at, "--strip"], check=True, stdout=subprocess.DEVNULL)
        root = pathlib.Path(at)
        shutil.copyfile(root / "share" / "tinygrad" / "tg_abi.json", to / "tg_abi.json")
        for name in ("libtinygrad", "libtinygrad_llm"):
            for suffix in (".so", ".dylib"):
                for library in root.glob(f"lib*/**/{name}{suffix}"):
                    shutil.copyfile(library, to / library.name)  # the file that the link leads to


def docs():
    """{function: what the headers say of it}"""
    found = {}
    for _, _, sections in headers.load(ROOT):
        for section in sections:
            for entry in section.entries:
                if entry.kind == "function" and entry.text:
                    found.update({name: " ".join(entry.text.split()) for name in entry.names})
    return found


# ---- stubs: what an editor is told, because the methods are made when the package is imported
def parameters(f):
    text = []
    for p in inspect.signature(f).parameters.values():
        stars = {p.VAR_POSITIONAL: "*", p.VAR_KEYWORD: "**"}.get(p.kind, "")
        text.append(stars + p.name + ("" if p.default is p.empty else " = ..."))
    return text


def function_stub(name, f, package, indent="", decorator=""):
    entry = package.abi.FUNCTIONS.get(getattr(f, "__tinygrad__", ""))
    many = entry and hasattr(f, "__signature__") and any(package.abi.plain(p["type"]).endswith(("_t *", "TgTensor **")) and "count" in p for p in entry["params"])
    params = parameters(f)
    if many:  # lists may also be given as numbers and tensors one after the other
        params = params[:0 if decorator else 1] + ["*args", "**options"]
    if f.__name__ in ("operator", "operate", "<lambda>") or name in ("__getitem__", "realize", "requires_grad_", "backward", "squeeze", "pad"):
        return f"{indent}def {name}({', '.join(params)}) -> Tensor: ...{'  # type: ignore[override]' if name in ('__eq__', '__ne__') else ''}\n"
    gives = " -> Tensor" if entry and entry["returns"] == "TgTensor *" and not any(p["type"] == "TgTensor **" for p in entry["params"]) else ""
    said = json.dumps((f.__doc__ or "").split("\n\nIn C:")[0], ensure_ascii=False)
    return f"{decorator}{indent}def {name}({', '.join(params)}){gives}:\n{indent}    {said}\n{indent}    ...\n"


def class_stub(cls, package):
    bases = [b.__name__ for b in cls.__bases__ if b is not object]
    lines = [f"class {cls.__name__}({', '.join(bases)}):\n    {json.dumps((cls.__doc__ or '').split(chr(10) * 2 + 'In C:')[0])}\n"]
    for name, v in vars(cls).items():
        if name.startswith("_") and not (name.startswith("__") and inspect.isfunction(v)):
            continue
        if isinstance(v, property):
            lines.append(f"    {name}: {'tuple' if name == 'shape' else 'object'}\n")
        elif isinstance(v, (staticmethod, classmethod)):
            kind = type(v).__name__
            text = function_stub(name, v.__func__, package, "    ", f"    @{kind}\n")
            lines.append(text)
        elif inspect.isfunction(v):
            lines.append(function_stub(name, v, package, "    "))
        elif isinstance(v, type):
            lines.append(f"    class {name}:\n        def __init__(self, mode=True): ...\n        def __enter__(self): ...\n        def __exit__(self, *_): ...\n")
        else:
            lines.append(f"    {name}: object\n")
    if "_arguments" in vars(cls):  # a layer: its arguments in order
        words = [w.partition("=")[0] for w in cls._arguments.split()]
        lines.append(f"    def __init__(self, {', '.join(w + ' = ...' for w in words)}): ...\n    weight: Tensor\n    bias: Tensor\n")
    return "".join(lines)


def module_stub(module, package):
    lines = ["from typing import Any\n"] + (["from tinygrad_c import Tensor\n"] if module is not package.tensor else [])
    if module is package.nn:
        lines.append("from . import datasets as datasets, optim as optim, state as state\n")
    for name, v in vars(module).items():
        if name.startswith("_") or getattr(v, "__module__", "") != module.__name__:
            continue
        if isinstance(v, type):
            lines.append(class_stub(v, package) if v.__name__ == name else f"{name} = {v.__name__}\n")
        elif inspect.isfunction(v):
            lines.append(function_stub(name, v, package))
        else:
            lines.append(f"{name}: Any\n")
    return "\n".join(lines)


def put_stubs(to):
    sys.path.insert(0, str(to.parent))
    import tinygrad_c as package
    for module in (package.tensor, package.nn, package.nn.optim):
        path = pathlib.Path(module.__file__).with_suffix(".pyi")
        text = module_stub(module, package)
        compile(text, str(path), "exec")
        path.write_text(text)
    (to / "py.typed").write_text("")


# ---- the wheel: a zip archive with a list of its files and their digests
METADATA = """Metadata-Version: 2.1
Name: tinygrad-c
Version: {version}
Summary: Lazy tensors, a compiler, autograd, layers, ONNX and language models: tinygrad-c by ctypes
License: MIT
Requires-Python: >=3.9
Provides-Extra: numpy
Requires-Dist: numpy; extra == "numpy"
Description-Content-Type: text/markdown

"""


def write_wheel(package, out, version):
    platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
    tag, about = f"py3-none-{platform}", f"tinygrad_c-{version}.dist-info"
    path = out / f"tinygrad_c-{version}-{tag}.whl"
    for old in out.glob("tinygrad_c-*.whl"):
        old.unlink()
    entries = {p.relative_to(package.parent).as_posix(): p.read_bytes() for p in sorted(package.rglob("*")) if p.is_file()}
    entries[f"{about}/METADATA"] = (METADATA.format(version=version) + (ROOT / "docs" / "python.md").read_text()).encode()
    entries[f"{about}/WHEEL"] = f"Wheel-Version: 1.0\nGenerator: tinygrad-c\nRoot-Is-Purelib: false\nTag: {tag}\n".encode()
    entries[f"{about}/LICENSE"] = (ROOT / "LICENSE").read_bytes()
    record = [f"{name},sha256={base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b'=').decode()},{len(data)}" for name, data in entries.items()]
    entries[f"{about}/RECORD"] = "\n".join([*record, f"{about}/RECORD,,", ""]).encode()
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as z:
        for name, data in entries.items():
            info = zipfile.ZipInfo(name)  # of 1980, so that the same contents are the same archive
            info.external_attr, info.compress_type = 0o644 << 16, zipfile.ZIP_DEFLATED
            z.writestr(info, data)
    return path


def main():
    build = pathlib.Path(sys.argv[1]).resolve()
    out = pathlib.Path(sys.argv[2]).resolve() if len(sys.argv) > 2 else build
    to = out / "python" / "tinygrad_c"
    shutil.rmtree(to, ignore_errors=True)
    shutil.copytree(ROOT / "python" / "tinygrad_c", to, ignore=shutil.ignore_patterns("__pycache__"))
    put_libraries(build, to / "lib")
    (to / "docs.json").write_text(json.dumps(docs(), ensure_ascii=False))
    put_stubs(to)
    print(to)
    print(write_wheel(to, out, json.loads((to / "lib" / "tg_abi.json").read_text())["version"]))


main()
