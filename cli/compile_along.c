/* compile_along.c: makes an exported text callable from JavaScript and Python. In: a captured function, whose
 * text was written to files. Out: PATH.wasm, linked by clang and wasm-ld, and PATH.js; or PATH.py, which
 * compiles the text when it is imported. Both know the names, dtypes and shapes of inputs and outputs;
 * nothing else is needed. */
#define _POSIX_C_SOURCE 200809L
#include "compile_along.h"
#include "cli.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct Type {
  TgDType dtype;
  const char *c, *js, *format; /* format: the letter of its memoryview */
} Type;

static const Type types[] = {
    {TG_F32, "float", "Float32Array", "f"},      {TG_F64, "double", "Float64Array", "d"},
    {TG_I8, "int8_t", "Int8Array", "b"},         {TG_I16, "int16_t", "Int16Array", "h"},
    {TG_U16, "uint16_t", "Uint16Array", "H"},    {TG_I32, "int32_t", "Int32Array", "i"},
    {TG_U32, "uint32_t", "Uint32Array", "I"},    {TG_I64, "int64_t", "BigInt64Array", "q"},
    {TG_U64, "uint64_t", "BigUint64Array", "Q"}, {TG_F16, "uint16_t", "Uint16Array", "H"},
    {TG_BF16, "uint16_t", "Uint16Array", "H"},   {TG_U8, "uint8_t", "Uint8Array", "B"}};

static const Type *type_of(TgDType d) {
  for (size_t i = 0; i < CLI_COUNT(types); i++)
    if (types[i].dtype == d) return &types[i];
  return &types[CLI_COUNT(types) - 1]; /* bool and fp8 are passed as bytes */
}

typedef struct Value {
  TgJitValue v;
  const char *name;
  char made[32];
  int64_t nelem, dims[TG_MAX_RANK]; /* the largest sizes, if sizes vary */
} Value;

/* Describes input or output i. Returns false past the last. */
static bool value_at(const Along *a, bool output, size_t i, Value *x) {
  if (!(output ? tg_jit_output : tg_jit_input)(a->jit, i, &x->v)) return false;
  const char *given = output ? a->outputs ? a->outputs[i] : NULL : a->inputs ? a->inputs[i] : NULL;
  snprintf(x->made, sizeof x->made, "%s%zu", output ? "output" : "input", i);
  x->name = given && *given ? given : *x->v.name ? x->v.name : x->made;
  x->nelem = 1;
  for (int k = 0; k < x->v.ndim; k++) {
    tg_size_bounds(tg_jit_context(a->jit), x->v.dims[k], NULL, &x->dims[k]);
    x->nelem *= x->dims[k];
  }
  x->v.dims = x->dims;
  return true;
}

static int variables(const Along *a) {
  int n = 0;
  while (tg_jit_variable(a->jit, (size_t)n))
    n++;
  return n;
}

static bool file_failed(const char *path) {
  return cli_refuse(0, "compile", "%s: %s", path, strerror(errno));
}

static FILE *opened(const char *path) {
  FILE *f = fopen(path, "wb");
  if (!f) file_failed(path);
  return f;
}

static bool closed(FILE *f, const char *path) {
  bool ok = !ferror(f);
  return (fclose(f) == 0 && ok) || file_failed(path);
}

/* ---- wasm */
/* The instance, and memory for its values, whose addresses JavaScript asks for. All C names begin with the
 * model's name, which may be any, even `run`; the names that the module exports do not. */
