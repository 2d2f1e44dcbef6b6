/* metal_mock.c: a mock of Apple's runtime and frameworks: objects, messages, devices, memory, libraries. In:
 * the messages of metal_api.def. Out: the same effects, by the emulator (emulate.h) with its checks.
 * Committed work is run as late as possible (metal_mock_queue.c). Misuse is recorded: a message that an
 * object does not understand, or that comes after its end; an object that is left to a pool when there is
 * none; an encoder that is used at the wrong time. Any message can be made to fail. While a thread has a
 * pool, no other thread can use the mock. */
#define _GNU_SOURCE
#include "emu/metal_mock.h"
#include "base/os.h"
#include <pthread.h>
#include <stdio.h>
#include <string.h>

Mock metal_mock;

static const uint64_t magic = 0x6f626a6563743031u;

/* ---- misuse */
void metal_misused(const char *fmt, ...) {
  char text[300];
  va_list args;
  va_start(args, fmt);
  vsnprintf(text, sizeof text, fmt, args);
  va_end(args);
  metal_mock.counts.misuses++;
  if (!metal_mock.misuse.status) error_set(&metal_mock.misuse, TG_ERR_DEVICE, "%s", text);
}

static const char *const kind_names[] = {[ANY_KIND] = "nothing",
                                         [A_CLASS] = "a class",
                                         [A_STRING] = "an NSString",
                                         [A_LIST] = "an NSArray",
                                         [AN_ERROR] = "an NSError",
                                         [A_DEVICE] = "an MTLDevice",
                                         [A_QUEUE] = "an MTLCommandQueue",
                                         [AN_EVENT] = "an MTLSharedEvent",
                                         [A_BUFFER] = "an MTLBuffer",
                                         [OPTIONS] = "MTLCompileOptions",
                                         [A_LIBRARY] = "an MTLLibrary",
                                         [A_FUNCTION] = "an MTLFunction",
                                         [A_PIPELINE_DESCRIPTOR] = "an MTLComputePipelineDescriptor",
                                         [A_PIPELINE] = "an MTLComputePipelineState",
                                         [A_COMMAND_BUFFER] = "an MTLCommandBuffer",
                                         [AN_ENCODER] = "an MTLComputeCommandEncoder",
                                         [A_BLIT_ENCODER] = "an MTLBlitCommandEncoder",
                                         [AN_INDIRECT_DESCRIPTOR] = "an MTLIndirectCommandBufferDescriptor",
                                         [AN_INDIRECT] = "an MTLIndirectCommandBuffer",
                                         [A_COMMAND] = "an MTLIndirectComputeCommand"};

static const char *const selectors[] = {
#define METAL(n, result, name, selector, ...) selector,
#include "runtime/metal_api.def"
#undef METAL
};

/* ---- objects */
enum { MOST_DEAD = 4096 };

static void list_leave(Object *o, Object **first, Object **last) {
  *(o->before ? &o->before->after : first) = o->after;
  if (o->after)
    o->after->before = o->before;
  else if (last)
    *last = o->before;
  o->before = o->after = NULL;
}

void *mock_new(MockKind kind, size_t nbytes) {
  Object *o = mem_alloc(&metal_mock.mem, nbytes);
  if (!o) return NULL;
  o->magic = magic;
  o->kind = kind;
  o->refs = 1;
  if ((o->after = metal_mock.live)) o->after->before = o;
  metal_mock.live = o;
  metal_mock.counts.objects++;
  return o;
}

static void object_gone(Object *o) {
  o->magic = 0;
  mem_free(&metal_mock.mem, o);
}

/* The objects that died first are freed if there are too many. */
static void object_dies(Object *o) {
  Mock *m = &metal_mock;
  list_leave(o, &m->live, NULL);
  o->dead = true;
  m->counts.objects--;
  if ((o->before = m->dead_last))
    o->before->after = o;
  else
    m->dead_first = o;
  m->dead_last = o;
  if (++m->ndead <= MOST_DEAD) return;
  Object *oldest = m->dead_first;
  list_leave(oldest, &m->dead_first, &m->dead_last);
  m->ndead--;
  object_gone(oldest);
}

