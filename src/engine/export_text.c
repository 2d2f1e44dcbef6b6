/* export_text.c: what export.c found, as C99. In: kernels, what they are launched on, memories. Out: a
 * header, which tells a caller everything that it must know, and a source. The text depends on the capture
 * alone: it has no date, path or address. */
#include "engine/export.h"
#include "uop/dims.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The type of an element in the header, which uses only standard type names. */
static const char *header_type(DType d) {
  switch (d) {
  case DT_I8: return "int8_t";
  case DT_I16: return "int16_t";
  case DT_U16:
  case DT_F16:
  case DT_BF16: return "uint16_t";
  case DT_I32: return "int32_t";
  case DT_U32: return "uint32_t";
  case DT_I64: return "int64_t";
  case DT_U64: return "uint64_t";
  case DT_F32: return "float";
  case DT_F64: return "double";
  default: return "uint8_t"; /* bool, fp8 */
  }
}

/* Names come from files. Characters that would end a comment or break a line are left out. */
static void put_quoted(Str *out, const char *s) {
  for (; s && *s; s++)
    if ((unsigned char)*s >= ' ' && (unsigned char)*s < 127 && *s != '*' && *s != '\\') str_putn(out, s, 1);
}

static void put_shape(const Export *x, Str *out, DType d, int n, const int64_t *dims) {
  char size[200];
  str_put(out, dtype_name(d));
  str_put(out, " (");
  for (int i = 0; i < n; i++) {
    dim_print(x->planning->store, dims[i], size, sizeof size);
    if (i) str_put(out, ", ");
    put_quoted(out, size);
  }
  str_put(out, ")");
}

/* Shape and dtype of value i: the inputs come first, then the outputs. */
static const Want *want_at(const TgJit *j, int i) { return i < j->nin ? &j->in[i] : &j->out[i - j->nin]; }

static int64_t value_nelem(const TgJit *j, int i) {
  return dims_nelem(j->ctx->store, want_at(j, i)->n, want_at(j, i)->dims);
}

static void put_upper(Str *out, const char *name) {
  for (; *name; name++) {
    char c = (char)(*name >= 'a' && *name <= 'z' ? *name - 'a' + 'A' : *name);
    str_putn(out, &c, 1);
  }
}

/* Defines a number that every compiler accepts as a size. An enumerator would have to fit an int, which
 * may have 16 bits. */
static void put_constant(Export *x, Str *out, const char *name, const char *what, int64_t v) {
  str_printf(out, "#define %s_", x->upper);
  if (name) put_upper(out, name), str_put(out, "_");
  str_printf(out, v > INT32_MAX ? "%s %lldll\n" : "%s %lld\n", what, (long long)v);
}

/* ---- the header */
/* Lists inputs or outputs. Returns true if a size of one of them varies. */
static bool put_values(const Export *x, Str *out, const char *what, const Given *g, int n,
                       char *const *name) {
  bool varies = false;
  for (int i = 0; i < n; i++) {
    const Want *w = &g[i].want;
    str_printf(out, " *   %s %s: ", what, name[i]);
    put_shape(x, out, w->dtype, w->n, w->dims);
    for (int k = 0; k < w->n; k++)
      varies |= dim_symbolic(w->dims[k]);
    if (g[i].name && strcmp(g[i].name, name[i])) str_put(out, ", called "), put_quoted(out, g[i].name);
    str_put(out, "\n");
  }
  return varies;
}

static void put_variables(Export *x, Str *out) {
  const TgJit *j = x->planned;
  for (size_t i = 0; i < j->variables.len; i++) {
    const DimVar *v = dims_var_at(x->planning->dims, j->variables.at[i]);
    str_printf(out, " *   size %s: %lld .. %lld, a multiple of %lld\n", x->value[j->nin + j->nout + (int)i],
               (long long)v->lo, (long long)v->hi, (long long)v->multiple);
  }
}