static bool wrapper_put(const Along *a, const char *path) {
  FILE *f = opened(path);
  const char *name = a->name;
  Value x;
  int n = 0, nvar = variables(a);
  if (!f) return false;
  fprintf(f, "#include \"%s.h\"\n#define EXPORTED(name) __attribute__((export_name(name)))\n", name);
  fprintf(f, "static %s %s_self_;\n", name, name);
  for (int output = 0; output < 2; output++)
    for (size_t i = 0; value_at(a, output, i, &x); i++)
      fprintf(f, "static %s %s_v%d_[%lld];\n", type_of(x.v.dtype)->c, name, n++,
              (long long)(x.nelem ? x.nelem : 1));

  fprintf(f, "EXPORTED(\"at\") void *%s_at_(int i) {\n  switch (i) {\n", name);
  for (int i = 0; i < n; i++)
    fprintf(f, "  case %d: return %s_v%d_;\n", i, name, i);
  fprintf(f, "  default: return &%s_self_;\n  }\n}\n", name);
  fprintf(f, "EXPORTED(\"bytes\") int %s_bytes_(void) { return (int)sizeof %s_self_; }\n", name, name);
  fprintf(f, "EXPORTED(\"reset\") void %s_reset_(void) { %s_reset(&%s_self_); }\n", name, name, name);

  fprintf(f, "EXPORTED(\"run\") int %s_run_(", name);
  for (int i = 0; i < nvar; i++)
    fprintf(f, i ? ", int64_t s%d_" : "int64_t s%d_", i);
  fprintf(f, nvar ? ") {\n  return %s_run(&%s_self_" : "void) {\n  return %s_run(&%s_self_", name, name);
  for (int i = 0; i < n; i++)
    fprintf(f, ", %s_v%d_", name, i);
  for (int i = 0; i < nvar; i++)
    fprintf(f, ", s%d_", i);
  fprintf(f, ");\n}\n");
  return closed(f, path);
}

static void put_values_js(FILE *f, const Along *a, bool output) {
  Value x;
  for (size_t i = 0; value_at(a, output, i, &x); i++) {
    fprintf(f, i ? ",\n  " : "\n  ");
    cli_json_text(f, x.name);
    fprintf(f, ": [%s, [", type_of(x.v.dtype)->js);
    for (int k = 0; k < x.v.ndim; k++)
      fprintf(f, k ? ", %lld" : "%lld", (long long)x.v.dims[k]);
    fprintf(f, "]]");
  }
}

static const char javascript[] =
    "\n// load(module): bytes, a Response, or a promise of one. The model's m.inputs and m.outputs are "
    "arrays in its memory\n"
    "// by name, row-major. m.run({name: numbers}, sizes) sets what is given, runs, and returns m.outputs. "
    "m.save() and\n"
    "// m.restore(bytes) are for its state, m.reset() begins again.\n"
    "export async function load(module) {\n"
    "  const got = await module, bytes = got.arrayBuffer ? await got.arrayBuffer() : got\n"
    "  const e = (await WebAssembly.instantiate(bytes, {})).instance.exports\n"
    "  let n = 0\n"
    "  const views = table => Object.fromEntries(Object.entries(table).map(([name, [Type, shape]]) => {\n"
    "    const view = new Type(e.memory.buffer, e.at(n++), shape.reduce((a, b) => a * b, 1))\n"
    "    view.shape = shape\n"
    "    return [name, view]\n"
    "  }))\n"
    "  const inputs = views(INPUTS), outputs = views(OUTPUTS), self = () => new Uint8Array(e.memory.buffer, "
    "e.at(-1), e.bytes())\n"
    "  e.reset()\n"
    "  return {\n"
    "    inputs, outputs, reset: () => e.reset(), save: () => self().slice(), restore: was => "
    "self().set(was),\n"
    "    run(given = {}, sizes = []) {\n"
    "      for (const [name, numbers] of Object.entries(given)) {\n"
    "        if (!inputs[name]) throw new Error(`no input ${name}: ${Object.keys(inputs).join(', ')}`)\n"
    "        if (numbers.length !== inputs[name].length) throw new Error(`${name}: ${numbers.length} "
    "numbers, not ${inputs[name].length}`)\n"
    "        inputs[name].set(numbers)\n"
    "      }\n"
    "      const failed = e.run(...sizes.map(BigInt))\n"
    "      if (failed) throw new Error(failed === 2 ? 'a size is not within its bounds' : `run: ${failed}`)\n"
    "      return outputs\n"
    "    },\n"
    "  }\n"
    "}\n";

static bool javascript_put(const Along *a) {
  char path[4100];
  snprintf(path, sizeof path, "%s.js", a->path);
  FILE *f = opened(path);
  if (!f) return false;
  fprintf(f, "// %s.js: the model of %s.wasm, made by tinygrad-c %s.\nconst INPUTS = {", a->name, a->name,
          tg_version());
  put_values_js(f, a, false);
  fprintf(f, "\n}\nconst OUTPUTS = {");
  put_values_js(f, a, true);
  fprintf(f, "\n}\n%s", javascript);
  return closed(f, path);
}

