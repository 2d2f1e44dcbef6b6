"""blocks.py BUILD [PAGE..]: README.md, docs/*.md and the headers as somebody uses who copies from them. A block of C compiles without a warning
and runs; what a program prints stands in its comments. A block of the shell is run line by line in a folder that has what its page names;
below `$ COMMAND` stands what that prints: every line of it has that form, with numbers of its own. Behind `..` anything may stand."""
import ast
import os
import pathlib
import re
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
build = pathlib.Path(sys.argv[1]).resolve()
HEADERS = ["include/tg.h", "nn/tg_nn.h", "io/tg_io.h", "llm/tg_llm.h"]
INCLUDE = [f"-I{ROOT / d}" for d in ("include", "nn", "io", "llm")]
LINK = [f"-L{build}", "-ltinygrad_llm", "-ltinygrad", f"-Wl,-rpath,{build}", "-lm"]
STRICT = ["-std=c11", "-Wall", "-Wextra", "-Wpedantic", "-Werror"]
COMPILERS = [c for c in ("gcc", "clang-19", "clang") if shutil.which(c)][:2] or ["cc"]
KERNELS = {"docs/tour.md", "docs/codegen.md"}  # C that the library prints: tests/unit/test_tour.c looks at it
wrong, tried = [], {"programs": 0, "pieces": 0, "calls": 0, "commands": 0, "lines": 0}


def blocks(text, *languages):
    """(line, block) of a page's blocks in these."""
    return [(text.count("\n", 0, m.start(2)) + 1, m.group(2)) for m in re.finditer(r"^```(\w*)\n(.*?)^```$", text, re.M | re.S) if m.group(1) in languages]


def run(command, at, **more):
    return subprocess.run(command, cwd=at, shell=isinstance(command, str), text=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, **more)


# ---- C
# Around a piece: declarations, then what stands before it in a function, then what is asked behind it.
USUAL = """#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tg_io.h>
#include <tg_llm.h>
#include <tg_nn.h>
static void reads(TgTensor *x, const char *numbers) { /* i32 */
  int32_t v[64];
  char text[999] = "", *at = text;
  if (tg_read(x, v, (size_t)tg_numel(x) * 4)) return;
  for (int64_t i = 0; i < tg_numel(x); i++) at += sprintf(at, "%s%d", i ? " " : "", v[i]);
  if (strcmp(text, numbers)) printf("it reads %s, not %s\\n", text, numbers), exit(1);
}
"""
SAID = '  if (tg_error(ctx)) printf("%s\\n", tg_errmsg(ctx));\n'
CLOSE = "  int bad = tg_error(ctx);\n  tg_close(ctx);\n  return bad;\n}\n"
OPEN = "  TgContext *ctx = tg_open(NULL);\n"
STEP = """static TgStatus squares(TgContext *ctx, TgTensor *const *in, int nin, TgTensor **out, int nout, void *w) {
  return (void)ctx, (void)nin, (void)nout, out[0] = tg_mean(tg_square(tg_sub(tg_matmul(in[0], w), in[1]))), TG_OK;
}
"""


def ones(*names):
    return "".join(f"  TgTensor *{n} = tg_contiguous(tg_full(ctx, TG_SHAPE(8, 8), 1));\n" for n in names)