static void put_about(Export *x, Str *out) {
  const TgJit *j = x->planned;
  str_printf(out, "/* %s: made by tinygrad-c %s, ", x->name, tg_version());
  if (x->gnu)
    str_printf(out, "for %s: cc -std=gnu11 -O2 -ffp-contract=off%s%s.",
               *x->flags ? x->o.target : "any processor", *x->flags ? " " : "", x->flags);
  else
    str_put(out, "for any compiler of C99 or C++");
  if (!x->gnu && *x->flags) str_printf(out, ", best with %s", x->flags);
  str_put(out, x->gnu ? "" : ".");
  str_put(out, " No licence of tinygrad-c is upon this text.\n");
  bool in = put_values(x, out, "input ", j->given, j->nin, x->value);
  bool made = put_values(x, out, "output", j->made, j->nout, x->value + j->nin);
  put_variables(x, out);
  if (in || made)
    str_put(out, " * Arrays have room for the largest sizes; the first elements of an axis count.\n");
  str_printf(out,
             " * %lld operations a run, %zu kernels. Bytes: weights %lld, state %lld, arena %lld (what lives "
             "at once is %lld).\n"
             " * Nothing is allocated, no variable is written but *m: instances run side by side. Values are "
             "row-major;\n"
             " * bool is a byte; f16, bf16 and fp8 are their bits. No two memories that a run is given may "
             "overlap. */\n",
             (long long)x->operations, x->kernels.len, (long long)x->weights, (long long)x->state,
             (long long)x->arena, (long long)x->bound);
}

/* An upper bound on the numbers that the lines of a kernel declare: one for each line, or an array of a
 * few lanes. */
static int64_t numbers_declared(const char *text) {
  int64_t n = 0;
  for (; *text; text++)
    if (*text == '\n')
      n++;
    else if (text[0] == '[' && (text[1] == '2' || text[1] == '4') && text[2] == ']' && text[3] == ';')
      n += text[1] - '0';
  return n;
}

/* The bound holds for any compiler, even one that keeps each variable in memory: eight bytes are counted
 * for each. Vectors of GNU C have other sizes, so their bound is not known. */
int64_t export_stack(const Export *x) {
  enum { HELPERS = 1024, FRAME = 128, WORD = 8 };

  int64_t most = 0;
  for (size_t k = 0; !x->gnu && k < x->kernels.len; k++) {
    const CachedProgram *p = x->kernels.at[k];
    const KernelText *t = p->dev->backend->text(p->prog);
    most = TG_MAX(most, t->nparam + p->nvar + 2 + numbers_declared(t->source));
  }
  int64_t values = x->planned->nin + x->planned->nout + (int64_t)x->planned->variables.len;
  return x->gnu ? 0 : HELPERS + 3 * FRAME + WORD * (3 * values + 2 * most);
}

static void put_constants(Export *x, Str *out) {
  const TgJit *j = x->planned;
  for (int i = 0; i < j->nin + j->nout; i++)
    put_constant(x, out, x->value[i], "SIZE", value_nelem(j, i));
  put_constant(x, out, NULL, "ARENA_BYTES", x->arena);
  put_constant(x, out, NULL, "STATE_BYTES", x->state);
  put_constant(x, out, NULL, "WEIGHT_BYTES", x->weights);
  if (x->o.weights_apart) put_constant(x, out, NULL, "FILE_BYTES", x->weights + x->state);
  if (x->o.weights_apart) put_constant(x, out, NULL, "FILE_BIG_ENDIAN", x->o.big_endian);
  put_constant(x, out, NULL, "OPERATIONS", x->operations);
  if (export_stack(x)) put_constant(x, out, NULL, "STACK_BYTES", export_stack(x));
}

/* One line for each memory of the state, with its shape and place. */
static void put_state(Export *x, Str *out) {
  for (size_t i = 0; i < x->memories.len; i++) {
    const ExportMemory *m = &x->memories.at[i];
    if (m->unused || (!m->state && !x->o.weights_apart)) continue;
    str_printf(out, "/* %s %s: ", m->state ? "state" : "weight", m->name);
    put_shape(x, out, m->dtype, m->n, m->dims);
    if (m->packed) str_put(out, ", in the order in which a kernel reads it");
    if (strcmp(m->name, m->called)) str_put(out, ", called "), put_quoted(out, m->called);
    str_put(out, " */\n");
    put_constant(x, out, m->name, "OFFSET", m->offset);
    put_constant(x, out, m->name, "SIZE", m->nelem);
    if (!m->state) continue;
    str_printf(out, "#define %s_", x->upper);
    put_upper(out, m->name);
    str_printf(out, "(m) ((%s *)(void *)((m)->state.bytes + %lld))\n", header_type(m->dtype),
               (long long)m->offset);
  }
}

static void put_block(const Export *x, Str *out, const char *name, int64_t nbytes) {
  if (nbytes)
    str_printf(out, "  union { uint64_t word; unsigned char bytes[%lld]; } %s%s;\n", (long long)nbytes, name,
               x->gnu ? " __attribute__((aligned(64)))" : "");
}

