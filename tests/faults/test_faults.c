/* test_faults.c: programs through the public API, each run again and again with the n-th allocation, OS call
 * or call of SQLite failing. Whatever fails: the call ends with a declared error or with the reference bits;
 * after tg_close no memory, mapping, file or process is left; and the same program then gives the reference
 * bits, in the same context after tg_clear_error and in a fresh one. All n up to DENSE, then a stride that
 * visits at least SPARSE more; TG_TORTURE=1 (make torture): every n. */
#define _GNU_SOURCE
#include "base/os.h"
#include "engine/engine.h"
#include "tg_io.h"
#include "tg_nn.h"
#include "tests/files/samples.h"
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>
#ifdef TG_HAVE_SQLITE
#include <fcntl.h>
#include <sqlite3.h>
#endif

enum { DENSE = 2000, SPARSE = 1000, MOST = 512 };

static bool torture;
static char cache_dir[64];

/* ---- what fails: one kind at a time, at its n-th call; `after`: that one and all later ones */
enum {

#define OS(result, name, params, args, failed, err) OS_##name,
#include "base/os.def"
#undef OS
  OS_KINDS,
  SQL_MEMORY = OS_KINDS,
  SQL_FILES,
  KINDS,
  MEMORY = KINDS
};
static const char *const kind_names[] = {
#define OS(result, name, params, args, failed, err) #name,
#include "base/os.def"
#undef OS
    "sqlite memory", "sqlite files", "allocation"};

static struct {
  uint64_t calls[KINDS], at;
  int kind;
  bool after;
  int64_t open_files, maps;
} world;

static bool fails(int kind) {
  uint64_t n = __atomic_add_fetch(&world.calls[kind], 1, __ATOMIC_RELAXED);
  return world.at && world.kind == kind && (n == world.at || (world.after && n > world.at));
}

/* close and munmap do their work before they fail, as the real ones do; so do the calls that take a temporary
 * file away, or each such failure would leave one. */
#define WORKS_ALL_THE_SAME(call)                                                                             \
  ((call) == OS_close || (call) == OS_munmap || (call) == OS_unlink || (call) == OS_rmdir ||                 \
   (call) == OS_library_close)

