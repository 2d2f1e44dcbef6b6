/* cuda_mock.c: the driver and the compiler of a GPU that does not exist. In: the calls of cuda_api.def. Out:
 * the same effects, by the emulator (emulate.h) with its checks. What is put into a stream is done as late as
 * possible, when somebody waits. With TG_EMU=2 and 3, some streams do it as soon as possible (is_hasty). With
 * 4 and more, a seed chooses the times and the order between streams. So a missing wait shows as a wrong
 * value or as an error. The mock also detects memory that is freed while work in a stream may use it and
 * objects that are never destroyed (counts), and can make any call fail (cuda_mock_fail). Like the real
 * driver there is one for the process, and after an error of a kernel every call fails. */
#define _GNU_SOURCE
#include "emu/cuda_mock.h"
#include "uop/matrix.h"
#include "base/os.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
Mock cuda_mock;
_Thread_local CUcontext cuda_mock_now;

/* Everything that is allocated is in a list, so that what the mock's user has left is freed when the mock is
 * closed. */
struct Taken {
  Taken *before, *after;
};

void *mock_take(size_t nbytes) {
  Taken *t = mem_alloc(&cuda_mock.mem, sizeof *t + nbytes + 1);
  if (!t) return NULL;
  if ((t->after = cuda_mock.taken)) t->after->before = t;
  cuda_mock.taken = t;
  return t + 1;
}

void mock_drop(void *p) {
  if (!p) return;
  Taken *t = (Taken *)p - 1;
  *(t->before ? &t->before->after : &cuda_mock.taken) = t->after;
  if (t->after) t->after->before = t->before;
  mem_free(&cuda_mock.mem, t);
}

/* An error that the emulator finds in an access, a race or a barrier ends the GPU's work, as it does on a
 * real one. */
CUresult mock_refused(TgStatus st) {
  if (!st) return CUDA_OK;
  if (st == TG_ERR_NOMEM) return CUDA_OUT_OF_MEMORY;
  if (!cuda_mock.broken) cuda_mock.broken = CUDA_LAUNCH_FAILED;
  return cuda_mock.broken;
}

CUresult mock_misused(const char *what) {
  return mock_refused(error_set(&cuda_mock.why, TG_ERR_DEVICE, "%s", what));
}

/* ---- the driver: device and context */
CUresult cuda_mock_init(unsigned flags) { return flags ? CUDA_INVALID_VALUE : CUDA_OK; }

CUresult cuda_mock_driver_version(int *version) { return *version = VERSION, CUDA_OK; }

CUresult cuda_mock_error_name(CUresult r, const char **text) {
  static const struct {
    CUresult r;
    const char *name;
  } names[] = {{CUDA_OK, "CUDA_SUCCESS"},
               {CUDA_INVALID_VALUE, "CUDA_ERROR_INVALID_VALUE"},
               {CUDA_OUT_OF_MEMORY, "CUDA_ERROR_OUT_OF_MEMORY"},
               {CUDA_NO_DEVICE, "CUDA_ERROR_NO_DEVICE"},
               {CUDA_ILLEGAL_ADDRESS, "CUDA_ERROR_ILLEGAL_ADDRESS"},
               {CUDA_LAUNCH_FAILED, "CUDA_ERROR_LAUNCH_FAILED"}};

  for (size_t i = 0; i < TG_COUNT(names); i++)
    if (names[i].r == r) return *text = names[i].name, CUDA_OK;
  return CUDA_INVALID_VALUE;
}

CUresult cuda_mock_error_text(CUresult r, const char **text) {
  *text = r == cuda_mock.broken && r ? cuda_mock.why.msg : "";
  return CUDA_OK;
}

CUresult cuda_mock_device_count(int *n) { return *n = GPUS, CUDA_OK; }

CUresult cuda_mock_device_get(CUdevice *d, int index) {
  return *d = index, index >= 0 && index < GPUS ? CUDA_OK : CUDA_INVALID_VALUE;
}

CUresult cuda_mock_device_name(char *name, int room, CUdevice d) {
  return snprintf(name, (size_t)room, "emulated GPU %d", d), CUDA_OK;
}