static void put_struct(Export *x, Str *out) {
  bool draws = x->planned->draws.len > 0;
  str_printf(out, "\n/* One instance: all memory that is written. */\ntypedef struct %s {\n", x->name);
  put_block(x, out, "state", x->state);
  put_block(x, out, "arena", x->arena);
  if (draws) str_put(out, "  uint64_t seed, counter; /* of the random numbers to come */\n");
  if (x->o.streamed)
    str_put(out, "  /* Copies n bytes of the file of weights, from `offset` on, to `to`; 0: done. A run asks "
                 "in the same\n"
                 "   * order each time. */\n"
                 "  int (*bring)(void *to, int64_t offset, size_t n);\n");
  else if (x->o.weights_apart)
    str_put(out, "  const unsigned char *weights;\n");
  if (x->shares)
    str_put(out, "  /* Calls share(work, i) for each i below n, in any order or at the same time, and "
                 "returns when all\n"
                 "   * have returned. NULL, as after a reset: they are called one after the other. */\n"
                 "  void (*run)(void (*share)(void *work, int i), int n, void *work);\n");
  if (!x->state && !x->arena && !draws && !x->o.weights_apart && !x->shares) str_put(out, "  int nothing;\n");
  str_printf(out, "} %s;\n\n", x->name);
}

static bool input_stored(const TgJit *j, int i) {
  for (size_t k = 0; k < j->input_stored.len; k++)
    if (j->input_stored.at[k] == i) return true;
  return false;
}

static void put_signature(Export *x, Str *out) {
  const TgJit *j = x->planned;
  str_printf(out, "int %s_run(%s *m", x->name, x->name);
  for (int i = 0; i < j->nin + j->nout; i++) {
    const Want *w = want_at(j, i);
    str_printf(out, ", %s%s *%s", i < j->nin && !input_stored(j, i) ? "const " : "", header_type(w->dtype),
               x->value[i]);
  }
  for (size_t i = 0; i < j->variables.len; i++)
    str_printf(out, ", int64_t %s", x->value[j->nin + j->nout + (int)i]);
  str_put(out, ")");
}

static void put_reset(Export *x, Str *out) {
  str_printf(out, "void %s_reset(%s *m%s)", x->name, x->name,
             x->o.streamed                        ? ", int (*bring)(void *to, int64_t offset, size_t n)"
             : x->o.weights_apart && !x->o.linked ? ", const void *weights"
                                                  : "");
}

bool export_header(Export *x, Str *out) {
  put_about(x, out);
  str_printf(out, "#ifndef %s_H\n#define %s_H\n#include <stdint.h>\n%s\n", x->upper, x->upper,
             x->o.streamed ? "#include <stddef.h>\n" : "");
  put_constants(x, out);
  put_state(x, out);
  str_put(out, "#ifdef __cplusplus\nextern \"C\" {\n#endif\n");
  put_struct(x, out);
  str_put(out, "/* Before the first run, and to begin again: the state is that of the capture.");
  if (x->o.streamed)
    str_printf(out, " bring: see there;\n * numbers of the file begin with the %s byte.",
               x->o.big_endian ? "high" : "low");
  else if (x->o.linked)
    str_printf(out, " The\n * %s_FILE_BYTES at %s_weights, a multiple of 8, are those of the file.", x->upper,
               x->name);
  else if (x->o.weights_apart)
    str_printf(
        out,
        " weights: the %s_FILE_BYTES\n * of the file, at an address that is a multiple of 8; they must "
        "stay. Their numbers begin with the %s byte.",
        x->upper, x->o.big_endian ? "high" : "low");
  str_put(out, " */\n");
  if (x->o.linked)
    str_printf(out, "extern const unsigned char %s_weights[%s_FILE_BYTES];\n", x->name, x->upper);
  put_reset(x, out);
  str_printf(out, ";\n/* 0: done; 1: a pointer is NULL%s%s. */\n",
             x->planned->variables.len ? "; 2: a size is not within its bounds" : "",
             x->o.weights_apart ? "; 3: no weights, or this machine has another byte order than their file"
                                : "");
  if (x->o.streamed) str_put(out, "/* 4: weights could not be brought; the state may be changed. */\n");
  put_signature(x, out);
  str_put(out, ";\n#ifdef __cplusplus\n}\n#endif\n#endif\n");
  return !out->oom;
}

/* ---- kernels */
/* Returns where the lines of a helper end. Its #ifndef may contain other conditions. */
static const char *helper_end(const char *at) {
  int depth = 0;
  for (const char *end; *at; at = end) {
    end = at + strcspn(at, "\n");
    end += *end == '\n';
    depth += !strncmp(at, "#if", 3);
    depth -= !strncmp(at, "#endif", 6);
    if (!depth) return end;
  }
  return at;
}