/* Finds the newest clang that can compile for wasm32, and wasm-ld. */
static const char tools_found[] =
    "set -e; for c in ${TG_WASM_CC:-} clang-19 clang-18 clang-17 clang-16 clang-15 clang-14 clang; do "
    "command -v $c >/dev/null && $c --print-targets 2>/dev/null | grep -q wasm32 && cc=$c && break; done; "
    "for l in wasm-ld wasm-ld-19 wasm-ld-18 wasm-ld-17 wasm-ld-16 wasm-ld-15 wasm-ld-14; do "
    "command -v $l >/dev/null && ld=$l && break; done; "
    "if [ -z \"$cc\" ] || [ -z \"$ld\" ]; then echo 'clang with wasm32, and wasm-ld, are needed (apt-get "
    "install clang lld)' >&2; exit 1; fi; ";

static bool linked(const char *folder, bool simd) {
  char line[9000];
  snprintf(line, sizeof line,
           "%scd '%s'; for f in text wrapper; do $cc --target=wasm32 -std=c99 -O2 -ffp-contract=off "
           "-fno-builtin %s -w -c $f.c -o "
           "$f.o; done; $ld --no-entry --strip-all -z stack-size=65536 text.o wrapper.o -o module.wasm",
           tools_found, folder, simd ? "-msimd128" : "");
  return !system(line) || cli_refuse(0, "compile", "the module was not made");
}

static bool copied(const char *from, const char *to) {
  char part[65536];
  FILE *f = fopen(from, "rb"), *g = f ? opened(to) : NULL;
  bool ok = f ? g != NULL : file_failed(from);
  for (size_t n; ok && (n = fread(part, 1, sizeof part, f)) > 0;)
    ok = fwrite(part, 1, n, g) == n;
  if (f) fclose(f);
  return g && closed(g, to) && ok;
}

bool along_wasm(const Along *a, bool simd) {
  char folder[] = "/tmp/tg-wasm-XXXXXX", from[4200], to[4200];
  if (!mkdtemp(folder)) return file_failed(folder);
  bool ok = true;
  for (int header = 0; ok && header < 2; header++) {
    snprintf(from, sizeof from, "%s.%s", a->path, header ? "h" : "c");
    const char *base = strrchr(a->path, '/');
    snprintf(to, sizeof to, header ? "%s/%s.h" : "%s/text.c", folder, base ? base + 1 : a->path);
    ok = copied(from, to);
    if (header && strcmp(base ? base + 1 : a->path, a->name) != 0) { /* the wrapper includes NAME.h */
      snprintf(to, sizeof to, "%s/%s.h", folder, a->name);
      ok = ok && copied(from, to);
    }
  }
  snprintf(to, sizeof to, "%s/wrapper.c", folder);
  ok = ok && wrapper_put(a, to) && linked(folder, simd);
  snprintf(from, sizeof from, "%s/module.wasm", folder);
  snprintf(to, sizeof to, "%s.wasm", a->path);
  ok = ok && copied(from, to) && javascript_put(a);
  snprintf(from, sizeof from, "rm -rf '%s'", folder);
  return !system(from) && ok;
}

/* ---- Python */
/* Copies the header's struct for cffi, which can read it because sizes in it are numbers. */
static bool struct_put(FILE *f, const Along *a) {
  char path[4100], line[1000], end[100];
  snprintf(path, sizeof path, "%s.h", a->path);
  snprintf(end, sizeof end, "} %s;", a->name);
  FILE *h = fopen(path, "rb");
  bool inside = false, done = false;
  if (!h) return file_failed(path);
  while (!done && fgets(line, sizeof line, h)) {
    inside |= !strncmp(line, "typedef struct", 14);
    done = inside && !strncmp(line, end, strlen(end));
    if (inside) fputs(line, f);
  }
  fclose(h);
  return done;
}

static void put_values_python(FILE *f, const Along *a, bool output) {
  Value x;
  for (size_t i = 0; value_at(a, output, i, &x); i++) {
    fprintf(f, "    ");
    cli_json_text(f, x.name);
    fprintf(f, ": ('%s', (", type_of(x.v.dtype)->format);
    for (int k = 0; k < x.v.ndim; k++)
      fprintf(f, "%lld, ", (long long)x.v.dims[k]);
    fprintf(f, ")),\n");
  }
}

