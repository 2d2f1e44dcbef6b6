/* test_shard_random.c: programs at random, whose tensors are split at random over devices, against the same
 * programs on one device, to the bit: all numbers are whole and small, so that a sum's order does not matter.
 * PROGRAMS=n runs so many (80); SEED=k begins with that one. */
#pragma GCC diagnostic ignored "-Wunused-function" /* of shard.inc it needs the devices alone */
#include "shard.inc"

enum { STEPS = 7, MOST_VALUES = 16, MOST_SIDE = 6, MOST_ELEMENTS = 4000 };

static uint64_t rng;

static uint32_t draw(void) { /* splitmix64 */
  uint64_t z = rng += 0x9e3779b97f4a7c15u;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
  z = (z ^ z >> 27) * 0x94d049bb133111ebu;
  return (uint32_t)((z ^ z >> 31) >> 32);
}

static int below(int n) { return n > 0 ? (int)(draw() % (uint32_t)n) : 0; }

/* A value on one device, and the same on several. */
typedef struct Pair {
  TgTensor *one, *many;
} Pair;

typedef struct Program {
  int ndevices, n;
  Pair v[MOST_VALUES];
} Program;

/* ---- where values lie */
static TgTensor *split_at_random(const Program *p, TgTensor *t) {
  int rank = tg_ndim(t), axis = below(rank + 1) - 1;
  if (axis < 0) return tg_replicate(t, p->ndevices, D);
  if (below(2)) return tg_shard(t, p->ndevices, D, axis);
  int64_t bound[5] = {0}, size = tg_dim(t, axis);
  for (int i = 1; i < p->ndevices; i++)
    bound[i] = bound[i - 1] + below((int)(size - bound[i - 1]) + 1);
  bound[p->ndevices] = size;
  return tg_shard(t, p->ndevices, D, axis, .bounds = bound);
}

static Pair leaf(const Program *p, TgDType dtype) {
  int64_t dims[3], n = 1;
  int rank = 1 + below(3);
  int32_t value[MOST_SIDE * MOST_SIDE * MOST_SIDE + 1];
  for (int i = 0; i < rank; i++)
    n *= dims[i] = below(20) ? 1 + below(MOST_SIDE) : 0;
  for (int i = 0; i < n; i++)
    value[i] = below(dtype == TG_F32 ? 13 : 97);
  TgTensor *t = tg_cast(tg_from(C, value, TG_I32, rank, dims), dtype);
  return (Pair){t, split_at_random(p, t)};
}

/* ---- operations, each on what is on one device and on what is on several */
static TgTensor *reshaped(TgTensor *t, int how) {
  int64_t d[8], n = tg_ndim(t), k = 0;
  if (how % 3 == 0) return tg_reshape(t, TG_SHAPE(tg_numel(t)));
  for (int i = 0; i < n; i++) {
    int64_t size = tg_dim(t, i), factor = size % 2 ? 3 : 2;
    bool cut = how % 3 == 1 && k == i && size && size % factor == 0 && n < 3;
    if (cut) d[k++] = size / factor;
    d[k++] = cut ? factor : size;
  }
  if (how % 3 == 2 && n > 1) {
    d[n - 2] *= d[n - 1];
    k = n - 1;
  }
  return tg_reshape(t, (int)k, d);
}

static TgTensor *padded(TgTensor *t, int axis, int lo, int hi) {
  int64_t before[8] = {0}, after[8] = {0};
  before[axis] = lo;
  after[axis] = hi;
  return tg_pad(t, before, after);
}

static TgTensor *permuted(TgTensor *t, int by) {
  int64_t order[8];
  int n = tg_ndim(t);
  for (int i = 0; i < n; i++)
    order[i] = (i + by) % n;
  return tg_permute(t, n, order);
}

/* The product of a as a matrix and its transpose. */
static TgTensor *squared(TgTensor *t) {
  int64_t columns = tg_dim(t, -1);
  TgTensor *m = tg_reshape(t, TG_SHAPE(columns ? tg_numel(t) / columns : 0, columns));
  return tg_matmul(tg_transpose(m, 0, 1), m);
}