/* Writes the types and helpers that precede a kernel, unless an earlier kernel already brought them. */
static bool put_helpers(Export *x, Str *out, const char *at, const char *kernel) {
  for (const char *end; at < kernel; at = end) {
    end = !strncmp(at, "#ifndef", 7) ? helper_end(at) : at + strcspn(at, "\n") + 1;
    bool helper = !strncmp(at, "#ifndef", 7) || !strncmp(at, "VECTOR(", 7);
    uint64_t had, hash = hash_bytes(11, at, strcspn(at, "\n"));
    if (helper && map_get(&x->helpers, hash, &had)) continue;
    if (helper && !map_put(&x->helpers, hash, 1)) return false;
    str_putn(out, at, (size_t)(end - at));
  }
  return true;
}

/* Whether a memory of a kernel is the same as another of its memories in some call. */
static bool is_joined(const Export *x, int kernel, int param) {
  for (size_t i = 0; i < x->pairs.len; i++) {
    const ArenaPair *p = &x->pairs.at[i];
    bool here = p->joined && x->calls.at[p->call].kernel == kernel;
    if (here && (p->param[0] == param || p->param[1] == param)) return true;
  }
  return false;
}

/* Writes the parameters and body of a kernel. Parameters that may be the same memory lose RESTRICT. */
static void put_kernel_text(Export *x, Str *out, int number, const char *at) {
  static const char word[] = "RESTRICT ";
  const char *end = at + strcspn(at, "\n"), *next;
  while ((next = strstr(at, word)) && next < end) {
    const char *name = next + strlen(word);
    str_putn(out, at, (size_t)((is_joined(x, number, atoi(name + 1)) ? next : name) - at));
    at = name;
  }
  str_put(out, at);
  str_put(out, "\n");
}

/* A kernel's name is made from its loops, and several kernels may have the same name, so its number comes
 * first. */
static bool put_kernel(Export *x, Str *out, int number) {
  const CachedProgram *p = x->kernels.at[number];
  const char *text = p->dev->backend->text(p->prog)->source;
  char begins[128];
  snprintf(begins, sizeof begins, x->gnu ? "void %s(" : "static void %s(", p->name);
  const char *at = strstr(text, begins);
  if (NEVER(!at)) return false;
  if (!put_helpers(x, out, text, at)) return false;
  str_printf(out, "static void k%d_%s(", number, p->name);
  put_kernel_text(x, out, number, at + strlen(begins));
  return true;
}

/* Writes the prelude without the macros that define several functions, if none of their functions is used. */
static void put_used(Str *out, const char *text) {
  static const char *const macros[][2] = {
      {"#define DIVS(", "\nDIVS("}, {"#define SAT(", "\nSATS("}, {"#define SATS(", "\nSATS("}};

  for (const char *at = text, *end; *at; at = end) {
    bool left_out = false;
    for (end = strchr(at, '\n'); end && end > at && end[-1] == '\\';)
      end = strchr(end + 1, '\n');
    end = end ? end + 1 : at + strlen(at);
    for (size_t i = 0; i < TG_COUNT(macros); i++)
      left_out |= !strncmp(at, macros[i][0], strlen(macros[i][0])) && !strstr(text, macros[i][1]);
    if (!left_out) str_putn(out, at, (size_t)(end - at));
  }
}

static bool uses_libm(const char *text) {
  static const char *const calls[] = {"return sqrtf(", "return sqrt(", "return fma(", "return fmaf("};
  for (size_t i = 0; i < TG_COUNT(calls); i++)
    if (strstr(text, calls[i])) return true;
  return false;
}

/* All kernels of GNU C have the same parameters, even if they do not use them all, and some use vectors
 * wider than the machine's. */
static const char vectors_quiet[] = "#pragma GCC diagnostic ignored \"-Wunused-parameter\"\n"
                                    "#pragma GCC diagnostic ignored \"-Wunused-function\"\n"
                                    "#pragma GCC diagnostic ignored \"-Wpsabi\"\n";

static bool put_prelude(Export *x, Str *out) {
  TgMem *mem = &x->ctx->mem;
  Str whole, used;
  str_init(&whole, mem), str_init(&used, mem);
  if (x->gnu) str_put(out, vectors_quiet);
  if (x->gnu)
    renderer_c.prelude(&whole);
  else
    c99_prelude(&whole, x->o.own_math);
  const char **text = mem_alloc(mem, (x->kernels.len + 1) * sizeof *text);
  for (size_t i = 0; text && i < x->kernels.len; i++)
    text[i] = x->kernels.at[i]->dev->backend->text(x->kernels.at[i]->prog)->source;
  bool ok = text && !whole.oom && prelude_prune(&used, str_text(&whole), text, (int)x->kernels.len);
  if (ok && uses_libm(str_text(&used))) str_put(out, "#include <math.h>\n");
  put_used(out, str_text(&used));
  str_put(out, "\n");
  mem_free(mem, text), str_free(&whole), str_free(&used);
  return ok && !out->oom;
}

