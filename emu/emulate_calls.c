/* emulate_calls.c: what an emulated kernel may call. The compiler's instrumentation reports each access to
 * functions named __tsan_*, and operations that the language leaves undefined to functions named __ubsan_*.
 * Both names are bound to our own functions here. The rest is what the prelude declares, and mathematics. */
#define _GNU_SOURCE
#include "emu/emulate_private.h"
#include <math.h>
#include <string.h>

/* ---- accesses */
static void check(const volatile void *p, size_t nbytes, Access how) {
  memory_access(emu_running, (uintptr_t)p, nbytes, how);
}

/* A GPU faults on an access that is not aligned to its size. */
static void check_aligned(const volatile void *p, size_t nbytes, Access how) {
  if ((uintptr_t)p & (nbytes - 1))
    emu_fail(emu_running, "misaligned: an access of %zu bytes at an address that is not a multiple of that",
             nbytes);
  check(p, nbytes, how);
}

#define ACCESSES(n)                                                                                          \
  static void read##n(void *p) { check_aligned(p, n, READS); }                                               \
  static void write##n(void *p) { check_aligned(p, n, WRITES); }                                             \
  static void unaligned_read##n(void *p) { check(p, n, READS); }                                             \
  static void unaligned_write##n(void *p) { check(p, n, WRITES); }
ACCESSES(1)
ACCESSES(2)
ACCESSES(4)
ACCESSES(8)
ACCESSES(16)

static void read_range(void *p, unsigned long nbytes) { check(p, nbytes, READS); }

static void write_range(void *p, unsigned long nbytes) { check(p, nbytes, WRITES); }

/* Structures are copied by this. On a GPU a structure of 16 or 32 bytes is copied by accesses of 16 bytes, so
 * it must be aligned. */
static void check_moved(const void *p, size_t nbytes, Access how) {
  enum { WIDEST = 16 };

  const Stack *own = emu_running->current->stack;
  bool is_wide = nbytes == WIDEST || nbytes == 2 * WIDEST;
  if (is_wide && (uintptr_t)p % WIDEST && (uintptr_t)p - (uintptr_t)own->low >= STACK_BYTES)
    emu_fail(emu_running, "misaligned: %zu bytes at an address that is not a multiple of 16", nbytes);
  check(p, nbytes, how);
}

static void *move_bytes(void *to, const void *from, size_t nbytes) {
  check_moved(from, nbytes, READS);
  check_moved(to, nbytes, WRITES);
  return memmove(to, from, nbytes);
}

static void *set_bytes(void *to, int byte, size_t nbytes) {
  check(to, nbytes, WRITES);
  return memset(to, byte, nbytes);
}

static void nothing(void) {}

static void nothing_of(void *p) { (void)p; }

/* ---- atomic operations. No other thread runs meanwhile, so ordinary operations are enough. */
static void emu_atomic(const volatile void *p, uint64_t nbytes) { check_aligned(p, nbytes, ATOMIC); }

#define ATOMIC_CHANGE(bits, name, new)                                                                       \
  static uint##bits##_t atomic##bits##_##name(volatile uint##bits##_t *p, uint##bits##_t v, int order) {     \
    (void)order;                                                                                             \
    emu_atomic(p, sizeof *p);                                                                                \
    uint##bits##_t old = *p;                                                                                 \
    *p = (uint##bits##_t)(new);                                                                              \
    return old;                                                                                              \
  }