PIECES = {  # page and the beginning of a piece: (declarations, before, behind, how it is started ..)
    ("docs/memory.md", "TgTensor *x = tg_from"): ("", OPEN, "", ""),
    ("docs/many.md", "const char *d[] ="): ("", OPEN + ones("batch", "weights") + "  float out[64];\n  size_t nbytes = sizeof out;\n",
                                            "  if (out[0] != 8 || out[63] != 8 || tg_item_f64(tg_max(s)) != 64) return 2;\n", ""),
    ("docs/many.md", "const char *d[15]"): ("", OPEN + ones("batch", "y"), "  if (loss != 1) return 2;\n", "", "tg launch -n 2"),
    ("docs/programs.md", "tg_jit_save"): (STEP, OPEN + ones("x", "y", "w") + """  TgTensor *loss = NULL;
  TgState *weights = tg_state_new(ctx);
  tg_state_put(weights, "w", w);
  TgJit *step = tg_jit(ctx, squares, w);
  for (int i = 0; i < 3; i++) tg_jit_run(step, (TgTensor *[]){x, y}, 2, &loss, 1);
""", "  if (tg_item_f64(loss) != 49) return 2;\n", ""),
    ("docs/export.md", "void on_threads"): ("""#include "digit.h"
static digit net;
static float pixel[DIGIT_INPUT_SIZE], score[DIGIT_OUTPUT_SIZE];
static int shares;
void on_threads(void (*share)(void *work, int i), int n, void *work);
void on_threads(void (*share)(void *work, int i), int n, void *work) {
  for (int i = n - 1; i >= 0; i--) share(work, i), shares++;
}
""", OPEN, "  if (digit_run(&net, pixel, score) || !shares) return 2;\n", ""),
    ("include/tg.h", "TgVariable *n"): ("", OPEN + "  TgTensor *cache = tg_contiguous(tg_full(ctx, TG_SHAPE(2048, 3), 1));\n",
                                        "  if (tg_item_f64(tg_sum(part)) != 51) return 2;\n", ""),
    ("nn/tg_nn.h", "typedef struct Net"): (None, "", "int main(void) { return net_module()->nfields != 2; }\n", ""),
}
# What calls in the text of a page are about.
NAMES = """static const TgModule *module(void) { return tg_linear_module(); }
int spans(TgContext *ctx, TgTensor *x, TgTensor *t, TgTensor *a, TgTensor *b, TgTensor *h, TgTensor *w, TgTensor **p, TgTensor *y, int n, int i,
          int axis, int ndevice, int64_t old, const char *const *d, const char *const *devices, const char *path, const int64_t *bounds);
int spans(TgContext *ctx, TgTensor *x, TgTensor *t, TgTensor *a, TgTensor *b, TgTensor *h, TgTensor *w, TgTensor **p, TgTensor *y, int n, int i,
          int axis, int ndevice, int64_t old, const char *const *d, const char *const *devices, const char *path, const int64_t *bounds) {
  TgLinear net = {0};
  (void)module, (void)net, (void)ctx, (void)x, (void)t, (void)a, (void)b, (void)h, (void)w, (void)p, (void)y, (void)n, (void)i, (void)axis;
  (void)ndevice, (void)old, (void)d, (void)devices, (void)path, (void)bounds;
"""


def c_blocks(name, text):
    """(line, code) of each."""
    if name.endswith(".md"):
        return blocks(text, "c")
    found = []
    for m in re.finditer(r"(?:^ \*   [^\n]*\n)+", text, re.M):  # lines of a comment that are indented
        code = re.sub(r"^ \*   ", "", m.group(), flags=re.M)
        if re.search(r"^(?:typedef|static|Tg\w+ \*?\w+ =).*$", code, re.M):
            found.append((text.count("\n", 0, m.start()) + 1, code))
    return found


def calls(name, text):
    """Calls in the prose of a page, or in a comment of a header, that are whole."""
    if name.endswith(".md"):
        prose = re.sub(r"^```.*?^```", "", text, flags=re.M | re.S)
        spans = [re.sub(r"\s+", " ", s) for s in re.findall(r"`([^`]+)`", prose)]
        return [s for s in spans if re.fullmatch(r"(?:tg_\w+|TG_WITH)\(.*\)", s) and ".." not in s and " is " not in s]
    comments = " ".join(re.sub(r"\n \*", "\n", c) for c in re.findall(r"/\*.*?\*/", text, re.S))
    inner = r"(?:[^()]|\([^()]*\))"
    said = [re.sub(r"\s+", " ", s) for s in re.findall(rf"\btg_\w+\({inner}*\)", comments)]
    return [s for s in said if re.search(r"[(,] ?\.\w|TG_|\"", s) and ".." not in s]


def compiled(where, code, at, out, more=()):
    (at / f"{out}.c").write_text(code)
    for cc in COMPILERS:
        got = run([cc, *STRICT, *more, *INCLUDE, f"{out}.c", *[f"{n}.c" for n in ("digit",) if '"digit.h"' in code], "-o", out, *LINK], at)
        if got.returncode:
            wrong.append(f"{where}: {cc}: {got.stdout[:1500]}")
            return False
    return True