/* ---- launches */
/* Writes an argument: a pointer of the kernel's type. */
static void put_arg(Export *x, Str *out, const ExportPlace *p) {
  const char *type = export_type(p->dtype);
  long long elements = (long long)(p->offset / (int64_t)dtype_size(p->dtype));
  const ExportMemory *m = p->kind == IN_WEIGHT || p->kind == IN_STATE ? &x->memories.at[p->number] : NULL;
  switch (p->kind) {
  case IN_INPUT:
  case IN_OUTPUT:
    str_put(out, x->from);
    str_put(out, x->value[p->kind == IN_INPUT ? p->number : x->planned->nin + p->number]);
    if (elements) str_printf(out, " + %lld", elements);
    return;
  case IN_WEIGHT:
    if (x->o.weights_apart)
      str_printf(out, "(const %s *)(const void *)(%sw + %lld)", type, x->from,
                 (long long)(m->offset + p->offset));
    else {
      str_printf(out, "w_%s.at", m->name);
      if (elements) str_printf(out, " + %lld", elements);
    }
    return;
  case IN_STATE:
    str_printf(out, "(%s *)(void *)(%ss + %lld)", type, x->from, (long long)(m->offset + p->offset));
    return;
  case IN_ARENA:
    str_printf(out, "(%s *)(void *)(%sa + %lld)", type, x->from,
               (long long)(x->items.at[p->number].offset + p->offset));
    return;
  case IN_NOTHING: str_put(out, "NULL");
  }
}

/* A table of first rows is numbered by the launch at which its loop begins. */
static int band_number(const Export *x, const SchedBand *band) {
  int i = 0;
  while (x->calls.at[i].kernel != CALL_BANDS || x->calls.at[i].band != band)
    i++;
  return i;
}

static void put_bands(Export *x, Str *out) {
  for (size_t i = 0; i < x->calls.len; i++) {
    const SchedBand *b = x->calls.at[i].band;
    if (x->calls.at[i].kernel != CALL_BANDS) continue;
    int n = b->last - b->first + 1;
    str_printf(out,
               "/* Where each kernel begins in each band of rows. */\nstatic const i32 rows_%zu[%d][%d] = {",
               i, b->count, n);
    for (int k = 0; k < b->count * n; k++)
      str_printf(out, "%s%lld%s",
                 k % n ? ", "
                 : k   ? ",\n  {"
                       : "\n  {",
                 (long long)b->at[k], k % n == n - 1 ? "}" : "");
    str_put(out, "};\n\n");
  }
}

static void put_var(Export *x, Str *out, const ExportCall *c, int var) {
  const TgJit *j = x->planned;
  for (int i = 0; c->band && i < c->sched->nrow; i++)
    if (c->band->var[i] == var)
      str_printf(out, "rows_%d[%sturn][%d]", band_number(x, c->band), x->from,
                 c->sched->row[i] - c->band->first);
  for (size_t i = 0; i < j->variables.len; i++)
    if (j->variables.at[i] == var) {
      const DimVar *v = dims_var_at(x->planning->dims, var);
      str_put(out, x->from), str_put(out, x->value[j->nin + j->nout + (int)i]);
      if (v->multiple != 1) str_printf(out, " / %lld", (long long)v->multiple);
    }
}

static void put_scratch(Export *x, Str *out, const ExportCall *c) {
  str_printf(out, "%sa + %lld", x->from, (long long)x->items.at[c->scratch].offset);
  if (c->shares > 1) str_printf(out, " + (size_t)i * %lld", (long long)c->nbytes);
}

/* Kernels of GNU C take their memories as one list and the variables as another. */
static void put_vector_call(Export *x, Str *out, const ExportCall *c) {
  const CachedProgram *p = x->kernels.at[c->kernel];
  str_put(out, "  {\n    void *b[] = {");
  for (int i = 0; i < c->narg; i++) {
    str_put(out, i ? ", (void *)(" : "(void *)(");
    put_arg(x, out, &x->args.at[c->arg + (size_t)i]);
    str_put(out, ")");
  }
  str_put(out, "};\n");
  if (p->nvar) str_put(out, "    const i64 v[] = {");
  for (int i = 0; i < p->nvar; i++) {
    str_put(out, i ? ", " : "");
    put_var(x, out, c, p->var[i]);
  }
  if (p->nvar) str_put(out, "};\n");
  str_printf(out, "    k%d_%s(b, %s, %s, ", c->kernel, p->name, p->nvar ? "v" : "NULL",
             c->shares > 1 ? "i" : "0");
  if (c->scratch >= 0)
    put_scratch(x, out, c);
  else
    str_put(out, "NULL");
  str_put(out, ");\n  }\n");
}