/* Describes the GPU for which plans are made if there is none (target_cuda). */
CUresult cuda_mock_device_attribute(int *value, int attribute, CUdevice d) {
  const Target *t = &target_cuda;

  enum { BUS_BITS = 5120 };

  (void)d;
  double bytes_s = t->bytes_us[LEVEL_MEMORY] * t->streams * 1e6;
  switch (attribute) {
  case CUDA_BLOCK_THREADS: *value = t->most.block; break;
  case CUDA_BLOCK_X:
  case CUDA_BLOCK_X + 1:
  case CUDA_BLOCK_X + 2: *value = t->most.threads[attribute - CUDA_BLOCK_X]; break;
  case CUDA_GRID_X:
  case CUDA_GRID_X + 1:
  case CUDA_GRID_X + 2: *value = (int)t->most.blocks[attribute - CUDA_GRID_X]; break;
  case CUDA_SHARED_OPTIN: *value = (int)t->local_most; break;
  case CUDA_SHARED_PER_BLOCK: *value = (int)t->local_bytes; break;
  case CUDA_CLOCK_KHZ: *value = (int)(t->mhz * 1000); break;
  case CUDA_MULTIPROCESSORS: *value = t->cores; break;
  case CUDA_MEMORY_KHZ: *value = (int)(bytes_s / 2 / (BUS_BITS / 8) / 1000); break;
  case CUDA_MEMORY_BITS: *value = BUS_BITS; break;
  case CUDA_L2_BYTES: *value = (int)t->cache[LEVEL_L3]; break;
  case CUDA_ARCH_MAJOR: *value = ARCH / 10; break;
  case CUDA_ARCH_MINOR: *value = ARCH % 10; break;
  default: return CUDA_INVALID_VALUE;
  }
  return CUDA_OK;
}

CUresult cuda_mock_context_retain(CUcontext *c, CUdevice d) {
  if (!cuda_mock.emu[d] && !(cuda_mock.emu[d] = emu_new(&cuda_mock.mem, &tg_os_default)))
    return CUDA_OUT_OF_MEMORY;
  emu_order(cuda_mock.emu[d], cuda_mock.env.emulate > 1 ? (uint64_t)cuda_mock.env.emulate - 1 : 0);
  *c = &cuda_mock.context[d];
  (*c)->device = d;
  cuda_mock.counts.contexts += !(*c)->refs++;
  return CUDA_OK;
}

/* The driver frees what its user did not free. */
static void blocks_left(int device) {
  for (MockBlock **b = &cuda_mock.blocks; *b;) {
    MockBlock *gone = *b;
    if (gone->device != device) {
      b = &gone->next;
      continue;
    }
    *b = gone->next;
    mock_drop(gone);
  }
}

CUresult cuda_mock_context_release(CUdevice d) {
  CUcontext c = &cuda_mock.context[d];
  if (!c->refs) return CUDA_INVALID_VALUE;
  if (--c->refs) return CUDA_OK;
  cuda_mock.counts.contexts--;
  blocks_left(d), mock_functions_left(NULL, d);
  emu_free(cuda_mock.emu[d]);
  cuda_mock.emu[d] = NULL;
  bool any = false;
  for (int i = 0; i < GPUS; i++)
    any |= cuda_mock.context[i].refs > 0;
  if (!any) {
    cuda_mock.broken = CUDA_OK;
    cuda_mock.why = (TgError){0};
  }
  return CUDA_OK;
}

CUresult cuda_mock_context_set(CUcontext c) { return cuda_mock_now = c, CUDA_OK; }

/* GPUs 0 and 1 can read each other's memory, and so can 2 and 3. */
CUresult cuda_mock_peer_can(int *can, CUdevice d, CUdevice peer) {
  return *can = d != peer && d / 2 == peer / 2, CUDA_OK;
}

CUresult cuda_mock_peer_enable(CUcontext peer, unsigned flags) {
  return peer && !flags ? CUDA_OK : CUDA_INVALID_VALUE;
}

/* ---- memory */
CUresult cuda_mock_memory_info(size_t *unused, size_t *total) {
  *unused = *total = GPU_BYTES;
  for (const MockBlock *b = cuda_mock.blocks; b; b = b->next)
    if (cuda_mock_now && b->device == cuda_mock_now->device) *unused -= TG_MIN(*unused, b->nbytes);
  return CUDA_OK;
}

