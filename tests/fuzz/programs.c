/* programs.c: captured functions as text, made at random. In: a seed. Out: whether what was loaded gives the
 * bits of the function itself, and whether a damaged text is refused or harmless: INTERP looks at every
 * access of what does run. A read past the end or a leak in the reader is for the sanitizers to see. */
#include "programs.h"
#include "export/exported.h"
#include "tg.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { STATE = 3, STEPS = 6, VALUES = 16, SIDE = 4, RUNS = 3, ROOM = 1 << 16, MEMORIES = 64 };

static uint64_t rng;

static uint32_t draw(void) { /* splitmix64 */
  uint64_t z = rng += 0x9e3779b97f4a7c15u;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u, z = (z ^ z >> 27) * 0x94d049bb133111ebu;
  return (uint32_t)((z ^ z >> 31) >> 32);
}

static size_t below(size_t n) { return n ? draw() % n : 0; }

/* ---- a function of one (SIDE, SIDE) tensor of i32 and of state, of such */
typedef struct Body {
  int op[STEPS], a[STEPS], b[STEPS];
  TgTensor *state[STATE];
  TgVariable *n;
  int split; /* the axis along which the input is split on two devices; -1: all is on one */
  bool rows; /* the first n rows are the input, and an output */
} Body;

static const char *const two[] = {"INTERP", "INTERP:1"};

static TgTensor *place_of(TgTensor *x) { return tg_mod_scalar(tg_abs(x), SIDE + 1); } /* one is outside */

static TgTensor *step_of(TgContext *c, Body *f, int k, TgTensor **v) {
  TgTensor *a = v[f->a[k]], *b = v[f->b[k]];
  int64_t lo[] = {f->b[k] % SIDE, 0}, hi[] = {lo[0] + 1, SIDE};
  switch (f->op[k]) {
  case 0: return tg_add(a, b);
  case 1: return tg_mul(a, tg_mod_scalar(b, 5));
  case 2: return tg_transpose(a, 0, 1);
  case 3: return tg_gather(a, 1, tg_mod_scalar(tg_abs(b), SIDE));
  case 4: return tg_cumsum(a, 0);
  case 5: return tg_expand(tg_max(a, .axis = TG_AXES(1), .keepdim = true), TG_SHAPE(SIDE, SIDE));
  case 6: return tg_where(tg_lt(a, b), a, tg_flip(b, 1, (int64_t[]){1}));
  case 7: return tg_sort(a, NULL, .axis = TG_AXES(1));
  case 8:
    return tg_pad(tg_shrink(a, (int64_t[]){1, 0}, (int64_t[]){3, SIDE}), (int64_t[]){1, 0},
                  (int64_t[]){1, 0});
  case 9: return tg_cast(tg_mul_scalar(tg_rand_like(a, .dtype = TG_F32), 100), TG_I32);
  case 10: return tg_realize(a) ? NULL : a;
  case 11:
    return tg_scatter(
        a, 0, place_of(tg_minimum(b, tg_full(c, TG_SHAPE(SIDE, SIDE), SIDE - 1, .dtype = TG_I32))), b);
  case 12: return tg_assign_slice(f->state[k % STATE], lo, hi, tg_shrink(a, lo, hi));
  case 13:
    return tg_expand(tg_sum(tg_slice(a, 0, 0, tg_size(f->n)), .axis = TG_AXES(0), .keepdim = true),
                     TG_SHAPE(SIDE, SIDE));
  case 14: return tg_add(a, tg_size_tensor(c, tg_size_mul(c, tg_size(f->n), 3), TG_I32));
  case 15: /* every third row, or column */
    return k % 2 ? tg_setitem(f->state[k % STATE], TG_IDX(TG_SLICE(TG_OPEN, TG_OPEN, 3), TG_ALL),
                              tg_slice(a, 0, 1, 3))
                 : tg_setitem(tg_flip(f->state[k % STATE], 1, (int64_t[]){0}),
                              TG_IDX(TG_ALL, TG_SLICE(TG_OPEN, TG_OPEN, 3)), tg_slice(a, 1, 1, 3));
  default: return tg_add_(f->state[k % STATE], tg_mod_scalar(a, 7));
  }
}