static void put_kernel_call(Export *x, Str *out, const ExportCall *c) {
  if (x->gnu) {
    put_vector_call(x, out, c);
    return;
  }
  const CachedProgram *p = x->kernels.at[c->kernel];
  int n = 0;
  str_printf(out, "  k%d_%s(", c->kernel, p->name);
  for (int i = 0; i < c->narg; i++) {
    const ExportPlace *arg = &x->args.at[c->arg + (size_t)i];
    if (arg->kind == IN_NOTHING) continue;
    str_put(out, n++ ? ", " : "");
    put_arg(x, out, arg);
  }
  for (int i = 0; i < p->nvar; i++) {
    str_put(out, n++ ? ", " : "");
    put_var(x, out, c, p->var[i]);
  }
  if (c->shares > 1) str_put(out, n++ ? ", (i32)i" : "(i32)i");
  if (c->scratch >= 0) str_put(out, ", "), put_scratch(x, out, c);
  str_put(out, ");\n");
}

static void put_call(Export *x, Str *out, const ExportCall *c) {
  const ExportPlace *arg = x->args.at + c->arg;
  if (c->kernel >= 0 && c->shares > 1 && c->band) str_put(out, "  q.turn = turn;\n");
  if (c->kernel == CALL_BANDS)
    str_printf(out, "  for (turn = 0; turn < %d; turn++) {\n", c->band->count);
  else if (c->kernel == CALL_BANDS_END)
    str_put(out, "  }\n");
  else if (c->kernel >= 0 && c->shares > 1)
    str_printf(out, "  spread(m, share_%d, %d, &q);\n", (int)(c - x->calls.at), c->shares);
  else if (c->kernel >= 0)
    put_kernel_call(x, out, c);
  else if (c->kernel == CALL_BRING)
    str_printf(out, "  if (m->bring(a + %lld, %lld, %lld)) return 4;\n",
               (long long)x->items.at[arg->number].offset, (long long)x->memories.at[arg[1].number].offset,
               (long long)c->nbytes);
  else {
    str_put(out, c->kernel == CALL_COPY ? "  copied(" : "  cleared(");
    put_arg(x, out, &arg[0]), str_put(out, ", ");
    if (c->kernel == CALL_COPY) put_arg(x, out, &arg[1]), str_put(out, ", ");
    str_printf(out, "%lld);\n", (long long)c->nbytes);
  }
}

static bool uses(const Export *x, PlaceKind kind) {
  for (size_t i = 0; i < x->args.len; i++)
    if (x->args.at[i].kind == kind) return true;
  return false;
}

/* Whether the run has a pointer to the bytes of the file. */
static bool weights_pointed(const Export *x) {
  return x->o.weights_apart && !x->o.streamed && uses(x, IN_WEIGHT);
}

/* ---- shares: each share receives the values of a run in a struct, as members of the same names */
static const char *value_const(const Export *x, int i) {
  return i < x->planned->nin && !input_stored(x->planned, i) ? "const " : "";
}

static void put_shared_struct(Export *x, Str *out) {
  const TgJit *j = x->planned;
  str_put(out, "typedef struct shared {\n  u8 *a, *s;\n  const u8 *w;\n");
  if (x->bands) str_put(out, "  int turn;\n");
  for (int i = 0; i < j->nin + j->nout; i++) {
    const Want *w = want_at(j, i);
    str_printf(out, "  %s%s *%s;\n", value_const(x, i), header_type(w->dtype), x->value[i]);
  }
  for (size_t i = 0; i < j->variables.len; i++)
    str_printf(out, "  i64 %s;\n", x->value[j->nin + j->nout + (int)i]);
  str_put(out, "} shared;\n\n");
}

static void put_shares(Export *x, Str *out) {
  if (!x->shares) return;
  put_shared_struct(x, out);
  x->from = "q->";
  for (size_t i = 0; i < x->calls.len; i++) {
    if (x->calls.at[i].kernel < 0 || x->calls.at[i].shares < 2) continue;
    str_printf(out, "static void share_%zu(void *work, int i) {\n  const shared *q = (const shared *)work;\n",
               i);
    put_kernel_call(x, out, &x->calls.at[i]);
    str_put(out, "}\n\n");
  }
  x->from = "";
  str_printf(out,
             "static void spread(%s *m, void (*share)(void *work, int i), int n, void *work) {\n"
             "  int i;\n  if (m->run) m->run(share, n, work);\n"
             "  else for (i = 0; i < n; i++) share(work, i);\n}\n\n",
             x->name);
}