CUresult cuda_mock_memory_alloc(CUdeviceptr *p, size_t nbytes) {
  size_t unused, total;
  void *at = NULL;
  if (cuda_mock.broken) return cuda_mock.broken;
  if (!cuda_mock_now || !nbytes) return CUDA_INVALID_VALUE;
  cuda_mock_memory_info(&unused, &total);
  MockBlock *b = nbytes <= unused ? mock_take(sizeof *b) : NULL;
  TgError why = {0};
  if (!b || emu_alloc(cuda_mock.emu[cuda_mock_now->device], nbytes, &why, &at)) {
    mock_drop(b);
    return CUDA_OUT_OF_MEMORY;
  }
  *b = (MockBlock){at, nbytes, cuda_mock_now->device, cuda_mock.blocks};
  cuda_mock.blocks = b;
  cuda_mock.counts.blocks++;
  *p = (uintptr_t)at;
  return CUDA_OK;
}

/* A real driver may or may not wait here for work that uses the memory, so nobody may rely on it. */
CUresult cuda_mock_memory_free(CUdeviceptr p) {
  for (MockBlock **b = &cuda_mock.blocks; *b; b = &(*b)->next) {
    if ((uintptr_t)(*b)->at != p) continue;
    MockBlock *gone = *b;
    if (mock_in_use(gone->at, gone->nbytes))
      mock_misused("memory is freed while what was given to a stream uses it");
    TgError why = {0};
    emu_release(cuda_mock.emu[gone->device], gone->at, &why);
    *b = gone->next;
    mock_drop(gone);
    cuda_mock.counts.blocks--;
    return cuda_mock.broken;
  }
  return mock_misused("what is freed is no memory of the GPU, or was freed before");
}

CUresult cuda_mock_host_alloc(void **p, size_t nbytes, unsigned flags) {
  Pinned *host = mock_take(sizeof *host);
  char *at = host ? mock_take(nbytes) : NULL;
  if (!at || flags) {
    mock_drop(host), mock_drop(at);
    return flags ? CUDA_INVALID_VALUE : CUDA_OUT_OF_MEMORY;
  }
  *host = (Pinned){at, nbytes, cuda_mock.pinned};
  cuda_mock.pinned = host;
  cuda_mock.counts.pinned++;
  *p = at;
  return CUDA_OK;
}

CUresult cuda_mock_host_free(void *p) {
  for (Pinned **h = &cuda_mock.pinned; *h; h = &(*h)->next) {
    if ((*h)->at != p) continue;
    Pinned *gone = *h;
    if (mock_in_use(gone->at, gone->nbytes))
      mock_misused("host memory is freed while a copy that was given uses it");
    *h = gone->next;
    mock_drop(gone->at), mock_drop(gone);
    cuda_mock.counts.pinned--;
    return cuda_mock.broken;
  }
  return CUDA_INVALID_VALUE;
}

static bool is_pinned(const void *p, size_t nbytes) {
  for (const Pinned *h = cuda_mock.pinned; h; h = h->next)
    if ((const char *)p >= h->at && (const char *)p + nbytes <= h->at + h->nbytes) return true;
  return false;
}

CUresult cuda_mock_copy_in(CUdeviceptr to, const void *from, size_t nbytes, CUstream s) {
  Op op = {.kind = OP_IN, .to = (void *)(uintptr_t)to, .from = from, .nbytes = nbytes};
  if (!s) return CUDA_INVALID_VALUE;
  op.to_device = s->device;
  /* the caller may change it as soon as the call returns */
  if (!is_pinned(from, nbytes)) {
    if (!(op.own = mock_take(nbytes))) return CUDA_OUT_OF_MEMORY;
    memcpy(op.own, from, nbytes);
  }
  return mock_op_given(s, op);
}

CUresult cuda_mock_copy_out(void *to, CUdeviceptr from, size_t nbytes, CUstream s) {
  Op op = {.kind = OP_OUT, .to = to, .from = (void *)(uintptr_t)from, .nbytes = nbytes};
  if (!s) return CUDA_INVALID_VALUE;
  op.from_device = s->device;
  CUresult r = mock_op_given(s, op);
  return r || is_pinned(to, nbytes) ? r : mock_stream_done(s);
}