static void buffer_end(MockBuffer *b) {
  TgError why = {0};
  if (b->of) {
    mock_let_go(b->of);
    return;
  }
  b->device->allocated -= b->nbytes;
  metal_mock.counts.buffers--;
  emu_release(b->device->emu, b->at, &why);
}

static void object_end(Object *o) {
  switch (o->kind) {
  case A_BUFFER: buffer_end((MockBuffer *)o); break;
  case A_LIBRARY: emu_unload(((MockLibrary *)o)->device->emu, ((MockLibrary *)o)->module); break;
  case A_FUNCTION: mock_let_go(((MockFunction *)o)->library); break;
  case A_PIPELINE:
  case A_PIPELINE_DESCRIPTOR: mock_let_go(((MockPipeline *)o)->function); break;
  default: mock_object_end(o);
  }
}

/* Devices and classes live as long as the mock, a command as long as what it is part of. */
static bool is_lasting(const Object *o) {
  return o->kind == A_CLASS || o->kind == A_DEVICE || o->kind == A_COMMAND;
}

void mock_hold(void *object) {
  Object *o = object;
  if (o) o->refs++;
}

void mock_let_go(void *object) {
  Object *o = object;
  if (!o) return;
  if (o->refs < 1 || (is_lasting(o) && o->refs == 1)) {
    metal_misused("%s is released more often than retained", kind_names[o->kind]);
    return;
  }
  if (--o->refs) return;
  object_end(o);
  object_dies(o);
}

void *mock_pooled(void *object) {
  if (!object) return NULL;
  if (!metal_mock.pools.len)
    metal_misused("%s is left to a pool where there is none", kind_names[((Object *)object)->kind]);
  else if (!vec_push(&metal_mock.mem, &metal_mock.pool, object)) {
    mock_let_go(object);
    return NULL;
  }
  return object;
}

/* There is one mock for the process, so only one thread at a time may have pools. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static _Thread_local int held; /* number of times that this thread holds the lock */

static void enter(void) {
  if (!held++) pthread_mutex_lock(&lock);
}

static void leave(void) {
  if (held && !--held) pthread_mutex_unlock(&lock);
}

static void *pool_push(void) {
  Mock *m = &metal_mock;
  enter();
  if (!vec_push(&m->mem, &m->pools, m->pool.len)) return NULL;
  m->counts.pools++;
  return (void *)(uintptr_t)m->pools.len;
}

static void pool_pop(void *pool) {
  Mock *m = &metal_mock;
  if (!pool || (uintptr_t)pool != m->pools.len) {
    metal_misused("a pool ends that is not the innermost one");
    leave();
    return;
  }
  size_t begin = m->pools.at[--m->pools.len];
  m->counts.pools--;
  while (m->pool.len > begin)
    mock_let_go(m->pool.at[--m->pool.len]);
  leave();
}

void *mock_of_kind(MetalId object, MockKind kind, const char *what) {
  if (!object) return NULL;
  if (object->magic != magic || object->dead)
    metal_misused("%s: an object that is not there any more", what);
  else if (object->kind != kind)
    metal_misused("%s: %s where %s is due", what, kind_names[object->kind], kind_names[kind]);
  else
    return object;
  return NULL;
}

MockText *mock_text(MockKind kind, const char *text) {
  size_t n = strlen(text) + 1;
  MockText *t = mock_new(kind, sizeof *t + n);
  if (t) memcpy(t->text, text, n);
  return mock_pooled(t);
}

/* ---- strings, lists */
static MetalId any_retain(Object *o, MetalSelector s) { return (void)s, mock_hold(o), o; }

static void any_release(Object *o, MetalSelector s) { (void)s, mock_let_go(o); }

static const Method *method_of(MockKind kind, MetalMessage message);

static MetalMessage message_of(MetalSelector s) { return (MetalMessage)((uintptr_t)s - 1); }

static MetalBool any_responds(Object *o, MetalSelector s, MetalSelector asked) {
  return (void)s, method_of(o->kind, message_of(asked)) != NULL;
}

static MetalId string_of(MockClass *c, MetalSelector s, const char *text) {
  return (void)c, (void)s, (MetalId)mock_text(A_STRING, text);
}