static void put_shared_values(Export *x, Str *out, bool arena) {
  const TgJit *j = x->planned;
  int n = j->nin + j->nout + (int)j->variables.len;
  if (!x->shares) return;
  str_printf(out, "  q.a = %s;\n  q.s = %s;\n  q.w = %s;\n", arena ? "a" : "NULL",
             uses(x, IN_STATE) ? "s" : "NULL", weights_pointed(x) ? "w" : "NULL");
  for (int i = 0; i < n; i++)
    str_printf(out, "  q.%s = %s;\n", x->value[i], x->value[i]);
}

/* Writes the function that makes the key of a draw as the library does: Threefry of the counter, with the
 * seed and a number that stands for the device. */
static void put_draws(Export *x, Str *out) {
  static const char key[] =
      "static u64 key_of(u64 counter, u64 seed) {\n"
      "  static const u8 turn[8] = {13, 15, 26, 6, 17, 29, 16, 24};\n"
      "  u32 k[3], x = (u32)counter, y = (u32)(counter >> 32), i;\n"
      "  k[0] = NUMBERu; k[1] = (u32)seed; k[2] = k[0] ^ k[1] ^ 0x1bd11bdau;\n"
      "  x += k[0]; y += k[1];\n"
      "  for (i = 0; i < 20; i++) {\n"
      "    x += y; y = (y << turn[i % 8] | y >> (32 - turn[i % 8])) ^ x;\n"
      "    if (i % 4 == 3) { x += k[(i / 4 + 1) % 3]; y += k[(i / 4 + 2) % 3] + i / 4 + 1; }\n"
      "  }\n"
      "  return (u64)y << 32 | x;\n}\n\n";
  if (!x->planned->draws.len) return;
  const char *number = strstr(key, "NUMBER");
  int order = draw_order(x->planning, x->planning->default_device);
  str_putn(out, key, (size_t)(number - key));
  str_printf(out, "%lu", (unsigned long)draw_number(order));
  str_put(out, number + strlen("NUMBER"));
}

static void put_keys(Export *x, Str *out) {
  for (size_t i = 0; i < x->planned->draws.len; i++)
    str_printf(out, "  *(u64 *)(void *)(a + %lld) = key_of(m->counter, m->seed);\n  m->counter += %lldu;\n",
               (long long)x->items.at[x->first_draw + i].offset, (long long)x->planned->draws.at[i]->draws);
}

static void put_checks(Export *x, Str *out) {
  const TgJit *j = x->planned;
  str_put(out, "  if (!m");
  for (int i = 0; i < j->nin + j->nout; i++)
    if (value_nelem(j, i)) str_printf(out, " || !%s", x->value[i]);
  str_put(out, ") return 1;\n");
  if (x->o.weights_apart)
    str_put(out, x->o.streamed ? "  if (!m->bring) return 3;\n" : "  if (!m->weights) return 3;\n");
  for (int i = 0; i < j->nin + j->nout; i++)
    if (!value_nelem(j, i)) str_printf(out, "  (void)%s;\n", x->value[i]);
  for (size_t i = 0; i < j->variables.len; i++) {
    const DimVar *v = dims_var_at(x->planning->dims, j->variables.at[i]);
    const char *name = x->value[j->nin + j->nout + (int)i];
    str_printf(out, "  if (%s < %lld || %s > %lld || %s %% %lld) return 2;\n", name, (long long)v->lo, name,
               (long long)v->hi, name, (long long)v->multiple);
  }
}

static void put_run(Export *x, Str *out) {
  bool arena = uses(x, IN_ARENA) || x->planned->draws.len;
  for (size_t i = 0; i < x->calls.len; i++)
    arena |= x->calls.at[i].scratch >= 0;
  put_signature(x, out);
  str_put(out, " {\n");
  if (arena) str_put(out, "  u8 *a;\n");
  if (uses(x, IN_STATE)) str_put(out, "  u8 *s;\n");
  if (weights_pointed(x)) str_put(out, "  const u8 *w;\n");
  if (x->shares) str_put(out, "  shared q;\n");
  if (x->bands) str_put(out, "  int turn;\n");
  put_checks(x, out);
  if (arena) str_put(out, "  a = m->arena.bytes;\n");
  if (uses(x, IN_STATE)) str_put(out, "  s = m->state.bytes;\n");
  if (weights_pointed(x)) str_put(out, "  w = m->weights;\n");
  put_shared_values(x, out, arena);
  put_keys(x, out);
  for (size_t i = 0; i < x->calls.len && !out->oom; i++)
    put_call(x, out, &x->calls.at[i]);
  str_put(out, "  return 0;\n}\n");
}