static TgTensor *operation(int op, int x, int y, int z, TgTensor *a, TgTensor *b) {
  int axis = tg_ndim(a) ? x % tg_ndim(a) : 0;
  int64_t size = tg_ndim(a) ? tg_dim(a, axis) : 0, from = size ? y % size : 0;
  int64_t to = from + (size > from ? z % (size - from) + 1 : 0);
  if (!tg_ndim(a)) return tg_expand(tg_reshape(a, TG_SHAPE(1, 1)), TG_SHAPE(1 + x % 4, 1 + y % 4));
  switch (op) {
  case 0: return b ? tg_add(a, b) : tg_add(a, a);
  case 1: return b ? tg_mul(a, b) : tg_mul(a, a);
  case 2: return permuted(a, 1 + y % 2);
  case 3: return reshaped(a, y);
  case 4: return tg_sum(a, .axis = TG_AXES(axis), .keepdim = y % 2);
  case 5: return size ? tg_max(a, .axis = TG_AXES(axis), .keepdim = y % 2) : tg_neg(a);
  case 6: return tg_slice(a, axis, from, to);
  case 7: return padded(a, axis, y % 3, z % 3);
  case 8: return tg_flip(a, 1, (int64_t[]){axis});
  case 9: return tg_cumsum(a, axis);
  case 10: return size ? tg_sort(a, NULL, .axis = TG_AXES(axis)) : a;
  case 11: return squared(a);
  case 12: return b && size ? tg_gather(a, axis, tg_cast(tg_mod_scalar(b, (double)size), TG_I64)) : tg_sum(a);
  case 13: return b ? tg_where(tg_lt(a, b), a, tg_neg(b)) : tg_where(tg_gt_scalar(a, 40), a, tg_square(a));
  case 14: return tg_cat((TgTensor *[]){a, b ? b : a, a}, 2 + y % 2, axis);
  case 15:
    return tg_sub(a, tg_expand(tg_sum(a, .axis = TG_AXES(axis), .keepdim = true), tg_ndim(a), tg_shape(a)));
  case 16: return tg_getitem(a, TG_IDX(TG_SLICE(from, size, 1 + z % 3)));
  case 17:
    return tg_ndim(a) > 3   ? tg_sum(a)
           : tg_ndim(a) > 1 ? tg_stack((TgTensor *[]){a, a}, 1, 0)
                            : tg_stack((TgTensor *[]){a, a}, 2, y % 2);
  default: return tg_cumsum(tg_flip(a, 1, (int64_t[]){axis}), axis);
  }
}

static Pair step(const Program *p) {
  Pair a = p->v[below(p->n)], b = p->v[below(p->n)], r;
  int op = below(19), x = (int)(draw() >> 4), y = (int)(draw() >> 4), z = (int)(draw() >> 4);
  bool fits = tg_ndim(a.one) == tg_ndim(b.one);
  for (int i = 0; fits && i < tg_ndim(a.one); i++)
    fits = tg_dim(a.one, i) == tg_dim(b.one, i);
  r.one = operation(op, x, y, z, a.one, fits ? b.one : NULL);
  r.many = operation(op, x, y, z, a.many, fits ? b.many : NULL);
  r.one = tg_mod_scalar(r.one, tg_dtype(a.one) == TG_F32 ? 13 : 97);
  r.many = tg_mod_scalar(r.many, tg_dtype(a.one) == TG_F32 ? 13 : 97);
  int then = tg_numel(r.one) ? below(6) : 0;
  if (tg_shard_count(r.many) < 2) then = 0; /* a number, which no device has: of a sum of nothing, say */
  if (then == 0) r.many = split_at_random(p, r.many);
  if (then == 1) r.many = tg_shard_like(r.many, r.many);
  if (then == 2 && tg_realize(r.many)) r.many = NULL;
  return r;
}

static void compared(uint64_t seed, int k, const Pair *v) {
  size_t n = v->one ? tg_nbytes(v->one) : 0;
  char *a = malloc(n + 1), *b = malloc(n + 1);
  if (!v->one || !v->many || tg_nbytes(v->many) != n || tg_read(v->one, a, n) || tg_read(v->many, b, n))
    fail_msg("seed %llu, value %d: %s", (unsigned long long)seed, k, tg_errmsg(C));
  if (memcmp(a, b, n)) fail_msg("seed %llu: value %d differs", (unsigned long long)seed, k);
  free(a), free(b);
}

static void program(uint64_t seed) {
  Program p = {.n = 0};
  rng = seed;
  p.ndevices = ranks_asked() ? 4 : 2 + below(3);
  TgDType dtype = below(3) ? TG_I32 : TG_F32;
  for (int i = 0; i < 2; i++)
    p.v[p.n++] = leaf(&p, dtype);
  for (int i = 0; i < STEPS; i++) {
    Pair r = step(&p);
    if (!r.one || !r.many) fail_msg("seed %llu: %s", (unsigned long long)seed, tg_errmsg(C));
    if (tg_numel(r.one) <= MOST_ELEMENTS) p.v[p.n++] = r;
  }
  for (int i = p.n - 3; i < p.n; i++)
    compared(seed, i, &p.v[i]);
}

static void programs(void **state) {
  (void)state;
  const char *n = getenv("PROGRAMS"), *first = getenv("SEED");
  uint64_t seed = first ? strtoull(first, NULL, 10) : 1;
  for (int i = 0; i < (n ? atoi(n) : 80); i++)
    TG_SCOPE(C) program(seed + (uint64_t)i);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test_setup_teardown(programs, open_it, close_it)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