static const char *string_text(MockText *t, MetalSelector s) { return (void)s, t->text; }

static MetalId error_text(MockText *t, MetalSelector s) {
  return (void)s, (MetalId)mock_text(A_STRING, t->text);
}

static MetalUint list_count(MockList *l, MetalSelector s) { return (void)s, (MetalUint)l->n; }

static MetalId list_at(MockList *l, MetalSelector s, MetalUint i) {
  (void)s;
  if (i < (MetalUint)l->n) return &l->at[i]->object;
  metal_misused("objectAtIndex: %lu of %d", i, l->n);
  return NULL;
}

/* ---- classes */
static const size_t made_size[A_COMMAND + 1] = {[OPTIONS] = sizeof(MockOptions),
                                                [A_PIPELINE_DESCRIPTOR] = sizeof(MockPipeline),
                                                [AN_INDIRECT_DESCRIPTOR] = sizeof(MockIndirectDescriptor)};

static MockClass classes[] = {
    {.name = "NSString", .makes = A_STRING},
    {.name = "MTLCompileOptions", .makes = OPTIONS},
    {.name = "MTLComputePipelineDescriptor", .makes = A_PIPELINE_DESCRIPTOR},
    {.name = "MTLIndirectCommandBufferDescriptor", .makes = AN_INDIRECT_DESCRIPTOR}};

static MetalId class_named(const char *name) {
  for (size_t i = 0; i < TG_COUNT(classes); i++)
    if (!strcmp(classes[i].name, name)) return &classes[i].object;
  return NULL;
}

static MetalId class_alloc(MockClass *c, MetalSelector s) {
  (void)s;
  if (made_size[c->makes]) return mock_new(c->makes, made_size[c->makes]);
  metal_misused("alloc of %s", c->name);
  return NULL;
}

static MetalId object_init(Object *o, MetalSelector s) { return (void)s, o; }

static MetalSelector selector_named(const char *name) {
  for (size_t i = 0; i < TG_COUNT(selectors); i++)
    if (!strcmp(selectors[i], name)) return (MetalSelector)(i + 1);
  return NULL;
}

/* ---- the device */
static MetalId device_name(MockDevice *d, MetalSelector s) {
  char text[32];
  (void)s;
  snprintf(text, sizeof text, "emulated GPU %d", d->index);
  return (MetalId)mock_text(A_STRING, text);
}

static MetalBool device_family(MockDevice *d, MetalSelector s, MetalInt family) {
  return (void)d, (void)s, family == METAL_FAMILY_3 || family == METAL_FAMILY_APPLE7;
}

static MetalUint device_local(MockDevice *d, MetalSelector s) {
  return (void)d, (void)s, (MetalUint)target_metal.local_bytes;
}

static const uint64_t working_set = (uint64_t)16 << 30;

static uint64_t device_working_set(MockDevice *d, MetalSelector s) { return (void)d, (void)s, working_set; }

static MetalUint device_allocated(MockDevice *d, MetalSelector s) { return (void)s, (MetalUint)d->allocated; }

/* Returns the emulator of a device, which is created when it is first needed. */
static Emu *emu_of(MockDevice *d) {
  const TgEnv *env = &metal_mock.env;
  if (d->emu || !(d->emu = emu_new(&metal_mock.mem, &tg_os_default))) return d->emu;
  emu_order(d->emu, env->emulate > 1 ? (uint64_t)env->emulate - 1 : 0);
  return d->emu;
}

static MetalId device_event(MockDevice *d, MetalSelector s) {
  (void)d, (void)s;
  return mock_new(AN_EVENT, sizeof(MockEvent));
}

static MetalId device_buffer(MockDevice *d, MetalSelector s, MetalUint nbytes, MetalUint options) {
  TgError why = {0};
  void *at = NULL;
  (void)s;
  if (!nbytes || (options != METAL_SHARED && options != METAL_PRIVATE)) {
    metal_misused("newBufferWithLength: %lu bytes, options %lu", nbytes, options);
    return NULL;
  }
  if (!emu_of(d) || nbytes > working_set - d->allocated || emu_alloc(d->emu, nbytes, &why, &at)) return NULL;
  MockBuffer *b = mock_new(A_BUFFER, sizeof *b);
  /* the host may write shared memory unnoticed, so it counts as written */
  bool is_private = options == METAL_PRIVATE;
  if (!b || (!is_private && emu_fill(d->emu, at, 0, nbytes, &why))) {
    emu_release(d->emu, at, &why);
    return NULL;
  }
  b->device = d;
  b->at = at;
  b->nbytes = nbytes;
  b->is_private = is_private;
  d->allocated += nbytes;
  metal_mock.counts.buffers++;
  return &b->object;
}