/* Writes functions that clear and copy bytes, so that the text needs no headers except those that every
 * compiler has. */
static void put_bytes_moved(Export *x, Str *out) {
  bool copies = x->o.weights_apart && !x->o.streamed && x->state;
  for (size_t i = 0; i < x->calls.len; i++)
    copies |= x->calls.at[i].kernel == CALL_COPY;
  for (size_t i = 0; i < x->memories.len; i++)
    copies |= x->memories.at[i].state && export_written(x, &x->memories.at[i]);
  str_put(out,
          "static void cleared(void *to, size_t n) {\n  u8 *p = (u8 *)to;\n  while (n--) *p++ = 0;\n}\n\n");
  if (copies)
    str_put(out, "static void copied(void *to, const void *from, size_t n) {\n"
                 "  u8 *p = (u8 *)to;\n  const u8 *q = (const u8 *)from;\n  while (n--) *p++ = *q++;\n}\n\n");
}

/* If the file's byte order is not that of the machine, the weights are not taken. */
static void put_weights_taken(const Export *x, Str *out) {
  str_printf(out, "  order.u = 1;\n  if (order.b[0] != %d) return;\n", !x->o.big_endian);
  if (x->o.linked) {
    str_printf(out, "  m->weights = %s_weights;\n", x->name);
    return;
  }
  if (!x->o.streamed) {
    str_put(out, "  m->weights = (const unsigned char *)weights;\n  if (!weights) return;\n");
    return;
  }
  if (x->state)
    str_printf(out, "  if (!bring || bring(m->state.bytes, %lld, %lld)) return;\n", (long long)x->weights,
               (long long)x->state);
  str_put(out, "  m->bring = bring;\n");
}

static void put_reset_body(Export *x, Str *out) {
  put_bytes_moved(x, out);
  put_reset(x, out);
  str_put(out, " {\n");
  if (x->o.weights_apart) str_put(out, "  union { u32 u; u8 b[4]; } order;\n");
  str_put(out, "  cleared(m, sizeof *m);\n");
  if (x->o.weights_apart) put_weights_taken(x, out);
  if (x->o.weights_apart && !x->o.streamed && x->state)
    str_printf(out, "  copied(m->state.bytes, m->weights + %lld, %lld);\n", (long long)x->weights,
               (long long)x->state);
  for (size_t i = 0; i < x->memories.len; i++) {
    const ExportMemory *m = &x->memories.at[i];
    if (m->state && export_written(x, m))
      str_printf(out, "  copied(m->state.bytes + %lld, w_%s.at, sizeof w_%s.at);\n", (long long)m->offset,
                 m->name, m->name);
  }
  if (x->planned->draws.len)
    str_printf(out, "  m->seed = %lluu;\n  m->counter = %lluu;\n", (unsigned long long)x->planning->rng_seed,
               (unsigned long long)x->planning->draws[x->planning->default_device].counter);
  str_put(out, "}\n\n");
}

/* A network of integers does not need the types of floats. */
static void float_types_dropped(Str *out) {
  static const char types[] = "typedef float f32; typedef double f64;\n";
  char *at = out->oom ? NULL : strstr(out->at, types), *after = at ? at + strlen(types) : NULL;
  if (!at || strstr(after, "f32") || strstr(after, "f64")) return;
  memmove(at, after, strlen(after) + 1);
  out->len -= strlen(types);
}

bool export_source(Export *x, Str *out) {
  str_printf(out,
             "/* See %s.h. Kernels first, in the order of their first launch; %s_run launches them. */\n",
             x->name, x->name);
  str_put(out, "#include \"");
  if (x->o.header)
    put_quoted(out, x->o.header);
  else
    str_printf(out, "%s.h", x->name);
  str_put(out, "\"\n#include <stddef.h>\n");
  if (!put_prelude(x, out)) return false;
  for (size_t i = 0; i < x->memories.len; i++)
    if (export_written(x, &x->memories.at[i])) export_memory(out, &x->memories.at[i]);
  str_put(out, "\n");
  for (size_t i = 0; i < x->kernels.len; i++)
    if (!put_kernel(x, out, (int)i)) return false;
  put_bands(x, out);
  put_draws(x, out);
  put_reset_body(x, out);
  put_shares(x, out);
  put_run(x, out);
  float_types_dropped(out);
  return !out->oom;
}