#define OS(result, name, params, args, failed, err)                                                          \
  static result fault_##name params {                                                                        \
    bool bad = fails(OS_##name);                                                                             \
    if (bad && !WORKS_ALL_THE_SAME(OS_##name)) return errno = (err), (failed);                               \
    result r = tg_os_default.name args;                                                                      \
    bool opens = OS_##name == OS_open || OS_##name == OS_memory_file || OS_##name == OS_dup_from ||          \
                 OS_##name == OS_process_watch;                                                              \
    if (opens && (intptr_t)r >= 0) world.open_files++;                                                       \
    if (OS_##name == OS_socket_pair && (intptr_t)r == 0) world.open_files += 2;                              \
    if (OS_##name == OS_library_open && (intptr_t)r != 0) world.open_files++;                                \
    if (OS_##name == OS_library_close) world.open_files--;                                                   \
    if (OS_##name == OS_close) world.open_files--;                                                           \
    if (OS_##name == OS_mmap && (intptr_t)r != -1) __atomic_add_fetch(&world.maps, 1, __ATOMIC_RELAXED);     \
    if (OS_##name == OS_munmap) __atomic_sub_fetch(&world.maps, 1, __ATOMIC_RELAXED);                        \
    return bad ? errno = (err), (failed) : r;                                                                \
  }
#include "base/os.def"
#undef OS
static const TgOs faulty = {
#define OS(result, name, params, args, failed, err) .name = fault_##name,
#include "base/os.def"
#undef OS
};
#ifdef TG_HAVE_SQLITE
static sqlite3_mem_methods sql_memory;

static void *sql_malloc(int n) { return fails(SQL_MEMORY) ? NULL : sql_memory.xMalloc(n); }

static void *sql_realloc(void *p, int n) { return fails(SQL_MEMORY) ? NULL : sql_memory.xRealloc(p, n); }

static int sql_open(const char *path, int flags, int mode) {
  return fails(SQL_FILES) ? errno = EMFILE, -1 : open(path, flags, mode);
}

static ssize_t sql_pread(int fd, void *p, size_t n, off_t at) {
  return fails(SQL_FILES) ? errno = EIO, -1 : pread(fd, p, n, at);
}

static ssize_t sql_pwrite(int fd, const void *p, size_t n, off_t at) {
  return fails(SQL_FILES) ? errno = ENOSPC, -1 : pwrite(fd, p, n, at);
}

static int sql_ftruncate(int fd, off_t n) { return fails(SQL_FILES) ? errno = ENOSPC, -1 : ftruncate(fd, n); }

static void *sql_mmap(void *p, size_t n, int prot, int flags, int fd, off_t at) {
  return fails(SQL_FILES) ? errno = ENOMEM, MAP_FAILED : mmap(p, n, prot, flags, fd, at);
}

static void sql_hook(void) {
  sqlite3_config(SQLITE_CONFIG_GETMALLOC, &sql_memory);
  sqlite3_mem_methods m = sql_memory;
  m.xMalloc = sql_malloc, m.xRealloc = sql_realloc;
  assert_int_equal(sqlite3_config(SQLITE_CONFIG_MALLOC, &m), SQLITE_OK);
  assert_int_equal(sqlite3_initialize(), SQLITE_OK);
  sqlite3_vfs *v = sqlite3_vfs_find(NULL);
  v->xSetSystemCall(v, "open", (sqlite3_syscall_ptr)sql_open);
  v->xSetSystemCall(v, "pread", (sqlite3_syscall_ptr)sql_pread),
      v->xSetSystemCall(v, "pread64", (sqlite3_syscall_ptr)sql_pread);
  v->xSetSystemCall(v, "pwrite", (sqlite3_syscall_ptr)sql_pwrite),
      v->xSetSystemCall(v, "pwrite64", (sqlite3_syscall_ptr)sql_pwrite);
  v->xSetSystemCall(v, "ftruncate", (sqlite3_syscall_ptr)sql_ftruncate),
      v->xSetSystemCall(v, "mmap", (sqlite3_syscall_ptr)sql_mmap);
}
#else
static void sql_hook(void) {}
#endif

static int64_t runs, errors, complaints;

/* Goes on, so that one wrong place does not hide the next; the test fails at its end. */
static void complain(const char *fmt, ...) {
  va_list ap;
  va_start(ap, fmt);
  if (complaints++ < 40) fprintf(stderr, "  "), vfprintf(stderr, fmt, ap), fprintf(stderr, "\n");
  va_end(ap);
}

/* ---- programs: build, compute, write what they computed to out. A builder that fails gives NULL down the
 * chain, so no check is needed here. */
typedef struct Out {
  uint8_t at[MOST];
  size_t n;
} Out;

static void put(TgContext *c, Out *o, TgTensor *t) {
  size_t n = tg_nbytes(t);
  if (!t && !tg_error(c)) complain("a builder gave NULL and no error");
  if (!t || n > sizeof o->at - o->n) return;
  TgStatus s = tg_read(t, o->at + o->n, n);
  if (s && !tg_error(c)) complain("read gave a status that the context does not know: %s", tg_status_name(s));
  if (!s) o->n += n;
}

static TgTensor *numbers(TgContext *c, TgDType d, int nd, const int64_t *dims, double from, double step) {
  double v[256];
  int64_t n = 1;
  for (int i = 0; i < nd; i++)
    n *= dims[i];
  for (int64_t i = 0; i < n; i++)
    v[i] = from + step * (double)(i * 7 % 23);
  return tg_from_f64(c, v, d, nd, dims);
}

#define F(from, step, ...) numbers(c, TG_F32, TG_SHAPE(__VA_ARGS__), from, step)
#define I(from, step, ...) numbers(c, TG_I32, TG_SHAPE(__VA_ARGS__), from, step)

static void elementwise(TgContext *c, Out *o) {
  TgTensor *a = F(-1, 0.25, 3, 5), *b = F(0.5, 0.125, 5), *d = numbers(c, TG_F16, TG_SHAPE(3, 1), 1, 0.5);
  put(c, o, tg_add(tg_relu(tg_mul(a, b)), tg_where(tg_lt(a, b), tg_exp(d), tg_sin(a))));
  put(c, o, tg_cast(tg_floordiv(tg_mul_scalar(a, 10), b), TG_I8));
}

static void reduction(TgContext *c, Out *o) {
  TgTensor *a = F(-1, 0.25, 4, 3, 5);
  put(c, o, tg_sum(a, .axis = TG_AXES(1)));
  put(c, o, tg_max(a, .axis = TG_AXES(0, 2)));
  put(c, o, tg_std(a));
  put(c, o, tg_argmin(a, .axis = TG_AXES(2)));
}

/* Of a stride and a padding: shifts, nested sums, gates that go to factors. */
static void conv_gradient(TgContext *c, Out *o) {
  TgTensor *x = tg_contiguous(F(-1, 0.25, 1, 2, 5, 4)), *w = F(0.5, 0.125, 2, 2, 3, 3), *gradient = NULL;
  TgTensor *y = tg_conv2d(x, w, .stride = TG_SIZES(2), .padding = TG_SIZES(1));
  if (!tg_vjp(y, F(1, -0.5, 1, 2, 3, 2), &x, 1, &gradient)) put(c, o, gradient);
}

static void matmul(TgContext *c, Out *o) {
  put(c, o, tg_add(tg_matmul(F(-1, 0.25, 5, 7), F(2, -0.125, 7, 6)), F(0, 1, 6)));
  put(c, o, tg_matmul(I(-9, 2, 2, 3, 4), I(1, 1, 4, 2)));
}

static void softmax(TgContext *c, Out *o) {
  TgTensor *a = F(-1, 0.25, 3, 7);
  put(c, o, tg_softmax(a));
  put(c, o,
      tg_layer_norm(tg_log_softmax(a, .axis = TG_AXES(0)), .weight = F(1, 0.1, 7), .bias = F(0, 0.2, 7)));
}

static void conv_pool(TgContext *c, Out *o) {
  TgTensor *y = tg_conv2d(F(-1, 0.25, 1, 2, 6, 6), F(0.3, -0.05, 3, 2, 3, 3), .bias = F(0.1, 0.2, 3),
                          .padding = TG_SIZES(1, 1), .stride = TG_SIZES(1, 2));
  put(c, o, tg_max_pool2d(tg_relu(y), .kernel = TG_SIZES(2, 2), .stride = TG_SIZES(2, 1)));
}

static void training(TgContext *c, Out *o) {
  TgTensor *x = F(-1, 0.125, 4, 3);
  TgTensor *y = I(0, 1, 4);
  TgTensor *w = tg_keep(F(-0.3, 0.04, 2, 3));
  TgTensor *b = tg_keep(F(0, 0.1, 2));
  TgOptim *opt = tg_adam(c, ((TgTensor *[]){w, b}), 2, .lr = 0.05);
  for (int step = 0; step < 2 && opt; step++)
    TG_SCOPE(c) {
      TgTensor *loss = tg_sparse_cross_entropy(tg_linear(x, w, b), tg_mod(y, tg_full_like(y, 2)));
      if (tg_backward(loss) || tg_optim_step(opt)) break;
    }
  put(c, o, w), put(c, o, b);
  tg_optim_free(opt);
  tg_release(w), tg_release(b);
}

/* Layers with state of their own, a clipped step with masters, loss scaling, a schedule. */
static void networks(TgContext *c, Out *o) {
  TgLSTMCell cell = tg_lstm_cell_new(c, 3, 2, true);
  TgGroupNorm norm = tg_group_norm_new(c, 2, 2);
  TgTensor *w = tg_keep(tg_bfloat16(F(-0.3, 0.04, 2, 3))), *params[8] = {w};
  int n = 1 + tg_module_parameters(tg_lstm_cell_module, &cell, params + 1, 4);
  n += tg_module_parameters(tg_group_norm_module, &norm, params + n, 2);
  TgOptim *opt = tg_lamb(c, params, n, .lr = 0.05, .clip_norm = 1, .master = true);
  TgScaler *scaler = tg_scaler(c, .scale = 8);
  TgLR *rate = tg_lr_cosine(opt, 4);
  for (int step = 0; step < 2 && opt && scaler && rate; step++)
    TG_SCOPE(c) {
      TgTensor *x = F(-1, 0.125, 4, 3), *cs, *h = tg_lstm_cell_run(&cell, x, NULL, NULL, &cs);
      h = tg_add(tg_group_norm_run(&norm, h), tg_float(tg_matmul(x, tg_transpose(w, 0, 1))));
      if (tg_backward(tg_scaler_scale(scaler, tg_mean(tg_square(h)))) || tg_scaler_step(scaler, opt)) break;
      if (tg_lr_step(rate)) break;
    }
  put(c, o, w);
  tg_lr_free(rate), tg_scaler_free(scaler), tg_optim_free(opt);
  tg_lstm_cell_free(&cell), tg_group_norm_free(&norm), tg_release(w);
}

static void in_place(TgContext *c, Out *o) {
  TgTensor *a = F(1, 1, 4, 6), *row = tg_select(a, 0, 2), *sum = tg_sum(a, .axis = TG_AXES(1));
  if (tg_realize(sum)) return;
  tg_assign_slice(a, (int64_t[]){1, 2}, (int64_t[]){3, 5},
                  tg_mul_scalar(tg_shrink(a, (int64_t[]){0, 0}, (int64_t[]){2, 3}), 2));
  put(c, o, a);
  put(c, o, row), put(c, o, sum);
  tg_assign(a, tg_flip(a, 1, (int64_t[]){0}));
  tg_assign(a, tg_add_scalar(a, 1));
  put(c, o, a);
}

static void randoms(TgContext *c, Out *o) {
  tg_manual_seed(c, 5);
  tg_set_training(c, true);
  put(c, o, tg_add(tg_rand(c, TG_SHAPE(3, 4)), tg_dropout(tg_randn(c, TG_SHAPE(3, 4)), 0.25)));
  put(c, o, tg_randint(c, TG_SHAPE(5), -3, 9, TG_I64));
}

static void indexing(TgContext *c, Out *o) {
  TgTensor *a = F(0, 1, 5, 3), *i = I(0, 0.2, 4, 3);
  put(c, o, tg_gather(a, 0, i));
  put(c, o, tg_cat((TgTensor *[]){tg_take(a, I(4, -0.1, 2)), tg_mul_scalar(a, 3)}, 2, 0));
  put(c, o, tg_one_hot(tg_select(i, 1, 1), 5));
}

static void ordered(TgContext *c, Out *o) {
  TgTensor *a = F(-2, 0.75, 3, 4), *i = I(0, 0.2, 2, 4), *at = NULL, *v = tg_cummin(a, 1, &at);
  put(c, o, v), put(c, o, at);
  put(c, o, tg_scatter_reduce(a, 0, i, a, TG_SCATTER_MEAN, .exclude_self = true));
  put(c, o, tg_argsort(a, .descending = true));
  put(c, o, tg_sum(tg_cummax(tg_zeros(c, TG_SHAPE(0, 2, 3)), 2, NULL))); /* places of nothing */
}

static void one_kernel(TgContext *c, Out *o) { put(c, o, tg_softmax(F(-1, 0.25, 4, 6))); }

/* the second batch starts a spare compiler, the third takes it */
static void kernels_in_turn(TgContext *c, Out *o) {
  for (int i = 1; i <= 3; i++)
    put(c, o, tg_mul_scalar(F(-1, 0.25, 4, 6), i));
}

static void mixed(TgContext *c, Out *o) {
  put(c, o, tg_softmax(tg_matmul(F(-1, 0.25, 4, 6), F(0.5, 0.125, 6, 5))));
  put(c, o, tg_cumsum(I(-4, 1, 9), 0));
}

/* made anew each time, so that a run sees nothing of the one before */
/* through another device and back, between stores, with a gradient */
static void devices(TgContext *c, Out *o) {
  tg_manual_seed(c, 4);
  TgTensor *x = F(-1, 0.5, 3, 4), *there = tg_to(tg_slice(x, 1, 1, 3), "INTERP:1");
  TgTensor *w = tg_requires_grad(tg_zeros(c, TG_SHAPE(2, 2), .device = "INTERP:1"), true);
  put(c, o, tg_to(tg_matmul(there, tg_add_scalar(w, 2)), NULL));
  tg_assign(x, tg_mul_scalar(x, 2));
  TgTensor *loss = tg_sum(tg_square(tg_matmul(tg_to(tg_slice(x, 1, 0, 2), "INTERP:1"), w)));
  if (loss && !tg_backward(loss)) put(c, o, tg_grad(w));
  put(c, o, tg_rand(c, TG_SHAPE(3), .device = "INTERP:1"));
}

static void files(TgContext *c, Out *o) {
  char path[100];
  snprintf(path, sizeof path, "%s/numbers", cache_dir);
  unlink(path);
  TgTensor *t = tg_from_file(c, path, TG_F32, TG_SHAPE(4, 3), .offset = 4096 + 8, .create = true);
  if (!tg_assign(t, F(1, 0.5, 4, 3)) || tg_realize(t)) return;
  put(c, o, tg_sum(tg_from_file(c, path, TG_F32, TG_SHAPE(2, 3), .offset = 4096 + 20), .axis = TG_AXES(1)));
  put(c, o, t);
}

static TgState *of_bytes(TgContext *c, Bytes *b, TgState *(*read)(TgTensor *)) {
  return read(tg_from_bytes(c, b->at, b->n, TG_U8));
}

static void first_of(TgContext *c, Out *o, TgState *s, const char *name) {
  if (!s && !tg_error(c)) complain("a reader gave NULL and no error");
  if (s) put(c, o, tg_state_get(s, name));
  tg_state_free(s);
}

/* a file of each format; what is in them is in tests/unit/test_files.c */
static void models(TgContext *c, Out *o) {
  static Bytes b;
  Gguf g;
  char path[100];
  snprintf(path, sizeof path, "%s/model", cache_dir);
  TgState *s = tg_state_new(c), *f = NULL;
  TgTensor *w = tg_keep(F(1, 0.5, 2, 3)), *to = tg_keep(F(0, 0, 2, 3));
  tg_state_put(s, "w", w);
  if (!tg_error(c) && !tg_safe_save(s, path)) f = tg_state_from_file(c, path);
  if (s && to && !tg_error(c) && !tg_state_put(s, "w", to) && f) tg_load_state(s, f);
  put(c, o, to);
  tg_state_free(s), tg_state_free(f), tg_release(w), tg_release(to);
  b.n = 0, zip_write(&b, zip_files, 4, true);
  first_of(c, o, of_bytes(c, &b, tg_zip_extract), "two");
  b.n = 0, tar_add(&b, "././@LongLink", 'L', "long", 5, NULL), tar_add(&b, "b", '0', "x", 1, "p"),
  add_le(&b, 0, 1024);
  first_of(c, o, of_bytes(c, &b, tg_tar_extract), "long");
  put(c, o, tg_gunzip(tg_from_bytes(c, gzipped, sizeof gzipped, TG_U8)));
  b.n = 0, checkpoint_write(&b, good_pickle, sizeof good_pickle - 1);
  TgValue *v = tg_torch_load(tg_from_bytes(c, b.at, b.n, TG_U8));
  first_of(c, o, v ? tg_get_state(c, v, "model") : NULL, "model.a");
  tg_value_free(v);
  gguf_write(&g);
  v = tg_gguf_load(tg_from_bytes(c, g.b.at, g.b.n, TG_U8));
  first_of(c, o, v ? tg_get_state(c, v, NULL) : NULL, "tensors.w");
  tg_value_free(v);
}

static void variables(TgContext *c, Out *o) {
  TgVariable *n = tg_variable(c, "n", 1, 6);
  TgTensor *m = F(-1, 0.25, 6, 3);
  for (int k = 5; k > 1; k -= 3) {
    if (!n || tg_variable_bind(n, k)) return;
    TgTensor *x = tg_slice(m, 0, 0, tg_size(n));
    TgTensor *p = tg_matmul(tg_softmax(tg_matmul(x, tg_transpose(x, 0, 1))), x);
    put(c, o, p),
        put(c, o, tg_reshape(tg_cat((TgTensor *[]){x, x}, 2, 0), TG_SHAPE(tg_size_mul(c, tg_size(n), 6))));
    if (!tg_assign_slice(m, (int64_t[]){0, 1}, (int64_t[]){tg_size(n), 2},
                         tg_mul_scalar(tg_slice(p, 1, 1, 2), 1)))
      return;
  }
  put(c, o, m);
}

typedef struct Held {
  TgTensor *w;
} Held;

static TgStatus step(TgContext *c, TgTensor *const *in, int nin, TgTensor **out, int nout, void *user) {
  (void)nin, (void)nout;
  Held *h = user;
  out[0] = tg_add(tg_matmul(in[0], h->w), tg_rand(c, TG_SHAPE(2, 2)));
  return tg_add_(h->w, tg_scalar_like(h->w, 1)) && !tg_realize(h->w) ? TG_OK : tg_error(c);
}

static void captured(TgContext *c, Out *o) { /* a first run, a capture, two replays */
  tg_manual_seed(c, 3);
  Held h = {tg_keep(tg_clone(F(0, 0.5, 3, 2)))};
  TgJit *j = tg_jit(c, step, &h);
  for (int i = 0; i < 4 && j && !tg_error(c); i++) {
    TgTensor *x = F(i, 0.25, 2, 3), *y[1] = {NULL};
    if (!tg_jit_run(j, &x, 1, y, 1)) put(c, o, y[0]);
  }
  put(c, o, h.w);
  tg_jit_free(j), tg_release(h.w);
}

static TgStatus of_rows(TgContext *c, TgTensor *const *in, int nin, TgTensor **out, int nout, void *user) {
  (void)c, (void)nin, (void)nout;
  out[0] = tg_relu(tg_matmul(in[0], user));
  return TG_OK;
}

static void captured_rows(TgContext *c,
                          Out *o) { /* as many rows as a variable says, of a part and of a value */
  TgTensor *w = tg_keep(tg_clone(F(0, 0.5, 3, 2))), *all = F(1, 0.25, 4, 3);
  TgVariable *n = tg_variable(c, "n", 0, 4);
  TgJit *j = tg_jit(c, of_rows, w);
  if (all && !tg_error(c)) tg_realize(all);
  for (int i = 0; i < 5 && j && n && !tg_error(c); i++) {
    TgTensor *y[1] = {NULL};
    tg_variable_bind(n, (i + 3) % 5);
    TgTensor *x = tg_slice(all, 0, 0, tg_size(n));
    if (i % 2) x = tg_mul_scalar(x, 3);
    if (!tg_jit_run(j, &x, 1, y, 1)) put(c, o, tg_sum(y[0]));
  }
  tg_jit_free(j), tg_release(w);
}

static TgStatus convolved(TgContext *c, TgTensor *const *in, int nin, TgTensor **out, int nout, void *user) {
  (void)c, (void)nin, (void)nout;
  out[0] = tg_conv2d(in[0], user, .padding = TG_SIZES(1));
  return TG_OK;
}

static TgTensor *counted(TgContext *c, int ndim, const int64_t *dims) {
  int64_t n = 1;
  for (int i = 0; i < ndim; i++)
    n *= dims[i];
  return tg_reshape(tg_cast(tg_mod_scalar(tg_arange(c, 0, n), 7), TG_F32), ndim, dims);
}

static void prepacked(TgContext *c, Out *o) { /* copies of weights, kept by the second replay */
  TgTensor *w = tg_keep(tg_clone(counted(c, TG_SHAPE(32, 32, 3, 3))));
  TgTensor *x = tg_clone(counted(c, TG_SHAPE(1, 32, 7, 7)));
  if (!tg_error(c)) tg_realize(w);
  TgJit *j = tg_jit(c, convolved, w);
  for (int i = 0; i < 5 && j && !tg_error(c); i++) {
    TgTensor *y[1] = {NULL};
    if (i == 3) tg_assign(w, tg_add_scalar(w, 1));
    if (!tg_jit_run(j, &x, 1, y, 1)) put(c, o, tg_sum(y[0]));
  }
  tg_jit_free(j), tg_release(w);
}

static void captured_file(TgContext *c, Out *o) { /* saved after the capture; loaded, it goes on */
  char path[100];
  snprintf(path, sizeof path, "%s/program", cache_dir);
  tg_manual_seed(c, 3);
  Held h = {tg_keep(tg_clone(F(0, 0.5, 3, 2)))};
  TgJit *j = tg_jit(c, step, &h);
  for (int i = 0; i < 2 && j && !tg_error(c); i++) {
    TgTensor *x = F(i, 0.25, 2, 3), *y[1] = {NULL};
    tg_jit_run(j, &x, 1, y, 1);
  }
  if (!tg_error(c)) tg_jit_to_text(j, (const char *[]){"w", "of no use"}, (TgTensor *[]){h.w, F(0, 1, 2)}, 2);
  if (!tg_error(c))
    tg_jit_save(j, path, .inputs = ((const char *[]){"x"}), .outputs = ((const char *[]){"y"}));
  tg_jit_free(j), tg_release(h.w);
  j = tg_error(c) ? NULL : tg_jit_load_file(c, path);
  for (int i = 0; i < 2 && j && !tg_error(c); i++) {
    TgTensor *x = F(i, 0.25, 2, 3), *y[1] = {NULL};
    if (!tg_jit_run(j, &x, 1, y, 1)) put(c, o, y[0]);
  }
  if (!j && !tg_error(c)) complain("no program and no error");
  if (j && !tg_error(c)) put(c, o, tg_jit_memory(j, 0, NULL));
  tg_jit_free(j);
}

/* y = x + w with its two axes' sizes swapped: Add, Shape, Gather, Reshape, as the onnx package writes it */
static const unsigned char onnx_model[] = {
    8,  8,   58,  156, 1,   10, 14,  10,  1,   120, 10,  1,   119, 18,  1,   97, 34, 3,  65, 100, 100,
    10, 13,  10,  1,   97,  18, 1,   115, 34,  5,   83,  104, 97,  112, 101, 10, 17, 10, 1,  115, 10,
    1,  105, 18,  1,   100, 34, 6,   71,  97,  116, 104, 101, 114, 10,  18,  10, 1,  97, 10, 1,   100,
    18, 1,   121, 34,  7,   82, 101, 115, 104, 97,  112, 101, 18,  1,   103, 42, 21, 8,  3,  16,  1,
    66, 1,   119, 74,  12,  0,  0,   128, 63,  0,   0,   0,   64,  0,   0,   64, 64, 42, 25, 8,   2,
    16, 7,   66,  1,   105, 74, 16,  1,   0,   0,   0,   0,   0,   0,   0,   0,  0,  0,  0,  0,   0,
    0,  0,   90,  20,  10,  1,  120, 18,  15,  10,  13,  8,   1,   18,  9,   10, 3,  18, 1,  110, 10,
    2,  8,   3,   98,  9,   10, 1,   121, 18,  4,   10,  2,   8,   1,   66,  4,  10, 0,  16, 17};

static void onnx(TgContext *c, Out *o) {
  TgOnnx *m = tg_onnx_load(tg_from_bytes(c, onnx_model, sizeof onnx_model, TG_U8));
  TgTensor *x = F(1, 0.5, 2, 3), *y = NULL;
  if (!m && !tg_error(c)) complain("a reader gave NULL and no error");
  if (m && x && !tg_error(c)) tg_onnx_run(m, (const char *[]){"x"}, &x, 1, &y, 1);
  put(c, o, y);
  tg_onnx_free(m);
}

/* y = unique(what is left of Twice(x) without its first half) + w, w in four bits: a function of the model's
 * own with an attribute, lists, as the onnx package writes it */
static const unsigned char onnx_parts_model[] = {
    8,   10,  18,  0,   58,  156, 2,   10,  34,  10,  1,   120, 18,  1,   116, 34,  5,   84,  119, 105, 99,
    101, 42,  15,  10,  5,   116, 105, 109, 101, 115, 21,  0,   0,   0,   64,  160, 1,   1,   58,  2,   109,
    121, 10,  41,  10,  1,   116, 10,  3,   116, 119, 111, 18,  1,   108, 34,  15,  83,  112, 108, 105, 116,
    84,  111, 83,  101, 113, 117, 101, 110, 99,  101, 42,  11,  10,  4,   97,  120, 105, 115, 24,  0,   160,
    1,   2,   10,  27,  10,  1,   108, 10,  4,   116, 119, 111, 48,  18,  1,   109, 34,  13,  83,  101, 113,
    117, 101, 110, 99,  101, 69,  114, 97,  115, 101, 10,  39,  10,  1,   109, 18,  1,   117, 34,  18,  67,
    111, 110, 99,  97,  116, 70,  114, 111, 109, 83,  101, 113, 117, 101, 110, 99,  101, 42,  11,  10,  4,
    97,  120, 105, 115, 24,  0,   160, 1,   2,   10,  14,  10,  1,   117, 18,  1,   118, 34,  6,   85,  110,
    105, 113, 117, 101, 10,  24,  10,  1,   119, 18,  2,   119, 102, 34,  4,   67,  97,  115, 116, 42,  9,
    10,  2,   116, 111, 24,  1,   160, 1,   2,   10,  15,  10,  1,   118, 10,  2,   119, 102, 18,  1,   121,
    34,  3,   65,  100, 100, 18,  1,   103, 42,  10,  16,  7,   58,  1,   2,   66,  3,   116, 119, 111, 42,
    11,  16,  7,   58,  1,   0,   66,  4,   116, 119, 111, 48,  42,  11,  8,   2,   16,  22,  42,  2,   227,
    1,   66,  1,   119, 90,  15,  10,  1,   120, 18,  10,  10,  8,   8,   1,   18,  4,   10,  2,   8,   4,
    98,  16,  10,  1,   121, 18,  11,  10,  9,   8,   1,   18,  5,   10,  3,   18,  1,   110, 66,  4,   10,
    0,   16,  18,  66,  6,   10,  2,   109, 121, 16,  1,   202, 1,   87,  10,  5,   84,  119, 105, 99,  101,
    34,  1,   97,  42,  1,   121, 50,  5,   116, 105, 109, 101, 115, 58,  39,  18,  1,   107, 34,  8,   67,
    111, 110, 115, 116, 97,  110, 116, 42,  24,  10,  11,  118, 97,  108, 117, 101, 95,  102, 108, 111, 97,
    116, 160, 1,   1,   170, 1,   5,   116, 105, 109, 101, 115, 58,  14,  10,  1,   97,  10,  1,   107, 18,
    1,   121, 34,  3,   77,  117, 108, 74,  4,   10,  0,   16,  18,  82,  2,   109, 121};

static void node_told(const TgOnnxNode *n, void *user) {
  TgTensor **last = user;
  if (n->nout && n->out[0]) *last = n->out[0];
}

static void onnx_parts(TgContext *c, Out *o) {
  TgOnnx *m = tg_onnx_load(tg_from_bytes(c, onnx_parts_model, sizeof onnx_parts_model, TG_U8));
  TgTensor *x = F(1, 0.5, 4), *y = NULL, *last = NULL;
  if (!m && !tg_error(c)) complain("a reader gave NULL and no error");
  tg_onnx_watch(m, node_told, &last);
  if (m && x && !tg_error(c)) tg_onnx_run(m, (const char *[]){"x"}, &x, 1, &y, 1);
  put(c, o, y);
  tg_onnx_free(m);
}

/* Layers over a sequence, in another dtype, and which launches compute them. */
static void launched(const TgLaunch *l, void *user) { *(int *)user += l->nparts; }

static void over_time(TgContext *c, Out *o) {
  tg_manual_seed(c, 3);
  TgGRU g = tg_gru_new(c, 2, 2);
  TgMultiheadAttention m = tg_multihead_attention_new(c, 2, 1);
  int parts = 0;
  tg_module_cast(tg_multihead_attention_module, &m, TG_BF16);
  TgTensor *x = F(-1, 0.25, 1, 1, 2), *y = tg_gru_run(&g, x, NULL, NULL), *h = tg_bfloat16(y);
  TgTensor *z = tg_float(tg_multihead_attention_run(&m, h, h, h));
  if (z && y) tg_schedule_parts(&z, 1, (TgTensor *[]){y, z}, 2, launched, &parts);
  tg_watch_launches(c, launched, &parts);
  put(c, o, z);
  tg_watch_launches(c, NULL, NULL);
  tg_gru_free(&g), tg_multihead_attention_free(&m);
}

typedef struct Named {
  const char *name;
  void (*run)(TgContext *c, Out *o);
} Named;

static const Named programs[] = {{"elementwise", elementwise},
                                 {"reduction", reduction},
                                 {"matmul", matmul},
                                 {"softmax", softmax},
                                 {"conv and pool", conv_pool},
                                 {"conv gradient", conv_gradient},
                                 {"training", training},
                                 {"networks", networks},
                                 {"in place", in_place},
                                 {"random", randoms},
                                 {"indexing", indexing},
                                 {"ordered", ordered},
                                 {"files", files},
                                 {"devices", devices},
                                 {"variables", variables},
                                 {"captured", captured},
                                 {"captured rows", captured_rows},
                                 {"captured file", captured_file},
                                 {"models", models},
                                 {"onnx", onnx},
                                 {"onnx parts", onnx_parts},
                                 {"over time", over_time},
                                 {"mixed", mixed}};

/* ---- one run */
typedef struct Where {
  const char *device;
  bool cache;
} Where;

static int no_complaints(void **state) { return (void)state, complaints ? (complaints = 0, -1) : 0; }

static void cache_remove(void) {
  static const char *const files[] = {"", "-wal", "-shm", "-journal"};
  char path[200];
  for (size_t i = 0; i < TG_COUNT(files); i++)
    snprintf(path, sizeof path, "%s/tinygrad-c/kernels-1.db%s", cache_dir, files[i]), unlink(path);
}

static bool declared(TgStatus s, int kind) {
  if (kind == MEMORY) return s == TG_ERR_NOMEM;
  if (kind >= OS_KINDS) return false; /* the cache on disk never fails a program */
  return s == TG_ERR_NOMEM || s == TG_ERR_DEVICE || s == TG_ERR_COMPILE || s == TG_ERR_IO;
}

/* Runs p with the n-th call of a kind failing (n 0: none). True: that call was reached. */
static bool run_one(const Named *p, Where w, int kind, uint64_t n, bool after, const Out *want, Out *got,
                    uint64_t calls[KINDS + 1], bool again) {
  TgMem last = {0};
  TgMem m = {.fail_at = kind == MEMORY ? n : 0, .fail_always_after = after, .last = &last};
  memset(&world, 0, sizeof world);
  world.kind = kind, world.after = after, world.at = kind == MEMORY ? 0 : n;
  setenv("TG_CACHE", w.cache ? "1" : "0", 1);
  TgContext *c = context_open(
      &(TgOpenOptions){.size = sizeof(TgOpenOptions), .device = w.device, .threads = 2}, &faulty, m);
  memset(got, 0, sizeof *got);
  if (c) p->run(c, got);
  uint64_t used = kind == MEMORY ? c ? c->mem.calls : n : world.calls[kind];
  char where[200];
  snprintf(where, sizeof where, "%s on %s%s, %s %s%llu", p->name, w.device, w.cache ? " with cache" : "",
           kind_names[kind], after ? "from " : "", (unsigned long long)n);
  TgStatus s = tg_error(c);
  runs++, errors += s != TG_OK;
  if (c && s && !declared(s, n ? kind : KINDS))
    complain("%s: %s: %s", where, tg_status_name(s), tg_errmsg(c));
  if (c && s && !*tg_errmsg(c)) complain("%s: no message", where);
  if (!s && want && (got->n != want->n || memcmp(got->at, want->at, want->n)))
    complain("%s: no error, other bits (%zu bytes, not %zu)", where, got->n, want->n);
  world.at = 0;
  if (c && s && again && *tg_default_device(c)) { /* the same context works again */
    c->mem.fail_at = 0;
    tg_clear_error(c);
    memset(got, 0, sizeof *got);
    p->run(c, got);
    if (tg_error(c))
      complain("%s: again: %s: %s", where, tg_status_name(tg_error(c)), tg_errmsg(c));
    else if (got->n != want->n || memcmp(got->at, want->at, want->n))
      complain("%s: again: other bits", where);
  }
  if (calls && c) memcpy(calls, world.calls, sizeof world.calls), calls[MEMORY] = c->mem.calls;
  tg_close(c);
  if (last.live) complain("%s: %llu blocks left", where, (unsigned long long)last.live);
  if (world.maps) complain("%s: %lld mappings left", where, (long long)world.maps);
  if (world.open_files) complain("%s: %lld files left", where, (long long)world.open_files);
  if (waitpid(-1, NULL, WNOHANG) != -1 || errno != ECHILD) complain("%s: a process is left", where);
  return used >= n;
}

/* The same in a child, when all is to be seen: a crash is a complaint, and the sweep goes on. */
static bool run_apart(const Named *p, Where w, int kind, uint64_t n, bool after, const Out *want,
                      bool again) {
  Out got;
  if (!torture) return run_one(p, w, kind, n, after, want, &got, NULL, again);
  fflush(NULL);
  pid_t pid = fork();
  if (!pid) {
    complaints = 0;
    bool hit = run_one(p, w, kind, n, after, want, &got, NULL, again);
    _exit(complaints ? 12 : hit ? 11 : 10);
  }
  int status = 0;
  waitpid(pid, &status, 0);
  runs++;
  int rc = WIFEXITED(status) ? WEXITSTATUS(status) : 0;
  if (rc < 10)
    complain("%s on %s, %s %s%llu: crash", p->name, w.device, kind_names[kind], after ? "from " : "",
             (unsigned long long)n);
  else
    complaints += rc == 12;
  return rc != 10;
}

static void sweep(const Named *p, Where w, const Out *want, int kind, uint64_t total, uint64_t most) {
  Out got;
  /* `after`: a tenth as many, and not what would only wait for ever */
  for (int after = 0; after < 2; after++) {
    if (after && (kind == OS_word_wait || kind == OS_word_wake || kind == OS_waitpid || kind == OS_poll ||
                  kind == OS_process_wait || kind == OS_kill))
      continue;
    uint64_t dense = torture ? total : TG_MIN(most, DENSE);
    uint64_t stride = TG_MAX((total > dense ? total - dense : 0) / SPARSE, 1);
    if (most < DENSE) dense = 0, stride = TG_MAX(total / most, 1);
    if (after) dense /= 10, stride *= 10;
    for (uint64_t n = 1; n <= total; n += n < dense ? 1 : stride)
      if (!run_apart(p, w, kind, n, after, want, n % 3 == 0)) break;
    run_one(p, w, MEMORY, 0, false, want, &got, NULL, false);
  }
}

static void reference(const Named *p, Where w, Out *want, uint64_t calls[KINDS + 1]) {
  Out again;
  uint64_t first[KINDS + 1];
  run_one(p, w, MEMORY, 0, false, NULL, want, first, false);
  if (strncmp(w.device, "NULL", 4)) assert_true(want->n > 0);
  run_one(p, w, MEMORY, 0, false, want, &again, calls, false);
  /* the first one fills the cache on disk */
  for (int k = 0; k <= KINDS; k++)
    calls[k] = TG_MAX(calls[k], first[k]);
}

static void report(const Named *p, Where w, const uint64_t *calls) {
  fprintf(stderr, "%-14s %-9s %llu allocations;", p->name, w.device, (unsigned long long)calls[MEMORY]);
  for (int k = 0; k < KINDS; k++)
    if (calls[k]) fprintf(stderr, " %s %llu", kind_names[k], (unsigned long long)calls[k]);
  fprintf(stderr, "\n");
}

/* ---- tests */
static void test_allocations(void **state) { /* one program on the interpreter; a test of its own */
  const Named *p = *state;
  Where w = {"INTERP", false};
  Out want;
  uint64_t calls[KINDS + 1];
  reference(p, w, &want, calls);
  report(p, w, calls);
  sweep(p, w, &want, MEMORY, calls[MEMORY], DENSE);
  for (int k = 0; k < OS_KINDS; k++)
    if (calls[k]) sweep(p, w, &want, k, calls[k], DENSE);
}

/* one program on the other devices, with and without a cache on disk */
static void test_devices(void **state) {
  (void)state;
  const Named *p = &programs[TG_COUNT(programs) - 1];
  static const Where at[] = {{"NULL:CUDA", false}, {"INTERP:C", false}, {"CPU", false},
                             {"CPU", true},        {"CUDA", true},      {"METAL", true}};
  setenv("TG_EMU", "1", 1);
  for (size_t i = 0; i < TG_COUNT(at); i++) {
    Out want;
    uint64_t calls[KINDS + 1];
    cache_remove();
    reference(p, at[i], &want, calls);
    report(p, at[i], calls);
    sweep(p, at[i], &want, MEMORY, calls[MEMORY], torture ? DENSE : strchr("CM", at[i].device[0]) ? 50 : 500);
  }
}

/* Without memory for what is kept, the copies are made at each launch, or there is an error. */
static void test_prepacked(void **state) {
  (void)state;
  const Named p = {"prepacked", prepacked};
  Where w = {"CPU", true};
  Out want;
  uint64_t calls[KINDS + 1];
  cache_remove();
  reference(&p, w, &want, calls);
  report(&p, w, calls);
  sweep(&p, w, &want, MEMORY, calls[MEMORY], torture ? DENSE : 300);
}

static void test_os_calls(void **state) { /* CPU: no cache, a new cache each time, a full one */
  (void)state;
  static const Named small[] = {{"one kernel", one_kernel}, {"kernels in turn", kernels_in_turn}};
  for (int round = 0; round < 4; round++) {
    int mode = round % 3; /* the last without a cache, so that all its kernels are compiled */
    const Named *p = torture && round < 3 ? &programs[TG_COUNT(programs) - 1] : &small[round == 3];
    Where w = {"CPU", mode > 0};
    Out want, got;
    cache_remove();
    uint64_t calls[KINDS + 1];
    reference(p, w, &want, calls);
    report(p, w, calls);
    for (int k = 0; k < KINDS; k++)
      for (int after = 0; after < 2; after++) {
        if (after && (k == OS_word_wait || k == OS_word_wake || k == OS_waitpid || k == OS_poll ||
                      k == OS_process_wait || k == OS_kill))
          continue;
        for (uint64_t n = 1; n <= calls[k] && (torture || !after || n == 1); n += torture ? 1 : n / 3 + 1) {
          if (mode == 1) cache_remove();
          run_apart(p, w, k, n, after, &want, false);
          /* nothing bad was left on disk */
          if (k >= OS_KINDS || torture) run_one(p, w, MEMORY, 0, false, &want, &got, NULL, false);
        }
      }
  }
}

/* Kernels that the compiler links and the system loads. A file that is left behind fails the last line. */
static void test_library_loader(void **state) {
  (void)state;
  const Named p = {"one kernel", one_kernel};
  Where w = {"CPU", false};
  Out want;
  uint64_t calls[KINDS + 1];
  char folder[] = "/tmp/tg-faults-XXXXXX";
  assert_non_null(mkdtemp(folder));
  setenv("TMPDIR", folder, 1), setenv("TG_LOADER", "library", 1);
  reference(&p, w, &want, calls);
  report(&p, w, calls);
  assert_true(calls[OS_library_open] > 0 && calls[OS_private_folder] > 0);
  for (int k = 0; k < OS_KINDS; k++)
    for (uint64_t n = 1; n <= calls[k]; n += torture ? 1 : n / 3 + 1)
      run_apart(&p, w, k, n, false, &want, false);
  sweep(&p, w, &want, MEMORY, calls[MEMORY], torture ? DENSE : 20);
  unsetenv("TMPDIR"), unsetenv("TG_LOADER");
  assert_int_equal(rmdir(folder), 0);
}

/* Kernels that no cache has yet, one after another; false: a wrong number or an error. */
static bool fill_cache(int round, int n) {
  TgContext *c = tg_open(&(TgOpenOptions){.size = sizeof(TgOpenOptions), .device = "CPU", .threads = 1});
  bool ok = c && !tg_error(c);
  for (int i = 0; ok && i < n; i++) {
    float in[4] = {1, 2, 3, 4}, out[4];
    ok = !tg_read(tg_mul_scalar(tg_from(c, in, TG_F32, TG_SHAPE(4)), 100 * round + i + 2), out, sizeof out);
    for (int k = 0; ok && k < 4; k++)
      ok = out[k] == in[k] * (float)(100 * round + i + 2);
  }
  tg_close(c);
  return ok;
}

/* ended by force at any moment: the next process works, with the same cache */
static void test_kill(void **state) {
  (void)state;
  setenv("TG_CACHE", "1", 1);
  cache_remove();
  for (int round = 0; round < (torture ? 100 : 6); round++) {
    fflush(NULL);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (!pid) _exit(!fill_cache(round, 100));
    usleep((useconds_t)(1000 * (round * 37 % 150)));
    kill(pid, SIGKILL);
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    if (WIFEXITED(status)) assert_int_equal(WEXITSTATUS(status), 0);
    if (!fill_cache(round, 2)) fail_msg("round %d: the run after the kill is wrong", round);
  }
}

static int setup(void **state) {
  (void)state;
  strcpy(cache_dir, "/tmp/tg_test_faults_XXXXXX");
  torture = getenv("TG_TORTURE") != NULL;
  if (!mkdtemp(cache_dir)) return 1;
  setenv("XDG_CACHE_HOME", cache_dir, 1);
  sql_hook();
  return 0;
}

static int teardown(void **state) {
  (void)state;
  char path[100];
  cache_remove();
  snprintf(path, sizeof path, "%s/numbers", cache_dir);
  unlink(path);
  snprintf(path, sizeof path, "%s/model", cache_dir);
  unlink(path);
  snprintf(path, sizeof path, "%s/program", cache_dir);
  unlink(path);
  snprintf(path, sizeof path, "%s/tinygrad-c", cache_dir);
  rmdir(path);
  fprintf(stderr, "%lld runs, %lld ended with an error\n", (long long)runs, (long long)errors);
  return rmdir(cache_dir);
}

int main(void) {
  enum { N = TG_COUNT(programs) };

  static char names[N][40]; /* a word each, for TG_TEST */
  struct CMUnitTest tests[N + 5] = {[N] = cmocka_unit_test_teardown(test_devices, no_complaints),
                                    cmocka_unit_test_teardown(test_os_calls, no_complaints),
                                    cmocka_unit_test_teardown(test_library_loader, no_complaints),
                                    cmocka_unit_test_teardown(test_prepacked, no_complaints),
                                    cmocka_unit_test(test_kill)};
  for (size_t i = 0; i < N; i++) {
    snprintf(names[i], sizeof names[i], "test_allocations_%s", programs[i].name);
    for (char *c = names[i]; (c = strchr(c, ' '));)
      *c = '_';
    tests[i] = (struct CMUnitTest){names[i], test_allocations, NULL, no_complaints, (void *)&programs[i]};
  }
  cmocka_set_test_filter(getenv("TG_TEST"));
  return cmocka_run_group_tests(tests, setup, teardown);
}