def c_said(name, text, at):
    for line, code in [] if name in KERNELS else c_blocks(name, text):
        where = f"{name}:{line}"
        if "int main(" in code:
            called = re.search(r"/\* (\w+)\.c: |`(\w+)\.c`", code + "\n".join(text.split("\n")[max(0, line - 4):line]))
            out = next(filter(None, called.groups())) if called else "add"
            tried["programs"] += 1
            if not compiled(where, code, at, out):
                continue
            got = run(f"./{out}", at)
            remarks = " ".join(re.findall(r"/\*(.*?)\*/", code, re.S))
            unsaid = [s for s in got.stdout.splitlines() if s.strip() not in remarks and not re.fullmatch(r"-?[\d.e-]+", s)]
            if got.returncode or unsaid:
                wrong.append(f"{where}: it ends with {got.returncode} and prints what no comment says: {got.stdout}")
            continue
        key = next((k for k in PIECES if k[0] == name and code.startswith(k[1])), None)
        if not key:
            wrong.append(f"{where}: a piece of C that nobody has tried (PIECES)")
            continue
        declared, before, behind, *how = PIECES[key]
        code = code.replace('"CUDA', '"INTERP')  # devices that every machine has
        for said in re.findall(r"/\*(.*?)\*/", code, re.S):  # "x reads 2 3 3 4, half 2 3"
            behind += "".join(f'  reads({n}, "{v.strip()}");\n' for n, v in re.findall(r"(\w+) (?:reads )?((?:-?\d+ ?){2,})", said))
        whole = USUAL + code + behind if declared is None else USUAL + declared + "int main(void) {\n" + before + code + SAID + behind + CLOSE
        tried["pieces"] += 1
        if not compiled(where, whole, at, "piece", ["-Wno-unused"]):
            continue
        for start in how:
            got = run(f"{start} ./piece".strip(), at)
            if got.returncode or got.stdout:
                wrong.append(f"{where}: {start} it ends with {got.returncode}: {got.stdout[-800:]}")
    spans = calls(name, text)
    tried["calls"] += len(spans)
    if spans:
        compiled(f"{name}: the calls in its text", USUAL + NAMES + "".join(f"  (void)({s});\n" for s in spans) + "  return 0;\n}\nint main(void) { return 0; }\n",
                 at, "spans", ["-Wno-unused"])


# ---- the shell
def field(number, data):
    """A field of protobuf: bytes, or a whole number."""
    def varint(n):
        return bytes([n]) if n < 128 else bytes([n & 127 | 128]) + varint(n >> 7)
    return varint(number << 3) + varint(data) if isinstance(data, int) else varint(number << 3 | 2) + varint(len(data)) + data


def digit_model(path):
    """input (1, 1, 28, 28) -> a convolution, Relu, a product -> output (1, 10), as export.py of docs/export.md names them."""
    def value(name, shape):
        dims = b"".join(field(1, field(1, n)) for n in shape)
        return field(1, name) + field(2, field(1, field(1, 1) + field(2, dims)))

    def weights(name, *shape):
        n = 1
        for d in shape:
            n *= d
        return b"".join(field(1, d) for d in shape) + field(2, 1) + field(8, name) + field(9, struct.pack(f"<{n}f", *[(i * 37 % 64 - 31) / 256 for i in range(n)]))

    def node(op, inputs, output):
        return b"".join(field(1, i) for i in inputs) + field(2, output) + field(3, output) + field(4, op)
    nodes = [(b"Conv", [b"input", b"k"], b"c"), (b"Relu", [b"c"], b"r"), (b"Flatten", [b"r"], b"f"), (b"MatMul", [b"f", b"w"], b"output")]
    graph = b"".join(field(1, node(*n)) for n in nodes) + field(2, b"net") + field(5, weights(b"k", 8, 1, 5, 5)) + field(5, weights(b"w", 4608, 10))
    graph += field(11, value(b"input", (1, 1, 28, 28))) + field(12, value(b"output", (1, 10)))
    path.write_bytes(field(1, 8) + field(7, graph) + field(8, field(2, 13)))


TINY = """#include <tg.h>
static float a[4 * 6], b[6 * 16];
int main(void) {
  TgContext *ctx = tg_open(NULL);
  TgTensor *x = tg_from(ctx, a, TG_F32, TG_SHAPE(4, 6)), *w = tg_from(ctx, b, TG_F32, TG_SHAPE(6, 16));
  tg_realize(tg_relu(tg_matmul(x, w)));
  int bad = tg_error(ctx);
  tg_close(ctx);
  return bad;
}
"""