CUresult cuda_mock_copy(CUdeviceptr to, CUdeviceptr from, size_t nbytes, CUstream s) {
  Op op = {.kind = OP_COPY, .to = (void *)(uintptr_t)to, .from = (void *)(uintptr_t)from, .nbytes = nbytes};
  if (!s) return CUDA_INVALID_VALUE;
  op.to_device = op.from_device = s->device;
  return mock_op_given(s, op);
}

CUresult cuda_mock_clear(CUdeviceptr to, unsigned char byte, size_t nbytes, CUstream s) {
  Op op = {.kind = OP_CLEAR, .to = (void *)(uintptr_t)to, .nbytes = nbytes, .number = byte};
  if (!s) return CUDA_INVALID_VALUE;
  op.to_device = s->device;
  return mock_op_given(s, op);
}

CUresult cuda_mock_copy_peer(CUdeviceptr to, CUcontext at, CUdeviceptr from, CUcontext of, size_t nbytes,
                             CUstream s) {
  Op op = {.kind = OP_COPY, .to = (void *)(uintptr_t)to, .from = (void *)(uintptr_t)from, .nbytes = nbytes};
  op.to_device = at->device;
  op.from_device = of->device;
  return mock_op_given(s, op);
}

/* ---- the compiler */
enum { OUT_OF_MEMORY = 1, INVALID_INPUT = 3, COMPILATION = 6 }; /* nvrtcResult */

static char *text_taken(const char *text) {
  char *own = mock_take(strlen(text));
  if (own) memcpy(own, text, strlen(text) + 1);
  return own;
}

static TgStatus compiler_known(TgError *err) {
  if (cuda_mock.identified) return TG_OK;
  TgStatus st = compiler_find(&tg_os_default, &cuda_mock.env, err, &cuda_mock.cc);
  if (!st) st = compiler_identify(&cuda_mock.mem, &tg_os_default, err, &cuda_mock.cc, cuda_mock.env.cc_limit);
  cuda_mock.identified = !st;
  return st;
}

nvrtcResult cuda_mock_compiler_version(int *major, int *minor) {
  return *major = VERSION / 1000, *minor = VERSION % 1000 / 10, CUDA_OK;
}

nvrtcResult cuda_mock_compiler_narchs(int *n) { return *n = 1, CUDA_OK; }

nvrtcResult cuda_mock_compiler_archs(int *archs) { return *archs = ARCH, CUDA_OK; }

nvrtcResult cuda_mock_unit_create(nvrtcProgram *p, const char *text, const char *name, int nheader,
                                  const char *const *headers, const char *const *names) {
  (void)name, (void)headers, (void)names;
  if (nheader) return INVALID_INPUT;
  if (!(*p = mock_take(sizeof **p))) return OUT_OF_MEMORY;
  if (!((*p)->text = text_taken(text))) {
    mock_drop(*p);
    return OUT_OF_MEMORY;
  }
  cuda_mock.counts.units++;
  return CUDA_OK;
}

nvrtcResult cuda_mock_unit_destroy(nvrtcProgram *p) {
  mock_drop((*p)->text), mock_drop((*p)->log), mock_drop((*p)->object.at), mock_drop(*p);
  *p = NULL;
  cuda_mock.counts.units--;
  return CUDA_OK;
}

/* A text must be compiled with exactly these options, because others change results. */
static const char *const wanted[] = {"--gpu-architecture=sm_" ARCH_TEXT "a", "--fmad=false", "--ftz=false",
                                     "--prec-div=true", "--prec-sqrt=true"};

static bool options_are_wanted(int n, const char *const *options) {
  bool same = n == TG_COUNT(wanted);
  for (int i = 0; same && i < n; i++)
    same = !strcmp(options[i], wanted[i]);
  return same;
}