static TgStatus body(TgContext *c, TgTensor *const *in, int nin, TgTensor **out, int nout, void *user) {
  Body *f = user;
  int64_t n = tg_size(f->n), less[] = {0, 0}, more[] = {tg_size_sub(c, SIDE, n), 0};
  TgTensor *v[VALUES] = {f->rows ? tg_pad(in[0], less, more) : in[0]};
  (void)nin, (void)nout;
  for (int i = 0; i < STATE; i++)
    v[1 + i] = f->state[i];
  for (int k = 0; k < STEPS; k++)
    if (!(v[1 + STATE + k] = step_of(c, f, k, v))) return tg_error(c) ? tg_error(c) : TG_ERR_VALUE;
  out[0] = f->rows ? tg_slice(v[STATE + STEPS], 0, 0, n) : v[STATE + STEPS];
  out[1] = tg_sum(v[STATE + STEPS - 1]);
  return tg_error(c);
}

static void body_draw(Body *f) {
  for (int k = 0; k < STEPS; k++) {
    f->op[k] = (int)below(17), f->a[k] = (int)below((size_t)(1 + STATE + k));
    f->b[k] = (int)below((size_t)(1 + STATE + k));
  }
}

static void numbers_put(int32_t *v, int from) {
  for (int i = 0; i < SIDE * SIDE; i++)
    v[i] = (i * 7 + from * 5) % 23 - 6;
}

static TgTensor *numbers(TgContext *c, int from) {
  int32_t v[SIDE * SIDE];
  numbers_put(v, from);
  return tg_from(c, v, TG_I32, TG_SHAPE(SIDE, SIDE));
}

/* x on the devices that input i of j is to be on; of a function that is not captured yet as f says. */
static TgTensor *placed(TgJit *j, int i, TgTensor *x, const Body *f) {
  TgJitValue v;
  if (!tg_jit_input(j, (size_t)i, &v)) return f && f->split >= 0 ? tg_shard(x, 2, two, f->split) : x;
  if (v.axis >= 0) return tg_shard(x, v.ndevice, v.devices, v.axis, .bounds = v.bounds);
  return v.ndevice > 1 ? tg_replicate(x, v.ndevice, v.devices) : tg_to(x, v.devices[0]);
}

typedef struct Out {
  int32_t v[RUNS][SIDE * SIDE + 1];
} Out;

static TgVariable *called_n(TgJit *j) {
  TgVariable *v = NULL;
  for (size_t i = 0; (v = tg_jit_variable(j, i)) && strcmp(tg_variable_name(v), "n");)
    i++;
  return v;
}

/* Some value for each variable, that a damaged text may have changed; false: none was found. */
static bool bound(TgContext *c, TgJit *j, TgVariable *own, int to) {
  if (own) return !tg_variable_bind(own, to);
  TgVariable *v;
  for (size_t i = 0; (v = tg_jit_variable(j, i)); i++) {
    for (int k = 0; k < 8 && tg_variable_bind(v, k ? k - 1 : to); k++)
      tg_clear_error(c);
    if (!tg_variable_value(v, NULL)) return false;
  }
  return true;
}

/* j from run `first` on, each with the input and the size of its number; of what was loaded `of` is NULL. */
static bool run(TgContext *c, TgJit *j, const Body *of, bool rows, int first, int n, Out *o) {
  TgVariable *own = of ? of->n : NULL;
  bool ok = true;
  for (int i = first; ok && i < first + n; i++)
    TG_SCOPE(c) {
      bound(c, j, own, 1 + i % SIDE);
      TgTensor *x = numbers(c, i), *out[2];
      TgVariable *n = rows ? own ? own : called_n(j) : NULL;
      x = n ? tg_slice(x, 0, 0, tg_size(n)) : placed(j, 0, x, of);
      memset(o->v[i - first], 0, sizeof o->v[0]);
      ok = !tg_jit_run(j, &x, 1, out, 2) && tg_nbytes(out[0]) < sizeof o->v[0] &&
           !tg_read(out[0], o->v[i - first], tg_nbytes(out[0])) &&
           !tg_read(out[1], &o->v[i - first][SIDE * SIDE], 4);
    }
  return ok;
}