def made(name, at):
    """What the commands of a page are given."""
    for folder in ("include", "build"):
        (at / folder).symlink_to(build if folder == "build" else ROOT / folder)
    (at / "program.c").write_text(TINY)
    run(["gcc" if shutil.which("gcc") else "cc", *INCLUDE, "program.c", "-o", "program", *LINK], at)
    if name == "docs/export.md":
        digit_model(at / "digit.onnx")
        run("tg compile digit.onnx -o digit --threads 2", at)
        (at / "go.c").write_text('#include "digit.h"\nstatic digit net;\nfloat x[DIGIT_INPUT_SIZE], y[DIGIT_OUTPUT_SIZE];\nint go(void);\n'
                                 "int go(void) { return digit_reset(&net), digit_run(&net, x, y); }\n")
    if name in ("docs/llm.md", "docs/serve.md"):
        model = data / "stories260K/stories260K-q8_0.gguf"
        if not model.exists():
            return False
        for n in ("MODEL.gguf", "smollm2.gguf"):
            shutil.copy(model, at / n)
        (at / "TEXTS.jsonl").write_text('{"text": "Once upon a time the cat sat on the mat."}\n' * 4)
    if name == "docs/python.md":
        models = {"model.gguf": data / "stories260K" / "stories260K-f32.gguf", "model.onnx": data / "onnx-mnist" / "mnist.onnx"}
        if not all(p.exists() for p in models.values()):
            return False
        for n, p in models.items():
            shutil.copy(p, at / n)
    if name == "docs/performance.md":
        (at / "fast.c").write_text((at / "slow.c").read_text().replace("tg_double(w)", "w"))
        run(["cc", *INCLUDE, "fast.c", "-o", "fast", *LINK], at)
    if name in ("README.md", "docs/embedding.md"):  # an installation
        run(["cmake", "--install", str(build), "--prefix", str(at / "root")], at)
        os.environ["PKG_CONFIG_PATH"] = ":".join(map(str, (at / "root").glob("lib*/**/pkgconfig")))
        os.environ["LD_LIBRARY_PATH"] = ":".join(str(p.parent) for p in (at / "root").glob("lib*/**/libtinygrad.so"))
    return True


COMMAND = re.compile(r"(?:\w+=\S* )*(?:tg|cc|clang|curl|echo|python3|build/tg|\./\w+) ?")
LEFT = [  # commands that are tried elsewhere, or need what is not here
    (r"tg demo", "minutes"),
    (r"tg \w+ hf:", "a network, tests/unit/test_hub.c has one of its own"),
    (r"tg chat MODEL.gguf --mmproj", "no mmproj file here"),
    (r"clang ", "" if shutil.which("clang") else "no clang here"),
    (r"wasm-ld", "" if shutil.which("wasm-ld") else "no wasm-ld here"),
    (r"curl", "" if shutil.which("curl") else "no curl here"),
    (r"python3 export.py", "" if not run("python3 -c 'import torch'", ROOT).returncode else "no PyTorch here"),
]


def form(line):
    """A line without its numbers and without what differs between machines: which causes, opts and loops. Whether anything may follow."""
    open_end = ".." in line or "opts " in line
    line = re.sub(r"\.\..*|(?<=opts ).*", "", line)
    line = re.sub(r"^(?:slow\? |nothing stands out).*", "what may be slow", line)
    line = re.sub(r"^( *=) .*", r"\1", line)  # origins
    line = re.sub(r"\b([erdk])(?:_\d+)+\b", "K", line)
    line = re.sub(r"\b(?:[A-Z]{3,}) [a-z]\d+(?: \d+)?", "OPT", line)
    line = re.sub(r"\br\d+ [A-Z]+", "LOOP", line)
    line = re.sub(r"\b(?:stores|loads|arithmetic) +\d+ %", "BOUND", line)
    line = re.sub(r"-?\d[\d.,]*(?:e[+-]?\d+)?(?:x\d+)*", "#", line)
    line = re.sub(r"# (?:[KMG]iB|[KMG]?B|us|ms|s)\b", "#", line)
    line = re.sub(r"#\s*x(?=\s|$)", "#x", line)
    return re.sub(r"\s+", " ", line).strip(), open_end


def shown(where, lines, got):
    """Each line that is shown has its form among those of the output."""
    forms = [form(s)[0] for s in got.splitlines()]
    for line in lines:
        want, open_end = form(line)
        tried["lines"] += 1
        if not any(f.startswith(want) if open_end else f == want for f in forms):
            wrong.append(f"{where}: no line of the output has this form: {line}\n  that is: {want}")