/* Checks that NVIDIA's compiler accepts the text for an architecture without any message. */
static TgStatus taken_by_nvrtc(const char *text, const char *arch, TgError *err) {
  const CudaApi *real = &cuda_mock.real;
  nvrtcProgram unit = NULL;
  char option[64], *log = NULL;
  size_t n = 0;
  snprintf(option, sizeof option, "--gpu-architecture=sm_%.20s", arch);
  const char *options[TG_COUNT(wanted)];
  memcpy(options, wanted, sizeof options);
  options[0] = option;
  if (real->unit_create(&unit, text, "kernels.cu", 0, NULL, NULL)) return TG_ERR_DEVICE;
  bool ok = !real->unit_compile(unit, TG_COUNT(options), options);
  if (!real->unit_log_size(unit, &n) && (log = mock_take(n)) != NULL) real->unit_log(unit, log);
  TgStatus st = TG_OK;
  if (!ok || (log && strstr(log, "warning")))
    st = error_set(err, TG_ERR_COMPILE, "NVRTC for sm_%.20s: %.200s", arch, log ? log : "it fails");
  mock_drop(log);
  real->unit_destroy(&unit);
  return st;
}

/* Whether the text uses matrix units that GPUs of this architecture do not have. */
static bool too_new(const char *text, const char *arch) {
  char call[64];
  for (int i = 0; i < MATRIX_COUNT; i++) {
    const MatrixShape *s = &matrix_shapes[i];
    snprintf(call, sizeof call, matrix_in_shared(s) ? "tg_mma_%s(tg_" : "tg_mma_%s(&", s->name);
    bool none = s->since > atoi(arch) || (s->until && (s->until < atoi(arch) || !strchr(arch, 'a')));
    if (none && strstr(text, call)) return true;
  }
  return false;
}

static TgStatus taken_for_all(const char *text, TgError *err) {
  char archs[sizeof cuda_mock.env.emulate_archs], *rest = archs, *arch;
  memcpy(archs, cuda_mock.env.emulate_archs, sizeof archs);
  TgStatus st = TG_OK;
  if (*archs && !cuda_mock.nvrtc)
    st = nvrtc_load(&tg_os_default, err, NVRTC_ANY, &cuda_mock.nvrtc, &cuda_mock.real);
  while (!st && (arch = strtok_r(rest, " ", &rest)))
    st = too_new(text, arch) ? TG_OK : taken_by_nvrtc(text, arch, err);
  return st;
}

nvrtcResult cuda_mock_unit_compile(nvrtcProgram p, int noption, const char *const *options) {
  TgError err = {0};
  Blob object = {0};
  if (!options_are_wanted(noption, options)) return INVALID_INPUT;
  cuda_mock.counts.compiles++;
  TgStatus st = compiler_known(&err);
  if (!st)
    st = emu_compile(&cuda_mock.mem, &tg_os_default, &err, &cuda_mock.cc, &emu_dialect_cuda, p->text,
                     cuda_mock.env.cc_limit, &object);
  if (!st && !(p->object.at = mock_take(object.nbytes))) st = error_set(&err, TG_ERR_NOMEM, "out of memory");
  if (!st) memcpy(p->object.at, object.at, p->object.nbytes = object.nbytes);
  mem_free(&cuda_mock.mem, object.at);
  if (!st) st = taken_for_all(p->text, &err);
  p->log = text_taken(st ? err.msg : "");
  return st ? COMPILATION : CUDA_OK;
}

static const char *log_of(nvrtcProgram p) { return p->log ? p->log : ""; }

nvrtcResult cuda_mock_unit_log_size(nvrtcProgram p, size_t *nbytes) {
  return *nbytes = strlen(log_of(p)) + 1, CUDA_OK;
}

nvrtcResult cuda_mock_unit_log(nvrtcProgram p, char *text) {
  memcpy(text, log_of(p), strlen(log_of(p)) + 1);
  return CUDA_OK;
}

/* An image begins with its size, because the driver is only told its address. */
nvrtcResult cuda_mock_unit_cubin_size(nvrtcProgram p, size_t *nbytes) {
  return *nbytes = sizeof(size_t) + p->object.nbytes, CUDA_OK;
}

nvrtcResult cuda_mock_unit_cubin(nvrtcProgram p, char *image) {
  memcpy(image, &p->object.nbytes, sizeof p->object.nbytes);
  memcpy(image + sizeof p->object.nbytes, p->object.at, p->object.nbytes);
  return CUDA_OK;
}