/* Devices 0 and 1 are peers, and so are 2 and 3. */
static uint64_t device_peers(MockDevice *d, MetalSelector s) { return (void)s, 1 + (uint64_t)d->index / 2; }

static MetalId buffer_view(MockBuffer *b, MetalSelector s, MetalId device) {
  MockDevice *d = mock_of_kind(device, A_DEVICE, "newRemoteBufferViewForDevice");
  if (!d) return NULL;
  if (b->of || !b->is_private || d == b->device || device_peers(d, s) != device_peers(b->device, s)) {
    metal_misused("newRemoteBufferViewForDevice: of no private buffer of another GPU that is a peer");
    return NULL;
  }
  MockBuffer *v = mock_new(A_BUFFER, sizeof *v);
  if (!v) return NULL;
  mock_hold(b);
  v->device = d;
  v->of = b;
  v->at = b->at;
  v->nbytes = b->nbytes;
  v->is_private = true;
  return &v->object;
}

static void *buffer_contents(MockBuffer *b, MetalSelector s) {
  (void)s;
  if (!b->is_private) return b->at;
  metal_misused("contents of a private buffer");
  return NULL;
}

static uint64_t buffer_address(MockBuffer *b, MetalSelector s) { return (void)s, (uintptr_t)b->at; }

/* ---- libraries */
static void options_fast(MockOptions *o, MetalSelector s, MetalBool fast) {
  (void)s;
  o->safe = !fast;
}

static TgStatus compiler_known(TgError *err) {
  Mock *m = &metal_mock;
  if (m->identified) return TG_OK;
  TgStatus st = compiler_find(&tg_os_default, &m->env, err, &m->cc);
  if (!st) st = compiler_identify(&m->mem, &tg_os_default, err, &m->cc, m->env.cc_limit);
  m->identified = !st;
  return st;
}

/* Returns the object of a text, from disk or compiled. The lint checks the text first. */
static TgStatus text_compiled(const char *text, TgError *err, Blob *object) {
  Mock *m = &metal_mock;
  uint8_t key[1][32], digest[32];
  Str all;
  TgStatus st = metal_lint(&m->mem, text, err);
  if (st) return st;
  str_init(&all, &m->mem);
  const char *parts[] = {"stand-in", m->cc.path, m->cc.ident, emu_flags(), emu_dialect_metal.prelude, text};
  for (size_t i = 0; i < TG_COUNT(parts); i++)
    str_putn(&all, parts[i], strlen(parts[i]) + 1);
  sha256(str_text(&all), all.len, key[0]);
  bool known = !all.oom;
  str_free(&all);
  if (known && cache_get(m->cache, key[0], digest, object)) return TG_OK;
  st = compiler_known(err);
  m->counts.compiles++;
  if (!st)
    st = emu_compile(&m->mem, &tg_os_default, err, &m->cc, &emu_dialect_metal, text, m->env.cc_limit, object);
  if (!st && known) cache_put(m->cache, (const uint8_t(*)[32])key, 1, object);
  return st;
}

static MetalId device_library(MockDevice *d, MetalSelector s, MetalId source, MetalId options,
                              MetalId *error) {
  MockText *text = mock_of_kind(source, A_STRING, "newLibraryWithSource");
  MockOptions *o = mock_of_kind(options, OPTIONS, "newLibraryWithSource");
  (void)s;
  TgError why = {0};
  Blob object = {0};
  EmuModule *module = NULL;
  metal_mock.counts.fast_compiles += !o || !o->safe;
  TgStatus st = text ? text_compiled(text->text, &why, &object) : TG_ERR_COMPILE;
  if (!st && !emu_of(d)) st = error_set(&why, TG_ERR_NOMEM, "out of memory");
  if (!st) st = emu_load(d->emu, object.at, object.nbytes, &why, &module);
  mem_free(&metal_mock.mem, object.at);
  MockLibrary *l = st ? NULL : mock_new(A_LIBRARY, sizeof *l);
  if (l) {
    l->device = d;
    l->module = module;
    return &l->object;
  }
  if (module) emu_unload(d->emu, module);
  if (error) *error = (MetalId)mock_text(AN_ERROR, why.msg);
  return NULL;
}