#define ATOMICS(bits)                                                                                        \
  static uint##bits##_t atomic##bits##_load(const volatile uint##bits##_t *p, int order) {                   \
    (void)order;                                                                                             \
    check_aligned(p, sizeof *p, ATOMIC_LOADS);                                                               \
    return *p;                                                                                               \
  }                                                                                                          \
  static void atomic##bits##_store(volatile uint##bits##_t *p, uint##bits##_t v, int order) {                \
    (void)order;                                                                                             \
    check_aligned(p, sizeof *p, ATOMIC_STORES);                                                              \
    *p = v;                                                                                                  \
  }                                                                                                          \
  static int atomic##bits##_swap_if(volatile uint##bits##_t *p, uint##bits##_t *want, uint##bits##_t v,      \
                                    int order, int other) {                                                  \
    (void)order, (void)other;                                                                                \
    emu_atomic(p, sizeof *p);                                                                                \
    uint##bits##_t old = *p;                                                                                 \
    bool same = old == *want;                                                                                \
    *p = same ? v : old;                                                                                     \
    *want = old;                                                                                             \
    return same;                                                                                             \
  }                                                                                                          \
  static uint##bits##_t atomic##bits##_swap_if_val(volatile uint##bits##_t *p, uint##bits##_t want,          \
                                                   uint##bits##_t v, int order, int other) {                 \
    atomic##bits##_swap_if(p, &want, v, order, other);                                                       \
    return want;                                                                                             \
  }                                                                                                          \
  ATOMIC_CHANGE(bits, exchange, v)                                                                           \
  ATOMIC_CHANGE(bits, fetch_add, old + v)                                                                    \
  ATOMIC_CHANGE(bits, fetch_sub, old - v)                                                                    \
  ATOMIC_CHANGE(bits, fetch_and, old &v)                                                                     \
  ATOMIC_CHANGE(bits, fetch_or, old | v)                                                                     \
  ATOMIC_CHANGE(bits, fetch_xor, old ^ v)
ATOMICS(8)
ATOMICS(16)
ATOMICS(32)
ATOMICS(64)

static void fence(int order) { (void)order; }

/* ---- operations that the language leaves undefined. Each report begins with the place in the text. */
typedef struct SourcePlace {
  const char *file;
  uint32_t line, column;
} SourcePlace;

typedef struct TypeName {
  uint16_t kind, info;
  char name[];
} TypeName;

typedef struct TypeReport {
  SourcePlace at;
  const TypeName *type;
  uint8_t log_alignment, kind;
} TypeReport;

static void undefined_type(const TypeReport *r, uintptr_t p) {
  emu_fail(emu_running, "misaligned: line %u takes %#zx for a %s, which begins at a multiple of %u",
           r->at.line, (size_t)p, r->type->name, 1u << r->log_alignment);
}

static void undefined_index(const TypeReport *r, uintptr_t index) {
  emu_fail(emu_running, "out of bounds: line %u takes element %lld of a %s", r->at.line, (long long)index,
           r->type->name);
}

#define UNDEFINED(name, what)                                                                                \
  static void undefined_##name(const SourcePlace *at) {                                                      \
    emu_fail(emu_running, "undefined: %s in line %u", what, at->line);                                       \
  }
UNDEFINED(shift, "a shift by too much")
UNDEFINED(overflow, "a signed overflow")
UNDEFINED(division, "a division by zero, or of the least integer by -1,")
UNDEFINED(cast, "a float that its integer type cannot hold")

/* ---- the place of a thread */
typedef struct Index {
  uint32_t x, y, z;
} Index;

static Index thread_index(void) {
  const Thread *t = emu_running->current;
  return (Index){t->index[0], t->index[1], t->index[2]};
}

static Index block_index(void) {
  const uint32_t *v = emu_running->block_index;
  return (Index){v[0], v[1], v[2]};
}

static Index block_size(void) {
  const uint32_t *v = emu_running->block;
  return (Index){v[0], v[1], v[2]};
}

static Index grid_size(void) {
  const uint32_t *v = emu_running->grid;
  return (Index){v[0], v[1], v[2]};
}

/* ---- waiting for other threads */
static void barrier(uint32_t id, uint32_t line, uint32_t orders) {
  Thread *t = emu_running->current;
  t->id = id;
  t->line = line;
  t->orders = orders;
  thread_stop(emu_running, AT_BARRIER);
}

static uint64_t meet(WarpCall call) {
  Thread *t = emu_running->current;
  t->warp = call;
  thread_stop(emu_running, AT_WARP);
  return t->warp.result;
}

static void warp_sync(uint32_t id, uint32_t line, uint32_t mask) {
  meet((WarpCall){.op = WARP_SYNC, .id = id, .line = line, .mask = mask});
}

static uint32_t warp_ballot(uint32_t id, uint32_t line, uint32_t mask, int value) {
  return (uint32_t)meet((WarpCall){WARP_BALLOT, id, line, mask, .value = value != 0});
}

static uint64_t warp_shuffle(uint32_t id, uint32_t line, int op, uint32_t mask, uint64_t value, int arg,
                             int width) {
  return meet((WarpCall){(WarpOp)op, id, line, mask, .value = value, .arg = arg, .width = width});
}