nvrtcResult cuda_mock_unit_ptx_size(nvrtcProgram p, size_t *nbytes) {
  return (void)p, *nbytes = 0, INVALID_INPUT;
}

nvrtcResult cuda_mock_unit_ptx(nvrtcProgram p, char *image) { return (void)p, (void)image, INVALID_INPUT; }

/* ---- the table. There is one caller at a time. A call that is made to fail is not done. */
static bool fails_now(const char *name) {
  cuda_mock.counts.calls++;
  if (!cuda_mock.fails_in || (*cuda_mock.fails && strcmp(cuda_mock.fails, name))) return false;
  return --cuda_mock.fails_in == 0;
}

#define CUDA(library, result, name, symbol, params, args)                                                    \
  static result locked_##name params {                                                                       \
    pthread_mutex_lock(&lock);                                                                               \
    result given_back = fails_now(#name) ? cuda_mock.fails_with : cuda_mock_##name args;                     \
    pthread_mutex_unlock(&lock);                                                                             \
    return given_back;                                                                                       \
  }
#include "runtime/cuda_api.def"
#undef CUDA

static const CudaApi table = {
#define CUDA(library, result, name, symbol, params, args) .name = locked_##name,
#include "runtime/cuda_api.def"
#undef CUDA
};

TgStatus cuda_mock_open(const TgEnv *env, TgError *err, CudaApi *api) {
  TgStatus st = TG_OK;
  pthread_mutex_lock(&lock);
  if (!cuda_mock.opened) {
    /* cuda_mock_fail may be called before the mock is opened */
    uint64_t fails_in = cuda_mock.fails_in;
    CUresult with = cuda_mock.fails_with;
    char fails[sizeof cuda_mock.fails];
    memcpy(fails, cuda_mock.fails, sizeof fails);
    cuda_mock = (Mock){.env = *env, .seed = (uint64_t)env->emulate, .fails_in = fails_in, .fails_with = with};
    memcpy(cuda_mock.fails, fails, sizeof fails);
    st = compiler_known(err);
  }
  if (!st) cuda_mock.opened++;
  pthread_mutex_unlock(&lock);
  *api = table;
  return st;
}

void cuda_mock_close(void) {
  pthread_mutex_lock(&lock);
  if (cuda_mock.opened && !--cuda_mock.opened) {
    for (int d = 0; d < GPUS; d++)
      if (cuda_mock.emu[d]) {
        blocks_left(d);
        mock_functions_left(NULL, d);
        emu_free(cuda_mock.emu[d]);
        cuda_mock.emu[d] = NULL;
      }
    while (cuda_mock.taken)
      mock_drop(cuda_mock.taken + 1);
    cuda_mock.sent = NULL;
    if (cuda_mock.nvrtc) tg_os_default.library_close(cuda_mock.nvrtc);
    cuda_mock.nvrtc = NULL;
  }
  pthread_mutex_unlock(&lock);
}

const char *cuda_mock_ident(void) {
  const Compiler *c = &cuda_mock.cc;
  snprintf(cuda_mock.ident, sizeof cuda_mock.ident, "%.250s %.250s %.200s %.64s %016llx", c->path, c->ident,
           emu_flags(), cuda_mock.env.emulate_archs,
           (unsigned long long)hash_bytes(1, emu_dialect_cuda.prelude, strlen(emu_dialect_cuda.prelude)));
  return cuda_mock.ident;
}

CudaMockCounts cuda_mock_counts(void) { return cuda_mock.counts; }

bool cuda_mock_fail(const char *name, uint64_t nth, CUresult r) {
  static const char *const names[] = {
#define CUDA(library, result, name, symbol, params, args) #name,
#include "runtime/cuda_api.def"
#undef CUDA
  };

  bool known = !name;
  for (size_t i = 0; i < TG_COUNT(names) && !known; i++)
    known = !strcmp(names[i], name);
  pthread_mutex_lock(&lock);
  snprintf(cuda_mock.fails, sizeof cuda_mock.fails, "%s", name ? name : "");
  cuda_mock.fails_in = known ? nth : 0;
  cuda_mock.fails_with = r;
  pthread_mutex_unlock(&lock);
  return known;
}