def shell_said(name, text, at):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    for first, block in blocks(text, "", "sh"):
        server, out, below = None, "", []
        prompt = any(s.startswith("$ ") for s in block.splitlines())
        for number, line in enumerate(block.splitlines(), first):
            where = f"{name}:{number}"
            command = line[2:] if line.startswith("$ ") else line if not prompt and COMMAND.match(line) else None
            if command is None:
                below += [line] if prompt and line.strip() else []
                continue
            shown(where, below, out)
            below = []
            command = re.sub(r"\s+#\s.*", "", command).replace("8080", str(port))
            for path in re.findall(r"\S+\.uop", command):  # the number of a kernel is the machine's
                found = [path] if (at / path).exists() else sorted(str(p.relative_to(at)) for p in at.glob(re.sub(r"/k\d+", "/k*", path)))
                command = command.replace(path, found[0] if found else path)
            if why := next((w for pattern, w in LEFT if w and re.search(pattern, command)), None):
                print(f"left out: {where}: {why}: {command[:70]}")
                continue
            tried["commands"] += 1
            if command.startswith("tg serve"):
                server = subprocess.Popen(command.split() + (["--port", str(port)] if "--port" not in command else []), cwd=at, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
                while "http://" not in (said := server.stdout.readline()):
                    if not said:
                        wrong.append(f"{where}: {command}: it does not serve")
                        break
                continue
            got = run(command, at, timeout=300)
            out = got.stdout
            if got.returncode:
                wrong.append(f"{where}: {command}: it ends with {got.returncode}: {out[-800:]}")
        shown(f"{name}:{first}", below, out)
        if server:
            server.send_signal(signal.SIGINT)
            server.wait(timeout=60)
    for _, block in blocks(text, "python"):
        ast.parse(block)


def python_said(name, text, at):
    """The blocks of a page are one program, which prints what its comments say, in their order."""
    own = build / "python-venv" / "bin" / "python"  # of check_python: it has NumPy
    python = str(own) if own.exists() else sys.executable
    got = run([python, "-c", "\n".join(block for _, block in blocks(text, "python"))], at,
              env={**os.environ, "PYTHONPATH": str(ROOT / "python"), "TINYGRAD_C": str(build), "TG_DEV": "INTERP", "PYTHONDONTWRITEBYTECODE": "1"})
    tried["programs"] += 1
    remarks = iter([m.group(1).strip() for _, block in blocks(text, "python") for m in re.finditer(r"#\s+(.*)$", block, re.M)])
    unsaid = [line for line in got.stdout.splitlines() if line not in remarks]
    if got.returncode or unsaid or not got.stdout:
        wrong.append(f"{name}: it ends with {got.returncode} and prints what no comment says there: {unsaid[:1]} in {got.stdout[-1500:]}")


def js_said(name, text, at):
    for _, block in blocks(text, "js"):
        if not (shutil.which("node") and shutil.which("wasm-ld")) or run("tg compile digit.onnx -o digit --wasm", at).returncode:
            print(f"left out: {name}: no node or wasm-ld here")
            continue
        (at / "page.mjs").write_text("import { readFileSync } from 'fs'\nglobalThis.fetch = async path => readFileSync(path)\n"
                                     "const pixels = new Float32Array(784)\n" + block + "if (scores.length !== 10) throw new Error('scores')\n")
        got = run("node page.mjs", at)
        tried["commands"] += 1
        if got.returncode:
            wrong.append(f"{name}: JavaScript: {got.stdout}")


os.environ["PATH"] = f"{build}:{os.environ['PATH']}"
data = pathlib.Path(os.environ.get("TG_DATA") or ROOT / "../shared/data").resolve()
for name in ["README.md", *sorted(str(p.relative_to(ROOT)) for p in (ROOT / "docs").glob("*.md") if not p.name.startswith("api-")), *HEADERS]:
    text = (ROOT / name).read_text()
    if sys.argv[2:] and name not in sys.argv[2:]:
        continue
    with tempfile.TemporaryDirectory(prefix="tg-blocks-") as folder:
        at = pathlib.Path(folder)
        here = dict(os.environ)
        if name == "docs/export.md":
            made(name, at)
        c_said(name, text, at)
        if name.endswith(".md") and (name == "docs/export.md" or made(name, at)):
            shell_said(name, text, at)
            js_said(name, text, at)
            if name in ("README.md", "docs/python.md"):
                python_said(name, text, at)
        elif name.endswith(".md"):
            print(f"left out: {name}: its commands have no model here ($TG_DATA)")
        os.environ.clear()
        os.environ.update(here)
print("\n".join(wrong) or "tried: " + ", ".join(f"{n} {what}" for what, n in tried.items()))
sys.exit(bool(wrong))