static void warp_mma(uint32_t id, uint32_t line, int kind, void *d, const void *a, const void *b,
                     const void *c) {
  meet((WarpCall){WARP_MMA, id, line, UINT32_MAX, .arg = kind, .a = a, .b = b, .c = c, .d = d});
}

/* Every thread must pass a row, even if the row is not read, because older GPUs require all rows to exist. */
static void warp_rows(uint32_t id, uint32_t line, int kind, void *to, const void *row) {
  enum { ROW_BYTES = 16 };

  Emu *e = emu_running;
  const Space *shared = &e->kernel->module->shared;
  if ((uintptr_t)row - shared->lo >= shared->size)
    emu_fail(e, "ldmatrix of a row that is not in shared memory");
  check_aligned(row, ROW_BYTES, READS);
  meet((WarpCall){WARP_ROWS, id, line, UINT32_MAX, .arg = kind, .a = row, .d = to});
}

/* ---- asynchronous copies from device memory to shared memory. The bytes arrive when the copy is waited
 * for. */
static void copy_async(void *to, const void *from, uint64_t nbytes) {
  Emu *e = emu_running;
  Thread *t = e->current;
  const Space *shared = &e->kernel->module->shared;
  uintptr_t at = (uintptr_t)to;
  if (nbytes != 4 && nbytes != 8 && nbytes != 16)
    emu_fail(e, "an asynchronous copy of %zu bytes", (size_t)nbytes);
  if ((at | (uintptr_t)from) & (nbytes - 1))
    emu_fail(e, "misaligned: an asynchronous copy of %zu bytes", (size_t)nbytes);
  if (at - shared->lo >= shared->size) emu_fail(e, "an asynchronous copy to what is not shared memory");
  check(from, nbytes, READS);
  memory_pending(e, at, nbytes);
  PendingCopy c = {at, (uintptr_t)from, (uint32_t)nbytes, t->group};
  if (!vec_push(e->mem, &t->copies, c)) {
    e->fail_status = TG_ERR_NOMEM;
    emu_fail(e, "out of memory");
  }
}

static void copy_commit(void) { emu_running->current->group++; }

/* Completes the copies of the groups before this one. */
static void copies_arrive(uint32_t before) {
  Emu *e = emu_running;
  Thread *t = e->current;
  size_t kept = 0;
  for (size_t i = 0; i < t->copies.len; i++) {
    PendingCopy c = t->copies.at[i];
    if (c.group >= before) {
      t->copies.at[kept++] = c;
      continue;
    }
    memcpy((void *)c.to, (const void *)c.from, c.nbytes);
    memory_arrived(e, c.to, c.nbytes);
  }
  t->copies.len = kept;
}

static void copy_wait(int n) {
  uint32_t group = emu_running->current->group;
  if (n < 0) emu_fail(emu_running, "a wait for all but %d copies", n);
  if ((uint32_t)n < group) copies_arrive(group - (uint32_t)n);
}

static void copy_wait_all(void) { copies_arrive(UINT32_MAX); }

/* ---- mathematics: f32 functions are computed in f64 and rounded, as the interpreter does. */
#define ROUNDED(name)                                                                                        \
  static float rounded_##name(float x) { return (float)name((double)x); }
ROUNDED(exp2)
ROUNDED(log2)
ROUNDED(exp)
ROUNDED(log)
ROUNDED(sin)
ROUNDED(cos)
ROUNDED(tan)
ROUNDED(tanh)
ROUNDED(floor)
ROUNDED(ceil)
ROUNDED(rint)
ROUNDED(fabs)

/* ---- the table */
typedef void (*AnyFn)(void);

#define CALL(name, fn)                                                                                       \
  { name, (AnyFn)(fn) }