/* ---- damage: a number, a name or a line becomes another one */
typedef struct Text {
  char at[ROOM];
  size_t n;
} Text;

static void put_over(Text *t, size_t at, size_t len, const char *with) {
  size_t n = strlen(with);
  if (t->n - len + n >= ROOM) return;
  memmove(t->at + at + n, t->at + at + len, t->n - at - len + 1);
  memcpy(t->at + at, with, n);
  t->n += n - len;
}

static bool is_word(int ch) {
  return (ch >= '0' && ch <= '9') || (ch >= 'a' && ch <= 'z') || (ch >= 'A' && ch <= 'Z') || ch == '_';
}

static size_t word_at(const Text *t, size_t *at) { /* the word that *at is in, or behind */
  while (*at < t->n && !is_word(t->at[*at]))
    ++*at;
  while (*at && is_word(t->at[*at - 1]))
    --*at;
  size_t n = 0;
  while (is_word(t->at[*at + n]))
    n++;
  return n;
}

static size_t line_at(const Text *t, size_t *at) {
  while (*at && t->at[*at - 1] != '\n')
    --*at;
  return strcspn(t->at + *at, "\n") + (t->at[*at + strcspn(t->at + *at, "\n")] == '\n');
}

static void word_changed(Text *t, size_t at) {
  static const char *const ops[] = {
      "ADD",     "MUL",       "MAX",         "GATHER",     "SCATTER", "RESHAPE",  "EXPAND", "SHRINK", "PAD",
      "PERMUTE", "STORE",     "AFTER",       "CONTIGUOUS", "CAST",    "BITCAST",  "WHERE",  "BUFFER", "COPY",
      "SINK",    "SCAN_AXIS", "REDUCE_AXIS", "ARANGE",     "once",    "old",      "f32",    "i64",    "bool",
      "u8",      "index",     "v0",          "VAR",        "v0*v0",   "variable", "d0",     "d1",     "d2",
      "device",  "parts",     "axis",        "copy",       "random"};
  static const char *const wide[] = {
      "4294967296", "9223372036854775807", "-9223372036854775808", "65536", "-1",
      "1e30",       "99999999999999999999"};
  char with[80];
  size_t n = word_at(t, &at), other = below(t->n);
  if (t->at[at] >= '0' && t->at[at] <= '9') {
    if (below(8))
      snprintf(with, sizeof with, "%d", (int)below(3) ? (int)below(6) : (int)below(20));
    else
      snprintf(with, sizeof with, "%s", wide[below(sizeof wide / sizeof *wide)]);
  } else if (below(2))
    snprintf(with, sizeof with, "%s", ops[below(sizeof ops / sizeof *ops)]);
  else {
    size_t k = word_at(t, &other);
    snprintf(with, sizeof with, "%.*s", (int)(k < 60 ? k : 60), t->at + other);
  }
  put_over(t, at, n, with);
}

static void line_changed(Text *t, size_t at) {
  static char copy[ROOM];
  size_t n = line_at(t, &at), to = below(t->n);
  snprintf(copy, sizeof copy, "%.*s", (int)n, t->at + at);
  if (below(2)) put_over(t, at, n, "");
  if (below(2)) {
    line_at(t, &to);
    if (to <= t->n) put_over(t, to, 0, copy);
  }
}

static void damaged(Text *t) {
  for (size_t i = 1 + below(3); i-- && t->n > 20;) {
    size_t at = below(t->n);
    if (below(4))
      word_changed(t, at);
    else if (below(6))
      line_changed(t, at);
    else
      t->at[at] = (char)(1 + below(255));
  }
}

/* ---- */
static bool wrong(TgContext *c, const char *what, const Text *t) {
  printf("programs: %s: %s\n%s\n", what, tg_errmsg(c), t->at);
  return false;
}