static const char python[] =
    "HERE = os.path.dirname(os.path.abspath(__file__))\n"
    "\n"
    "\n"
    "def library():\n"
    "    \"\"\"The text, compiled when it is newer than what was compiled of it ($CC or cc).\"\"\"\n"
    "    source, made = os.path.join(HERE, BASE + '.c'), os.path.join(HERE, 'lib' + BASE + '.so')\n"
    "    if not os.path.exists(made) or os.path.getmtime(made) < os.path.getmtime(source):\n"
    "        part = made + '.%d' % os.getpid()\n"
    "        subprocess.run([*os.environ.get('CC', 'cc').split(), '-std=c99', '-O2', '-ffp-contract=off', "
    "'-shared', '-fPIC',\n"
    "                        source, '-lm', '-o', part], check=True)\n"
    "        os.replace(part, made)\n"
    "    return ffi.dlopen(made)\n"
    "\n"
    "\n"
    "lib = library()\n"
    "\n"
    "\n"
    "class Model:\n"
    "    \"\"\"run(x=.., y=..) takes what has a buffer (array, numpy) or a list, and gives a dict of "
    "memoryviews.\"\"\"\n"
    "\n"
    "    def __init__(self):\n"
    "        self.m = ffi.new(NAME + ' *')\n"
    "        self.reset()\n"
    "\n"
    "    def reset(self):\n"
    "        getattr(lib, NAME + '_reset')(self.m)\n"
    "\n"
    "    def run(self, *sizes, **given):\n"
    "        if given.keys() != INPUTS.keys():\n"
    "            raise TypeError('inputs are ' + ', '.join(INPUTS))\n"
    "        args, out = [], {}\n"
    "        for name, (form, shape) in INPUTS.items():\n"
    "            x = given[name]\n"
    "            x = memoryview(array.array(form, x) if isinstance(x, (list, tuple)) else x).cast('B')\n"
    "            if x.nbytes != math.prod(shape) * array.array(form).itemsize:\n"
    "                raise ValueError('%s: %d bytes, not %s of %s' % (name, x.nbytes, shape, form))\n"
    "            args.append(ffi.cast('void *', ffi.from_buffer(x)))\n"
    "        for name, (form, shape) in OUTPUTS.items():\n"
    "            n = math.prod(shape) * array.array(form).itemsize\n"
    "            whole = memoryview(bytearray(max(n, 1)))\n"
    "            args.append(ffi.cast('void *', ffi.from_buffer(whole)))\n"
    "            out[name] = whole[:n].cast(form, shape) if shape and n else whole[:n].cast(form)\n"
    "        failed = getattr(lib, NAME + '_run')(self.m, *args, *sizes)\n"
    "        if failed:\n"
    "            raise ValueError('run: %d' % failed)\n"
    "        return out\n";

bool along_python(const Along *a) {
  char path[4100];
  const char *base = strrchr(a->path, '/');
  snprintf(path, sizeof path, "%s.py", a->path);
  FILE *f = opened(path);
  Value x;
  if (!f) return false;
  fprintf(f,
          "\"\"\"%s.py: %s.c for Python, made by tinygrad-c %s.\"\"\"\nimport array\nimport math\nimport "
          "os\nimport subprocess\n\n"
          "import cffi\n\nffi = cffi.FFI()\nffi.cdef(\"\"\"\n",
          a->name, base ? base + 1 : a->path, tg_version());
  bool ok = struct_put(f, a);
  fprintf(f, "void %s_reset(%s *m);\nint %s_run(%s *m", a->name, a->name, a->name, a->name);
  for (int output = 0; output < 2; output++)
    for (size_t i = 0; value_at(a, output, i, &x); i++)
      fprintf(f, ", void *");
  for (int i = 0; i < variables(a); i++)
    fprintf(f, ", int64_t");
  fprintf(f, ");\n\"\"\")\nNAME = '%s'\nBASE = '%s'\nINPUTS = {\n", a->name, base ? base + 1 : a->path);
  put_values_python(f, a, false);
  fprintf(f, "}\nOUTPUTS = {\n");
  put_values_python(f, a, true);
  fprintf(f, "}\n%s", python);
  return closed(f, path) && ok;
}