static MetalId library_function(MockLibrary *l, MetalSelector s, MetalId name) {
  MockText *text = mock_of_kind(name, A_STRING, "newFunctionWithName");
  (void)s;
  EmuKernel *k = text ? emu_kernel(l->module, text->text) : NULL;
  MockFunction *f = k ? mock_new(A_FUNCTION, sizeof *f) : NULL;
  if (!f) return NULL;
  mock_hold(l);
  f->library = l;
  f->kernel = k;
  return &f->object;
}

/* ---- pipelines */
static void descriptor_function(MockPipeline *p, MetalSelector s, MetalId function) {
  MockFunction *f = mock_of_kind(function, A_FUNCTION, "setComputeFunction");
  (void)s;
  mock_hold(f), mock_let_go(p->function);
  p->function = f;
}

static void descriptor_threads(MockPipeline *p, MetalSelector s, MetalUint n) {
  (void)s;
  p->most_threads = n;
}

static void descriptor_indirect(MockPipeline *p, MetalSelector s, MetalBool on) {
  (void)s;
  p->indirect = on;
}

enum { MOST_THREADS = 1024 };

static MetalId device_pipeline(MockDevice *d, MetalSelector s, MetalId descriptor, MetalUint options,
                               MetalId *reflection, MetalId *error) {
  MockPipeline *from = mock_of_kind(descriptor, A_PIPELINE_DESCRIPTOR, "newComputePipelineState");
  (void)d, (void)s;
  if (options || reflection) metal_misused("newComputePipelineState: options that nobody asked for");
  bool fits = from && from->function && from->most_threads <= MOST_THREADS &&
              emu_shared_bytes(from->function->kernel) <= (size_t)target_metal.local_bytes;
  MockPipeline *p = fits ? mock_new(A_PIPELINE, sizeof *p) : NULL;
  if (!p) {
    if (error) *error = (MetalId)mock_text(AN_ERROR, "too many threads, or too much threadgroup memory");
    return NULL;
  }
  mock_hold(from->function);
  p->function = from->function;
  p->indirect = from->indirect;
  p->most_threads = from->most_threads ? from->most_threads : MOST_THREADS;
  return &p->object;
}

static MetalUint pipeline_threads(MockPipeline *p, MetalSelector s) { return (void)s, p->most_threads; }

static MetalUint pipeline_warp(MockPipeline *p, MetalSelector s) { return (void)p, (void)s, WARP; }