static TgJit *loaded(TgContext *c, const Text *t, TgJit *of) {
  const char *names[MEMORIES];
  TgTensor *m[MEMORIES];
  int n = 0;
  while (n < MEMORIES && (m[n] = tg_jit_memory(of, (size_t)n, &names[n])))
    n++;
  return tg_jit_from_text(c, t->at, names, m, n);
}

/* A size that a change made large is no fault, but takes its time: only what is small is run. */
static bool is_small(TgJit *j, const Text *t) {
  TgJitValue v;
  for (size_t i = 0; tg_jit_output(j, i, &v); i++)
    for (int k = 0; k < v.ndim; k++)
      if (v.dims[k] > 64) return false;
  for (const char *p = t->at; *p; p += strspn(p, "0123456789")) {
    p += strcspn(p, "0123456789");
    if (strspn(p, "0123456789") > 3) return false;
  }
  return true;
}

/* What a damaged text made of it: its inputs may be others. */
static bool harmless(TgContext *c, TgJit *j, const Text *t) {
  TgTensor *in[8], *out[8];
  TgJitValue v;
  int nin = 0, nout = 0;
  for (; nin < 8 && tg_jit_input(j, (size_t)nin, &v); nin++)
    in[nin] = placed(j, nin, tg_contiguous(tg_zeros(c, v.ndim, v.dims, .dtype = v.dtype)), NULL);
  while (nout < 8 && tg_jit_output(j, (size_t)nout, &v))
    nout++;
  if (!is_small(j, t) || tg_jit_input(j, 8, &v) || tg_jit_output(j, 8, &v)) return true;
  for (int i = 0; i < 2 && bound(c, j, NULL, 2); i++)
    if (tg_jit_run(j, in, nin, out, nout))
      return tg_error(c) == TG_ERR_NOMEM || wrong(c, "it was taken, and fails", t);
  return true;
}

/* A random function with its state, and its variable. several: it may be one of two devices. */
static TgJit *program_of(TgContext *c, Body *f, bool several) {
  body_draw(f);
  f->split = several && below(2) ? (int)below(2) : -1;
  f->rows = f->split < 0 && below(2);
  tg_variable(c, "other", 1, 3);
  f->n = tg_variable(c, "n", 1, SIDE);
  for (int i = 0; i < STATE; i++)
    f->state[i] = tg_clone(f->split < 0 ? numbers(c, i + 10)
                           : below(2)   ? tg_replicate(numbers(c, i + 10), 2, two)
                                        : tg_shard(numbers(c, i + 10), 2, two, (int)below(2)));
  return tg_jit(c, body, f);
}

bool fuzz_program(uint64_t seed, bool broken) {
  static Text whole, text;
  rng = seed;
  TgContext *c =
      tg_open(&(TgOpenOptions){.size = sizeof(TgOpenOptions), .device = "INTERP", .seed = 1 + seed});
  Body f = {0};
  Out want, got;
  TgJit *j = program_of(c, &f, true);
  bool ok = run(c, j, &f, f.rows, 0, 3, &want);
  const char *s = ok ? tg_jit_to_text(j, NULL, NULL, 0) : NULL;
  if (!s || strlen(s) >= ROOM) {
    /* the function is none: a value is needed on both sides of a store, .. */
    ok = tg_error(c) != TG_ERR_INTERNAL || wrong(c, "no text", &whole);
    tg_close(c);
    return ok;
  }
  whole.n = strlen(s), memcpy(whole.at, s, whole.n + 1);
  TgJit *k = loaded(c, &whole, j);
  ok = k || wrong(c, "the text is refused", &whole);
  tg_jit_free(k);
  for (int i = 0; ok && i < 12; i++) {
    text = whole;
    damaged(&text);
    TG_SCOPE(c) {
      TgJit *d = loaded(c, &text, j);
      if (!d && (!tg_error(c) || !*tg_errmsg(c))) ok = wrong(c, "refused without a reason", &text);
      if (!d && tg_error(c) == TG_ERR_INTERNAL) ok = wrong(c, "not known to be wrong", &text);
      if (d) ok = harmless(c, d, &text);
      tg_jit_free(d);
      tg_clear_error(c);
    }
  }
  /* last, since random numbers go on with it: the same bits as what it was made of */
  k = ok ? loaded(c, &whole, j) : NULL;
  ok = ok && (run(c, k, NULL, f.rows, 3, RUNS, &got) || wrong(c, "the loaded one fails", &whole));
  tg_jit_free(k);
  /* the counter goes back to where the text was written */
  k = ok ? loaded(c, &whole, j) : NULL;
  tg_jit_free(k);
  ok = ok && (run(c, j, &f, f.rows, 3, RUNS, &want) || wrong(c, "the captured one fails", &whole));
  if (broken) got.v[0][0] ^= 1;
  if (ok && memcmp(&want, &got, sizeof want)) ok = wrong(c, "other numbers", &whole);
  tg_close(c);
  return ok;
}