#define ACCESS_CALLS(n)                                                                                      \
  CALL("__tsan_read" #n, read##n), CALL("__tsan_write" #n, write##n),                                        \
      CALL("__tsan_unaligned_read" #n, unaligned_read##n),                                                   \
      CALL("__tsan_unaligned_write" #n, unaligned_write##n)
#define ATOMIC_CALL(bits, name) CALL("__tsan_atomic" #bits "_" #name, atomic##bits##_##name)
#define ATOMIC_CALLS(bits)                                                                                   \
  ATOMIC_CALL(bits, load), ATOMIC_CALL(bits, store), ATOMIC_CALL(bits, exchange),                            \
      ATOMIC_CALL(bits, fetch_add), ATOMIC_CALL(bits, fetch_sub), ATOMIC_CALL(bits, fetch_and),              \
      ATOMIC_CALL(bits, fetch_or), ATOMIC_CALL(bits, fetch_xor),                                             \
      CALL("__tsan_atomic" #bits "_compare_exchange_strong", atomic##bits##_swap_if),                        \
      CALL("__tsan_atomic" #bits "_compare_exchange_weak", atomic##bits##_swap_if),                          \
      CALL("__tsan_atomic" #bits "_compare_exchange_val", atomic##bits##_swap_if_val)
#define MATH_CALLS(name) CALL(#name, name), CALL(#name "f", rounded_##name)

const ElfExtern emu_calls[] = {
    ACCESS_CALLS(4), ACCESS_CALLS(1), ACCESS_CALLS(2), ACCESS_CALLS(8), ACCESS_CALLS(16),
    CALL("__tsan_read_range", read_range), CALL("__tsan_write_range", write_range),
    CALL("__tsan_memcpy", move_bytes), CALL("__tsan_memmove", move_bytes), CALL("__tsan_memset", set_bytes),
    /* names that older compilers use */
    CALL("memcpy", move_bytes), CALL("memmove", move_bytes), CALL("memset", set_bytes),
    CALL("__tsan_init", nothing), CALL("__tsan_func_exit", nothing), CALL("__tsan_func_entry", nothing_of),
    ATOMIC_CALLS(8), ATOMIC_CALLS(16), ATOMIC_CALLS(32), ATOMIC_CALLS(64),
    CALL("__tsan_atomic_thread_fence", fence), CALL("__tsan_atomic_signal_fence", fence),
    CALL("__ubsan_handle_type_mismatch_v1_abort", undefined_type),
    CALL("__ubsan_handle_out_of_bounds_abort", undefined_index),
    CALL("__ubsan_handle_shift_out_of_bounds_abort", undefined_shift),
    CALL("__ubsan_handle_add_overflow_abort", undefined_overflow),
    CALL("__ubsan_handle_sub_overflow_abort", undefined_overflow),
    CALL("__ubsan_handle_mul_overflow_abort", undefined_overflow),
    CALL("__ubsan_handle_negate_overflow_abort", undefined_overflow),
    CALL("__ubsan_handle_divrem_overflow_abort", undefined_division),
    CALL("__ubsan_handle_float_cast_overflow_abort", undefined_cast), CALL("emu_thread_index", thread_index),
    CALL("emu_block_index", block_index), CALL("emu_block_size", block_size),
    CALL("emu_grid_size", grid_size), CALL("emu_barrier", barrier), CALL("emu_warp_sync", warp_sync),
    CALL("emu_warp_ballot", warp_ballot), CALL("emu_warp_shuffle", warp_shuffle),
    CALL("emu_warp_mma", warp_mma), CALL("emu_warp_rows", warp_rows), CALL("emu_atomic", emu_atomic),
    CALL("emu_group_place", emu_group_place), CALL("emu_group_step", emu_group_step),
    CALL("emu_group_begin", emu_group_begin), CALL("emu_group_commit", emu_group_commit),
    CALL("emu_group_wait", emu_group_wait), CALL("emu_group_fence", emu_group_fence),
    CALL("emu_copy_async", copy_async), CALL("emu_copy_commit", copy_commit),
    CALL("emu_copy_wait", copy_wait), CALL("emu_copy_wait_all", copy_wait_all), MATH_CALLS(exp2),
    MATH_CALLS(log2), MATH_CALLS(exp), MATH_CALLS(log), MATH_CALLS(sin), MATH_CALLS(cos), MATH_CALLS(tan),
    MATH_CALLS(tanh), MATH_CALLS(floor), MATH_CALLS(ceil), MATH_CALLS(rint), MATH_CALLS(fabs),
    CALL("powf", powf), CALL("pow", pow), CALL("fmaxf", fmaxf), CALL("fminf", fminf), CALL("fmax", fmax),
    CALL("fmin", fmin)};

const size_t emu_ncall = TG_COUNT(emu_calls);