/* ---- methods */
#define METHOD(kind, message, types, fn)                                                                     \
  { kind, METAL_##message, types, (void (*)(void))(fn) }

static const Method methods[] = {METHOD(ANY_KIND, retain, "@@:", any_retain),
                                 METHOD(ANY_KIND, release, "v@:", any_release),
                                 METHOD(ANY_KIND, responds, "c@::", any_responds),
                                 METHOD(A_CLASS, string, "@@:*", string_of),
                                 METHOD(A_CLASS, alloc_object, "@@:", class_alloc),
                                 METHOD(OPTIONS, init, "@@:", object_init),
                                 METHOD(A_PIPELINE_DESCRIPTOR, init, "@@:", object_init),
                                 METHOD(AN_INDIRECT_DESCRIPTOR, init, "@@:", object_init),
                                 METHOD(A_STRING, text, "*@:", string_text),
                                 METHOD(AN_ERROR, description, "@@:", error_text),
                                 METHOD(A_LIST, count, "Q@:", list_count),
                                 METHOD(A_LIST, at, "@@:Q", list_at),
                                 METHOD(A_DEVICE, name, "@@:", device_name),
                                 METHOD(A_DEVICE, supports_family, "c@:q", device_family),
                                 METHOD(A_DEVICE, most_local, "Q@:", device_local),
                                 METHOD(A_DEVICE, working_set, "Q@:", device_working_set),
                                 METHOD(A_DEVICE, allocated, "Q@:", device_allocated),
                                 METHOD(A_DEVICE, peer_group, "Q@:", device_peers),
                                 METHOD(A_DEVICE, new_event, "@@:", device_event),
                                 METHOD(A_DEVICE, new_buffer, "@@:QQ", device_buffer),
                                 METHOD(A_DEVICE, new_library, "@@:@@^@", device_library),
                                 METHOD(A_DEVICE, new_pipeline, "@@:@Q^@^@", device_pipeline),
                                 METHOD(A_BUFFER, contents, "^v@:", buffer_contents),
                                 METHOD(A_BUFFER, address, "Q@:", buffer_address),
                                 METHOD(A_BUFFER, new_view, "@@:@", buffer_view),
                                 METHOD(OPTIONS, set_fast_math, "v@:c", options_fast),
                                 METHOD(A_LIBRARY, new_function, "@@:@", library_function),
                                 METHOD(A_PIPELINE_DESCRIPTOR, set_function, "v@:@", descriptor_function),
                                 METHOD(A_PIPELINE_DESCRIPTOR, set_most_threads, "v@:Q", descriptor_threads),
                                 METHOD(A_PIPELINE_DESCRIPTOR, set_indirect, "v@:c", descriptor_indirect),
                                 METHOD(A_PIPELINE, most_threads, "Q@:", pipeline_threads),
                                 METHOD(A_PIPELINE, warp, "Q@:", pipeline_warp)};

static const Method *method_among(const Method *m, size_t n, MockKind kind, MetalMessage message) {
  for (size_t i = 0; i < n; i++)
    if (m[i].message == message && (m[i].kind == kind || m[i].kind == ANY_KIND)) return &m[i];
  return NULL;
}

static const Method *method_of(MockKind kind, MetalMessage message) {
  const Method *m = method_among(methods, TG_COUNT(methods), kind, message);
  return m ? m : method_among(mock_queue_methods, mock_queue_nmethod, kind, message);
}

const char *metal_mock_types(MetalMessage message) {
  for (MockKind kind = ANY_KIND; kind <= A_COMMAND; kind++) {
    const Method *m = method_of(kind, message);
    if (m) return m->types;
  }
  return NULL;
}

/* ---- messages. As in the real runtime, a send looks up the method and jumps to it, with every argument
 * where the caller put it. */
#if defined __x86_64__ || defined __aarch64__
#ifdef __MACH__
#define ASM_SYMBOL     "_"
#define ASM_NAME(name) ".text\n.p2align 4\n.globl _" name "\n.private_extern _" name "\n_" name ":\n"
#else
#define ASM_SYMBOL     ""
#define ASM_NAME(name) ".text\n.globl " name "\n.hidden " name "\n.type " name ", %function\n" name ":\n"
#endif

void tg_metal_send(void);
void tg_metal_zero(void);
__attribute__((used, visibility("hidden"))) void *tg_metal_method(Object *o, MetalSelector s);

#ifdef __x86_64__
#define NAME_SEND ASM_NAME("tg_metal_send")
#define NAME_ZERO ASM_NAME("tg_metal_zero")
__asm__(NAME_SEND "  push %rbp\n  mov %rsp, %rbp\n  sub $192, %rsp\n"
                  "  mov %rdi, 0(%rsp)\n  mov %rsi, 8(%rsp)\n  mov %rdx, 16(%rsp)\n  mov %rcx, 24(%rsp)\n"
                  "  mov %r8, 32(%rsp)\n  mov %r9, 40(%rsp)\n  mov %rax, 48(%rsp)\n"
                  "  movups %xmm0, 64(%rsp)\n  movups %xmm1, 80(%rsp)\n  movups %xmm2, 96(%rsp)\n"
                  "  movups %xmm3, 112(%rsp)\n  movups %xmm4, 128(%rsp)\n  movups %xmm5, 144(%rsp)\n"
                  "  movups %xmm6, 160(%rsp)\n  movups %xmm7, 176(%rsp)\n"
                  "  call " ASM_SYMBOL "tg_metal_method\n  mov %rax, %r11\n"
                  "  mov 0(%rsp), %rdi\n  mov 8(%rsp), %rsi\n  mov 16(%rsp), %rdx\n  mov 24(%rsp), %rcx\n"
                  "  mov 32(%rsp), %r8\n  mov 40(%rsp), %r9\n  mov 48(%rsp), %rax\n"
                  "  movups 64(%rsp), %xmm0\n  movups 80(%rsp), %xmm1\n  movups 96(%rsp), %xmm2\n"
                  "  movups 112(%rsp), %xmm3\n  movups 128(%rsp), %xmm4\n  movups 144(%rsp), %xmm5\n"
                  "  movups 160(%rsp), %xmm6\n  movups 176(%rsp), %xmm7\n"
                  "  leave\n  jmp *%r11\n");
__asm__(NAME_ZERO "  xor %eax, %eax\n  xorps %xmm0, %xmm0\n  ret\n");
#else
#define NAME_SEND ASM_NAME("tg_metal_send")
#define NAME_ZERO ASM_NAME("tg_metal_zero")
__asm__(NAME_SEND "  stp x29, x30, [sp, #-224]!\n  mov x29, sp\n"
                  "  stp x0, x1, [sp, #16]\n  stp x2, x3, [sp, #32]\n  stp x4, x5, [sp, #48]\n"
                  "  stp x6, x7, [sp, #64]\n  str x8, [sp, #80]\n"
                  "  stp q0, q1, [sp, #96]\n  stp q2, q3, [sp, #128]\n  stp q4, q5, [sp, #160]\n"
                  "  stp q6, q7, [sp, #192]\n"
                  "  bl " ASM_SYMBOL "tg_metal_method\n  mov x16, x0\n"
                  "  ldp x0, x1, [sp, #16]\n  ldp x2, x3, [sp, #32]\n  ldp x4, x5, [sp, #48]\n"
                  "  ldp x6, x7, [sp, #64]\n  ldr x8, [sp, #80]\n"
                  "  ldp q0, q1, [sp, #96]\n  ldp q2, q3, [sp, #128]\n  ldp q4, q5, [sp, #160]\n"
                  "  ldp q6, q7, [sp, #192]\n"
                  "  ldp x29, x30, [sp], #224\n  br x16\n");
__asm__(NAME_ZERO "  mov x0, #0\n  fmov d0, xzr\n  ret\n");
#endif

static const bool answers_nothing[] = {
#define METAL(n, result, name, selector, ...) _Generic((result *)0, void * : true, default : false),
#include "runtime/metal_api.def"
#undef METAL
};

/* Whether this message fails now. A message without a result makes its command buffer fail instead, which
 * then ends with an error. */
static bool fails_now(Object *o, MetalMessage message) {
  Mock *m = &metal_mock;
  MockCommandBuffer *b = answers_nothing[message] ? mock_buffer_of(o) : NULL;
  bool can = message != METAL_retain && message != METAL_release && message != METAL_init &&
             message != METAL_wait && message != METAL_end_encoding && (!answers_nothing[message] || b);
  m->counts.messages += can;
  if (!can || !m->fails_in || (!m->any_fails && m->fails != message) || --m->fails_in) return false;
  if (b) b->fails = true;
  return !b;
}

static void *address_of(void (*fn)(void)) {
  void *at;
  memcpy(&at, &fn, sizeof at);
  return at;
}

void *tg_metal_method(Object *o, MetalSelector s) {
  MetalMessage message = message_of(s);
  if (!o) return address_of(tg_metal_zero);
  if (!s || message >= METAL_MESSAGES || o->magic != magic || o->dead) {
    metal_misused("%s to an object that is not there any more", s ? selectors[message] : "a message");
    return address_of(tg_metal_zero);
  }
  const Method *m = method_of(o->kind, message);
  if (!m) metal_misused("%s does not understand %s", kind_names[o->kind], selectors[message]);
  mock_some_done();
  return address_of(!m || fails_now(o, message) ? tg_metal_zero : m->fn);
}

#define CAN_SEND true
#else
static void tg_metal_send(void) {}

#define CAN_SEND false
#endif

/* ---- open and close */
static MetalId all_devices(void) {
  MockList *l = mock_new(A_LIST, sizeof *l);
  if (!l) return NULL;
  l->n = GPUS;
  for (int i = 0; i < GPUS; i++)
    l->at[i] = &metal_mock.device[i];
  return &l->object;
}

static void devices_end(void) {
  for (int i = 0; i < GPUS; i++) {
    emu_free(metal_mock.device[i].emu);
    metal_mock.device[i].emu = NULL;
  }
}

static void devices_new(void) {
  Mock *m = &metal_mock;
  for (int i = 0; i < GPUS; i++) {
    m->device[i].object = (Object){.magic = magic, .kind = A_DEVICE, .refs = 1};
    m->device[i].index = i;
  }
  for (size_t i = 0; i < TG_COUNT(classes); i++)
    classes[i].object = (Object){.magic = magic, .kind = A_CLASS, .refs = 1};
}

static TgStatus opened(const TgEnv *env, TgError *err) {
  Mock *m = &metal_mock;
  TgStatus st = TG_OK;
  if (!m->opened) {
    *m = (Mock){.env = *env,
                .seed = (uint64_t)env->emulate,
                .fails = m->fails,
                .any_fails = m->any_fails,
                /* metal_mock_fail may be called before the mock is opened */
                .fails_in = m->fails_in};
    st = compiler_known(err);
    if (st) return st;
    devices_new();
    m->cache = cache_open(&m->mem, &tg_os_default, &m->env);
  }
  m->opened++;
  return TG_OK;
}

TgStatus metal_mock_open(const TgEnv *env, TgError *err, MetalApi *api) {
  if (!CAN_SEND)
    return error_set(err, TG_ERR_DEVICE, "METAL: no GPU with it is emulated on this kind of processor");
  enter();
  TgStatus st = opened(env, err);
  leave();
  *api = (MetalApi){.send = tg_metal_send,
                    .class_named = class_named,
                    .selector_named = selector_named,
                    .pool_push = pool_push,
                    .pool_pop = pool_pop,
                    .devices = all_devices};
  return st;
}

static MetalMockCounts left; /* what all users left that opened and closed the mock */

/* Frees what the mock's user has left. The counts are kept for tests. */
static void closed(void) {
  Mock *m = &metal_mock;
  if (!m->opened || --m->opened) return;
  for (int i = 0; i < GPUS; i++)
    if (m->device[i].object.refs != 1) metal_misused("a device was retained and not released");
  MetalMockCounts counts = m->counts;
  while (m->live) {
    Object *o = m->live;
    list_leave(o, &m->live, NULL);
    if (o->kind == AN_ENCODER || o->kind == A_COMMAND_BUFFER || o->kind == AN_INDIRECT) mock_object_end(o);
    object_gone(o);
  }
  while (m->dead_first) {
    Object *o = m->dead_first;
    list_leave(o, &m->dead_first, &m->dead_last);
    object_gone(o);
  }
  counts.misuses = m->counts.misuses;
  m->counts = counts;
  left.objects += counts.objects;
  left.pools += counts.pools;
  left.misuses += counts.misuses;
  m->queues = NULL;
  devices_end();
  cache_close(m->cache);
  m->cache = NULL;
  vec_free(&m->mem, &m->pool), vec_free(&m->mem, &m->pools);
}

void metal_mock_close(void) {
  enter();
  closed();
  leave();
}

MetalMockCounts metal_mock_left(void) { return left; }

MetalMockCounts metal_mock_counts(void) { return metal_mock.counts; }

const char *metal_mock_misuse(void) { return metal_mock.misuse.msg; }

bool metal_mock_fail(const char *name, uint64_t nth) {
  static const char *const names[] = {
#define METAL(n, result, name, selector, ...) #name,
#include "runtime/metal_api.def"
#undef METAL
  };

  bool known = !name;
  metal_mock.any_fails = !name;
  for (size_t i = 0; i < TG_COUNT(names) && name; i++)
    if (!strcmp(names[i], name)) {
      known = true;
      metal_mock.fails = (MetalMessage)i;
    }
  metal_mock.fails_in = known ? nth : 0;
  return known;
}