/* Runs `first` on of what was compiled: with the inputs and sizes of run(). */
static bool run_compiled(Exported *e, bool rows, int first, Out *o) {
  bool ok = true;
  for (int i = first; ok && i < first + RUNS; i++) {
    int32_t x[SIDE * SIDE];
    int64_t n = 1 + i % SIDE;
    numbers_put(x, i);
    ok = !exported_run(e, e->m, (void *[]){x, o->v[i - first], &o->v[i - first][SIDE * SIDE], &n});
    if (rows) memset(o->v[i - first] + n * SIDE, 0, (size_t)(SIDE - n) * SIDE * 4);
  }
  return ok;
}

/* Each compiler that is here, by turns; one of them traps where the standard says nothing. */
static const char *export_compiler(uint64_t seed) {
  static int clang = -1;
  if (clang < 0) clang = !system("command -v clang-19 >/dev/null 2>&1");
  if (seed % 2 == 0 && clang) return "clang-19 -O2";
  return "gcc -O1 -fsanitize=undefined -fsanitize-undefined-trap-on-error";
}

static TgCOptions export_options(uint64_t seed) {
  return (TgCOptions){.weights_apart = seed % 3 == 0, .own_math = true, .threads = seed % 5 == 0 ? 3 : 1};
}

/* Less memory than it takes, where there is a choice of kernels for that. */
static void memory_bounded(TgContext *c, TgJit *j, TgCOptions *o) {
  TgCText t;
  o->size = sizeof *o;
  if (tg_jit_to_c_opt(j, &t, o)) return;
  o->max_ram = t.state_bytes + t.arena_bytes * 2 / 3 + 1;
  if (!tg_jit_to_c_opt(j, &t, o)) return;
  o->max_ram = 0;
  tg_clear_error(c);
}

bool fuzz_export(uint64_t seed, const char *folder, bool broken) {
  rng = seed;
  TgContext *c =
      tg_open(&(TgOpenOptions){.size = sizeof(TgOpenOptions), .device = "INTERP", .seed = 1 + seed});
  Body f = {0};
  Out want, got;
  Text none = {.n = 0};
  TgJit *j = program_of(c, &f, false);
  Exported e = {0};
  bool captured = run(c, j, &f, f.rows, 0, 3, &want), ok = true;
  TgCOptions o = export_options(seed);
  if (captured && seed % 4 == 1) memory_bounded(c, j, &o);
  if (captured) ok = exported_new(&e, j, folder, export_compiler(seed), o) || wrong(c, "no C of it", &none);
  if (captured && ok)
    ok = (run(c, j, &f, f.rows, 3, RUNS, &want) && run_compiled(&e, f.rows, 3, &got)) ||
         wrong(c, "it fails", &none);
  if (broken && captured) got.v[0][0] ^= 1;
  if (captured && ok && memcmp(&want, &got, sizeof want)) ok = wrong(c, "other numbers", &none);
  if (captured && !ok) {
    tg_clear_error(c);
    const char *text = tg_jit_to_text(j, NULL, NULL, 0);
    printf("%s\n", text ? text : "");
  }
  exported_free(&e);
  tg_close(c);
  return ok;
}
