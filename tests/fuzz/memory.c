/* memory.c: what aliases what, and which value a tensor has, whatever is stored meanwhile. In: a seed. Out:
 * whether a random program agrees with plain arrays. The model is eager: memory is an array of integers, a
 * handle is a list of places in one. What is computed has arrays of its own, which become memory (seen by
 * views made from then on) when the tensor is realized or read. There is an array for each value of a variable:
 * what is computed of the variable differs in them, and becomes memory when it is stored to. */
#include "memory.h"
#include "tg.h"
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 48, RANK = 3, HANDLES = 14, STEPS = 28, STORAGES = 400 };

enum { MOST_SIZE = 6 }; /* of the variable, from 1 */

typedef struct Storage {
  int32_t at[MOST_SIZE][MOST];
} Storage;

typedef struct Handle {
  TgTensor *t;
  int s; /* storage */
  /* kept: in no scope; expanded: a view that tg_expand is in, which cannot be stored to */
  bool memory, kept, expanded;
  bool varies; /* an expression of the variable: it is computed anew for each of its values */
  int rank, n;
  int64_t d[RANK];
  int place[MOST];
} Handle;

/* what a captured function does; drops: it releases handles of its own, and one of the caller's */
typedef struct Body {
  TgJit *jit;
  int kind[3], a[3], b[3], runs;
  int64_t lo, hi;
  int32_t k;
  bool drops;
  Handle older; /* an expression that was made before the function; kept */
  int of;       /* the state that it is of, or -1 .. */
  int32_t by;   /* .. times this; 0: times the variable */
  Handle known; /* memory that the function reads, and that may be its input as well; kept */
} Body;

enum { CAPTURES = 2 }; /* of the same state */

static struct {
  uint64_t rng;
  TgContext *ctx;
  Storage storage[STORAGES];
  int nstorage;
  Handle h[HANDLES];
  int n, depth; /* depth: open scopes; handles beyond first[] end with them */
  int first[4];
  Handle state[2]; /* what captured functions assign to; kept */
  Body body[CAPTURES];
  TgVariable *size; /* 1 .. 6: how much of an input is added to a state */
  int64_t now;      /* what it is bound to */
  char text[16384];
  size_t len;
  bool bad, broken;
  bool sharded;   /* what is made lies on three devices, split or repeated at random */
  TgTensor *held; /* made in a captured function */
} P;

static uint32_t draw(void) {
  P.rng = P.rng * 6364136223846793005u + 1442695040888963407u;
  return (uint32_t)(P.rng >> 33);
}

static int below(int n) { return n > 0 ? (int)(draw() % (uint32_t)n) : 0; }

static void say(const char *fmt, ...) {
  va_list ap;
  va_start(ap, fmt);
  if (P.len < sizeof P.text - 300) P.len += (size_t)vsnprintf(P.text + P.len, sizeof P.text - P.len, fmt, ap);
  va_end(ap);
}

static void wrong(const char *what) {
  if (P.bad) return;
  P.bad = true;
  say("  /* %s%s%s */\n", what, tg_error(P.ctx) ? ": " : "", tg_errmsg(P.ctx));
}

/* ---- the model */
static int32_t value_of(const Handle *h, int i, int n) { return P.storage[h->s].at[n - 1][h->place[i]]; }

static int32_t value(const Handle *h, int i) { return value_of(h, i, (int)P.now); }

static void put_of(const Handle *h, int i, int n, int32_t v) { P.storage[h->s].at[n - 1][h->place[i]] = v; }

/* whatever the variable is */
static void put(const Handle *h, int i, int32_t v) {
  for (int n = 1; n <= MOST_SIZE; n++)
    put_of(h, i, n, v);
}

static Handle own(const Handle *like) { /* arrays of its own, elements in order */
  Handle h = *like;
  h.s = P.nstorage++, h.t = NULL, h.memory = h.kept = h.expanded = h.varies = false;
  for (int i = 0; i < h.n; i++)
    h.place[i] = i;
  return h;
}

static Handle copied(const Handle *x) {
  Handle h = own(x);
  h.varies = x->varies;
  for (int i = 0; i < h.n; i++)
    for (int n = 1; n <= MOST_SIZE; n++)
      put_of(&h, i, n, value_of(x, i, n));
  return h;
}

static int count(const Handle *h) {
  int n = 1;
  for (int i = 0; i < h->rank; i++)
    n *= (int)h->d[i];
  return n;
}

/* A view made now: the same arrays if x is memory. place[] of the view is given in elements of x. */
static Handle viewed(const Handle *x, Handle v) {
  if (x->memory) {
    for (int i = 0; i < v.n; i++)
      v.place[i] = x->place[v.place[i]];
    v.s = x->s, v.memory = true;
    return v;
  }
  Handle h = own(&v);
  h.varies = x->varies;
  for (int i = 0; i < v.n; i++)
    for (int n = 1; n <= MOST_SIZE; n++)
      put_of(&h, i, n, value_of(x, v.place[i], n));
  return h;
}

/* ---- handles */
static const char *name(int i) {
  static char s[8][8];
  static int at;
  at = (at + 1) % 8;
  snprintf(s[at], sizeof s[at], i < -2 ? "e%d" : i < 0 ? "s%d" : "h%d", i < -2 ? -3 - i : i < 0 ? -1 - i : i);
  return s[at];
}

/* On three devices, where the program is of such. */
static TgTensor *on(TgTensor *t) {
  static const char *const devices[] = {"INTERP", "INTERP:1", "INTERP:2"};
  if (!P.sharded || !t) return t;
  int axis = below(tg_ndim(t) + 1) - 1;
  int64_t n = axis < 0 ? 0 : tg_dim(t, axis), bound[4] = {0, below((int)n + 1), 0, n};
  bound[2] = bound[1] + below((int)(n - bound[1]) + 1);
  if (axis < 0)
    say("  /* on each of three devices: */\n");
  else
    say("  /* axis %d split at %d and %d: */\n", axis, (int)bound[1], (int)bound[2]);
  return axis < 0 ? tg_replicate(t, 3, devices) : tg_shard(t, 3, devices, axis, .bounds = bound);
}

static TgTensor *in_memory(TgTensor *t) {
  TgTensor *s = on(t);
  return P.sharded && s && tg_realize(s) ? NULL : s;
}

/* A view that is none of each device's part refuses a store: nothing has changed. */
static bool refused(void) {
  bool is =
      P.sharded && tg_error(P.ctx) == TG_ERR_DEVICE && strstr(tg_errmsg(P.ctx), "is a view, but not of");
  if (is) tg_clear_error(P.ctx);
  return is;
}

static Handle *handle(int i) { return i < -2 ? &P.body[-3 - i].older : i < 0 ? &P.state[-1 - i] : &P.h[i]; }

static int any(void) {
  int body = below(CAPTURES);
  if (P.body[body].older.t && below(6) == 0) return -3 - body;
  return below(6) == 0 ? -1 - below(2) : below(P.n);
}

static void add(Handle h, TgTensor *t) {
  h.t = t;
  if (!t) {
    wrong("no tensor");
    return;
  }
  P.h[P.n++] = h;
}

static void check(int i) {
  Handle *h = handle(i);
  int32_t out[MOST];
  say("  tg_read(%s);\n", name(i));
  if (tg_read(h->t, out, (size_t)h->n * 4)) {
    wrong("read");
    return;
  }
  for (int k = 0; k < h->n; k++)
    if (out[k] != value(h, k)) {
      char text[128];
      snprintf(text, sizeof text, "element %d is %d, not %d", k, (int)out[k], (int)value(h, k));
      wrong(text);
      return;
    }
  h->memory = !h->varies;
}

static void fresh(Handle *h, bool with_rank) {
  static const int64_t shapes[][RANK] = {{6}, {5}, {2, 3}, {3, 4}, {4, 2}, {2, 3, 2}, {1}, {8}};
  int s = below(8);
  if (with_rank) *h = (Handle){0};
  h->rank = s < 2 || s > 5 ? 1 : s < 5 ? 2 : 3;
  memcpy(h->d, shapes[s], sizeof shapes[s]);
  h->n = count(h);
}

/* ---- one step each */
static void step_new(void) {
  Handle h;
  fresh(&h, true);
  h = own(&h);
  int how = below(P.sharded ? 4 : 5);
  int32_t v[MOST];
  for (int i = 0; i < h.n; i++) {
    v[i] = how < 2 ? below(100) : how == 2 ? 7 : i;
    put(&h, i, v[i]);
    for (int n = 1; how == 4 && n <= MOST_SIZE; n++)
      put_of(&h, i, n, i + n);
  }
  h.varies = how == 4;
  TgTensor *t = NULL;
  if (how < 2) t = in_memory(tg_from(P.ctx, v, TG_I32, h.rank, h.d)), h.memory = true;
  if (how == 2) t = on(tg_full(P.ctx, h.rank, h.d, 7, .dtype = TG_I32));
  if (how == 3) t = on(tg_reshape(tg_arange(P.ctx, 0, h.n), h.rank, h.d));
  if (how == 4) t = tg_add(tg_reshape(tg_arange(P.ctx, 0, h.n), h.rank, h.d), tg_variable_tensor(P.size));
  say("  %s = %s;   /* %d elements */\n", name(P.n),
      how < 2    ? "tg_from(..)"
      : how == 2 ? "tg_full(.., 7)"
      : how == 3 ? "tg_reshape(tg_arange(0, ..), ..)"
                 : "tg_add(tg_reshape(tg_arange(0, ..), ..), tg_variable_tensor(n))",
      h.n);
  add(h, t);
}

static void step_view(void) {
  int x = any();
  Handle *s = handle(x), v = *s;
  TgTensor *t = NULL;
  int kind = below(8), axis = below(s->rank);
  v.t = NULL, v.kept = false;
  int64_t stride[RANK] = {0}, all = 1;
  for (int d = s->rank; d-- > 0;)
    stride[d] = all, all *= s->d[d];
  if (kind == 0) { /* transpose */
    int64_t order[RANK], from[RANK];
    for (int d = 0; d < s->rank; d++)
      order[d] = d;
    for (int d = s->rank - 1; d > 0; d--) {
      int e = below(d + 1);
      int64_t o = order[d];
      order[d] = order[e], order[e] = o;
    }
    for (int d = 0; d < s->rank; d++)
      v.d[d] = s->d[order[d]], from[d] = stride[order[d]];
    for (int i = 0; i < v.n; i++) {
      int64_t at = 0, left = i;
      for (int d = v.rank; d-- > 0;)
        at += left % v.d[d] * from[d], left /= v.d[d];
      v.place[i] = (int)at;
    }
    t = tg_permute(s->t, s->rank, order);
    say("  %s = tg_permute(%s, {%d, %d, %d});\n", name(P.n), name(x), (int)order[0],
        s->rank > 1 ? (int)order[1] : 0, s->rank > 2 ? (int)order[2] : 0);
  } else if (kind == 1) { /* reshape to one axis, or that to two */
    bool two = s->n % 2 == 0 && below(2);
    v.rank = two ? 2 : 1, v.d[0] = two ? 2 : s->n, v.d[1] = s->n / 2;
    for (int i = 0; i < v.n; i++)
      v.place[i] = i;
    t = tg_reshape(s->t, v.rank, v.d);
    say("  %s = tg_reshape(%s, %s);\n", name(P.n), name(x), two ? "(2, -1)" : "(-1)");
  } else if (kind == 2) {
    for (int i = 0; i < v.n; i++)
      v.place[i] = (int)(i + (s->d[axis] - 1 - 2 * (i / stride[axis] % s->d[axis])) * stride[axis]);
    t = tg_flip(s->t, 1, (int64_t[]){axis});
    say("  %s = tg_flip(%s, %d);\n", name(P.n), name(x), axis);
  } else if (kind == 3) {
    for (int i = 0; i < v.n; i++)
      v.place[i] = i;
    t = tg_detach(s->t);
    say("  %s = tg_detach(%s);\n", name(P.n), name(x));
  } else if (kind == 4 && s->rank < RANK && s->n * 2 <= MOST) { /* every element twice, side by side */
    int64_t with[RANK + 1], d[RANK + 1];
    for (int k = 0; k < s->rank; k++)
      with[k] = d[k] = s->d[k];
    with[s->rank] = 1, d[s->rank] = 2;
    v.rank = s->rank + 1, v.d[s->rank] = 2, v.n = 2 * s->n, v.expanded = true;
    for (int i = 0; i < v.n; i++)
      v.place[i] = i / 2;
    t = tg_expand(tg_reshape(s->t, v.rank, with), v.rank, d);
    say("  %s = tg_expand(tg_reshape(%s, (.., 1)), (.., 2));\n", name(P.n), name(x));
  } else { /* a slice, with steps and backwards too */
    int64_t size = s->d[axis];
    int64_t step = 1 + below(3);
    int64_t lo = below((int)size);
    int64_t n = 1 + below((int)((size - lo + step - 1) / step));
    bool back = below(4) == 0;
    TgIndex idx[RANK];
    for (int d = 0; d < s->rank; d++)
      idx[d] = (TgIndex)TG_ALL;
    int64_t last = lo + (n - 1) * step;
    idx[axis] = back ? (TgIndex)TG_SLICE(last, lo > 0 ? lo - 1 : TG_OPEN, -step)
                     : (TgIndex)TG_SLICE(lo, last + 1, step);
    v.d[axis] = n, v.n = count(&v);
    for (int i = 0; i < v.n; i++) {
      int64_t at = 0, left = i;
      for (int d = v.rank; d-- > 0;) {
        int64_t p = left % v.d[d];
        at += (d != axis ? p : back ? last - p * step : lo + p * step) * stride[d], left /= v.d[d];
      }
      v.place[i] = (int)at;
    }
    t = tg_getitem(s->t, idx, s->rank);
    say("  %s = tg_getitem(%s, axis %d from %d, %d of them, step %d);\n", name(P.n), name(x), axis,
        (int)(back ? last : lo), (int)n, (int)(back ? -step : step));
  }
  add(viewed(s, v), t);
}

static void step_compute(void) {
  int x = any(), y = any(), kind = below(5);
  Handle *a = handle(x), *b = handle(y);
  for (int k = 0; k < P.n && (b->rank != a->rank || memcmp(b->d, a->d, sizeof *a->d * (size_t)a->rank)); k++)
    y = (y < 0 ? k : (y + 1) % P.n), b = handle(y);
  if (b->rank != a->rank || memcmp(b->d, a->d, sizeof *a->d * (size_t)a->rank)) y = x, b = a;
  Handle h = own(a);
  int32_t k = 2 + below(3);
  TgTensor *t = NULL;
  h.varies = a->varies || (b->varies && (kind == 0 || kind == 4));
  for (int i = 0; i < h.n * MOST_SIZE; i++) {
    int n = 1 + i / h.n, at = i % h.n;
    uint32_t p = (uint32_t)value_of(a, at, n), q = (uint32_t)value_of(b, at, n);
    put_of(&h, at, n,
           (int32_t)(kind == 0   ? p + q
                     : kind == 1 ? p * (uint32_t)k
                     : kind == 2 ? p + (uint32_t)k
                     : kind == 3 ? 0u - p
                                 : p * q));
  }
  switch (kind) {
  case 0: t = tg_add(a->t, b->t), say("  %s = tg_add(%s, %s);\n", name(P.n), name(x), name(y)); break;
  case 1:
    t = tg_mul_scalar(a->t, k), say("  %s = tg_mul_scalar(%s, %d);\n", name(P.n), name(x), (int)k);
    break;
  case 2:
    t = tg_add_scalar(a->t, k), say("  %s = tg_add_scalar(%s, %d);\n", name(P.n), name(x), (int)k);
    break;
  case 3: t = tg_neg(a->t), say("  %s = tg_neg(%s);\n", name(P.n), name(x)); break;
  default: t = tg_mul(a->t, b->t), say("  %s = tg_mul(%s, %s);\n", name(P.n), name(x), name(y)); break;
  }
  add(h, t);
}

static void step_sum(void) {
  int x = any();
  Handle *a = handle(x), h = {.rank = 1, .n = 1, .d = {1}};
  h = own(&h);
  h.varies = a->varies;
  for (int n = 1; n <= MOST_SIZE; n++) {
    uint32_t sum = 0;
    for (int i = 0; i < a->n; i++)
      sum += (uint32_t)value_of(a, i, n);
    put_of(&h, 0, n, (int32_t)sum);
  }
  say("  %s = tg_reshape(tg_sum(%s), (1));\n", name(P.n), name(x));
  add(h, tg_reshape(tg_sum(a->t), TG_SHAPE(1)));
}

/* x becomes memory, of its own if it was none. */
static void own_memory(Handle *h) {
  if (h->memory) return;
  Handle c = own(h);
  for (int i = 0; i < h->n; i++)
    put(&c, i, value(h, i));
  h->s = c.s, h->memory = true, h->expanded = h->varies = false;
  memcpy(h->place, c.place, sizeof c.place);
}

static void step_assign(void) {
  int x = any(), y = any(), kind = below(4);
  Handle *a = handle(x), *b = handle(y);
  bool same = b->rank == a->rank && !memcmp(b->d, a->d, sizeof *a->d * (size_t)a->rank);
  bool can = !a->memory || !a->expanded;
  int32_t v[MOST], k = below(50);
  /* nothing to do */
  bool itself = same && a->memory && b->memory && a->s == b->s &&
                !memcmp(a->place, b->place, sizeof *a->place * (size_t)a->n);
  if (!can && (below(4) || itself)) return;
  bool equal = kind == 0 && same; /* maybe the same graph, for which there is nothing to do */
  for (int i = 0; equal && i < a->n; i++)
    equal = value(a, i) == value(b, i);
  if ((!can || a->varies) && equal) return;
  TgTensor *t = NULL;
  for (int i = 0; i < a->n; i++)
    v[i] = (int32_t)(kind == 0 && same ? (uint32_t)value(b, i)
                     : kind == 1       ? (uint32_t)k
                                       : (uint32_t)value(a, i) * 2u + 1u);
  if (kind == 0 && same)
    t = tg_assign(a->t, b->t), say("  tg_assign(%s, %s);\n", name(x), name(y));
  else if (kind == 1)
    t = tg_assign(a->t, tg_full(P.ctx, TG_SCALAR, k, .dtype = TG_I32)),
    say("  tg_assign(%s, %d);\n", name(x), (int)k);
  else {
    for (int i = 0; i < a->n; i++)
      v[i] = (int32_t)((uint32_t)value(a, i) * 2u + 1u);
    t = tg_assign(a->t, tg_add_scalar(tg_mul_scalar(a->t, 2), 1)),
    say("  tg_assign(%s, 2 %s + 1);\n", name(x), name(x));
  }
  if (!t && refused()) return;
  if (!can) {
    if (t || tg_error(P.ctx) != TG_ERR_STATE) wrong("an expanded view was assigned to");
    tg_clear_error(P.ctx);
    return;
  }
  if (!t) {
    wrong("assign");
    return;
  }
  own_memory(a);
  for (int i = 0; i < a->n; i++)
    put(a, i, P.broken && i == 3 ? v[i] + 1 : v[i]);
}

static void step_setitem(void) {
  int x = any(), axis;
  Handle *a = handle(x);
  if (a->memory && a->expanded) return;
  axis = below(a->rank);
  int64_t size = a->d[axis], at = below((int)size), stride = 1;
  int32_t k = below(50);
  bool by_tensor = below(4) == 0, of_itself = below(4) == 0;
  TgIndex idx[RANK];
  for (int d = 0; d < a->rank; d++)
    idx[d] = (TgIndex)TG_ALL;
  for (int d = a->rank; --d > axis;)
    stride *= a->d[d];
  int32_t where = (int32_t)at;
  TgTensor *places = by_tensor ? on(tg_from(P.ctx, &where, TG_I32, TG_SHAPE(1))) : NULL;
  idx[axis] = by_tensor ? (TgIndex)TG_TENSOR(places) : (TgIndex)TG_AT(at);
  int64_t other = below((int)size);
  TgIndex from[RANK];
  for (int d = 0; d < a->rank; d++)
    from[d] = (TgIndex)TG_ALL;
  from[axis] = by_tensor ? (TgIndex)TG_SLICE(other, other + 1) : (TgIndex)TG_AT(other);
  TgTensor *t = of_itself ? tg_setitem(a->t, idx, a->rank, tg_getitem(a->t, from, a->rank))
                          : tg_setitem_scalar(a->t, idx, a->rank, k);
  if (of_itself)
    say("  tg_setitem(%s, axis %d at %s%d%s, its own at %d);\n", name(x), axis, by_tensor ? "[" : "", (int)at,
        by_tensor ? "]" : "", (int)other);
  else
    say("  tg_setitem_scalar(%s, axis %d at %s%d%s, %d);\n", name(x), axis, by_tensor ? "[" : "", (int)at,
        by_tensor ? "]" : "", (int)k);
  if (!t && refused()) return;
  if (!t) {
    wrong("setitem");
    return;
  }
  Handle was = copied(a);
  if (!a->memory) { /* it is another expression from here on */
    Handle c = copied(a);
    a->s = c.s;
    memcpy(a->place, c.place, sizeof c.place);
  }
  for (int i = 0; i < a->n; i++)
    for (int n = 1; n <= MOST_SIZE && i / stride % size == at; n++)
      put_of(a, i, n,
             of_itself ? value_of(&was, (int)(i + (other - at) * stride), a->memory ? (int)P.now : n) : k);
}

/* Functions that have nothing to do here give the value of now, under a handle of its own. */
static void step_same(void) {
  int x = any(), kind = below(4);
  Handle h = copied(handle(x));
  TgTensor *of = handle(x)->t, *t = NULL;
  static const char *const what[] = {"tg_cast(%s, TG_I32)", "tg_roll(%s, 0, axis 0)", "tg_floor(%s)",
                                     "tg_clamp(%s, .. all)"};
  if (kind == 0) t = tg_cast(of, TG_I32);
  if (kind == 1) t = tg_roll(of, 1, (int64_t[]){0}, (int64_t[]){0});
  if (kind == 2) t = tg_floor(of);
  if (kind == 3) t = tg_clamp(of, INT32_MIN, INT32_MAX);
  say("  %s = ", name(P.n)), say(what[kind], name(x)), say(";\n");
  if (t == of) wrong("its argument");
  add(h, t);
}

static void step_clone(void) {
  int x = any();
  Handle h = copied(handle(x)); /* which stores it: it varies no more */
  own_memory(&h);
  say("  %s = tg_clone(%s);\n", name(P.n), name(x));
  add(h, tg_clone(handle(x)->t));
}

static void step_realize(void) {
  int n = 1 + below(3), at[3];
  TgTensor *t[3];
  say("  tg_realize_many(");
  for (int i = 0; i < n; i++) {
    at[i] = any();
    t[i] = handle(at[i])->t;
    say("%s%s", i ? ", " : "", name(at[i]));
  }
  say(");\n");
  if (tg_realize_many(t, (size_t)n)) {
    wrong("realize");
    return;
  }
  for (int i = 0; i < n; i++)
    handle(at[i])->memory = !handle(at[i])->varies;
}

static void step_drop(void) {
  if (P.n <= P.first[P.depth]) return;
  int x = P.first[P.depth] + below(P.n - P.first[P.depth]);
  say("  tg_release(%s);   %s is %s from here\n", name(x), name(x), name(P.n - 1));
  tg_release(P.h[x].t);
  P.h[x] = P.h[--P.n];
}

static void step_replace(void) {
  int x = below(P.n), y = any();
  Handle *a = &P.h[x], *b = handle(y);
  if (b->rank != a->rank || memcmp(b->d, a->d, sizeof *a->d * (size_t)a->rank)) return;
  say("  tg_replace(%s, %s);\n", name(x), name(y));
  if (!tg_replace(a->t, b->t)) {
    wrong("replace");
    return;
  }
  TgTensor *t = a->t;
  *a = b->memory ? *b : copied(b); /* what is no memory yet becomes memory of each */
  a->t = t, a->kept = false;
}

static void step_scope(void) {
  if (P.depth < 3 && below(2)) {
    say("  tg_scope_begin(c);\n");
    tg_scope_begin(P.ctx);
    P.first[++P.depth] = P.n;
  } else if (P.depth > 0) {
    say("  tg_scope_end(c);   /* %s .. end */\n", name(P.first[P.depth]));
    if (tg_scope_end(P.ctx)) wrong("scope");
    P.n = P.first[P.depth--];
  }
}

/* ---- captured functions: three of: add the input to a state, set a part of one, assign one to the other;
 * out: a sum of both and the input */
static TgTensor *sum_of_part(TgTensor *x, TgTensor *in) {
  int64_t n = tg_size(P.size), none = 0;
  return tg_assign_slice(x, &none, &n, tg_add(tg_slice(x, 0, 0, n), tg_slice(in, 0, 0, n)));
}

/* A handle may end while a function is captured: of what the function made, and of what its caller has. The
 * last one, its input, stays. */
static void dropped_inside(TgTensor *of) {
  tg_release(tg_add_scalar(of, 1)), tg_release(tg_clone(of));
  if (P.n - 1 <= P.first[P.depth]) return;
  int x = P.first[P.depth] + below(P.n - 1 - P.first[P.depth]);
  tg_release(P.h[x].t);
  for (int i = x; i + 1 < P.n; i++)
    P.h[i] = P.h[i + 1];
  P.n--;
}

/* The expression that a function reads, or makes anew. */
static TgTensor *older_of(TgTensor *from, int32_t by) {
  TgTensor *t = tg_reshape(from, TG_SHAPE(6));
  return by ? tg_mul_scalar(t, by) : tg_mul(t, tg_variable_tensor(P.size));
}

static TgStatus body_run(TgContext *c, TgTensor *const *in, int nin, TgTensor **out, int nout, void *user) {
  (void)nin, (void)nout;
  const Body *b = user;
  TgTensor *s[2] = {P.state[0].t, P.state[1].t}, *early = tg_add(s[0], in[0]);
  for (int i = 0; i < 3; i++) {
    TgTensor *x = s[b->a[i]], *y = s[b->b[i]];
    if (b->kind[i] == 0) tg_add_(x, in[0]);
    if (b->kind[i] == 1) tg_assign(x, tg_add_scalar(y, b->k));
    if (b->kind[i] == 2)
      tg_setitem(x, TG_IDX(TG_SLICE(b->lo, b->hi)), tg_getitem(y, TG_IDX(TG_SLICE(6 - b->hi, 6 - b->lo))));
    if (b->kind[i] == 3) tg_assign(in[0], tg_mul_scalar(x, 3));
    if (b->kind[i] == 4 && tg_realize(x)) return tg_error(c);
    if (b->kind[i] == 5 && !sum_of_part(x, in[0])) return tg_error(c);
    if (b->kind[i] == 6) tg_add_(x, b->older.t);
    if (b->kind[i] == 7) tg_add_(x, tg_neg(b->older.t)); /* which a handle outside may be, too */
    if (b->kind[i] == 8) tg_add_(x, b->of < 0 ? b->older.t : older_of(s[b->of], b->by));
    if (b->kind[i] == 9) tg_add_(x, b->known.t);
    if (b->drops && i == 1) dropped_inside(x);
  }
  out[0] = tg_add(tg_add(s[0], s[1]), in[0]), out[1] = early, out[2] = s[1];
  return tg_error(c);
}

static void model_run(const Body *b, Handle *in, int32_t out[3][6]) {
  Handle *s = P.state;
  for (int i = 0; i < 6; i++)
    out[1][i] = (int32_t)((uint32_t)value(&s[0], i) + (uint32_t)value(in, i));
  for (int i = 0; i < 3; i++) {
    Handle *x = &s[b->a[i]], *y = &s[b->b[i]];
    int32_t v[6];
    for (int k = 0; k < 6; k++)
      v[k] = value(x, k);
    for (int k = 0; k < 6; k++) {
      if (b->kind[i] == 0) v[k] = (int32_t)((uint32_t)value(x, k) + (uint32_t)value(in, k));
      if (b->kind[i] == 1) v[k] = (int32_t)((uint32_t)value(y, k) + (uint32_t)b->k);
      if (b->kind[i] == 2 && k >= b->lo && k < b->hi) v[k] = value(y, (int)(6 - b->hi + k - b->lo));
      if (b->kind[i] == 5 && k < P.now) v[k] = (int32_t)((uint32_t)value(x, k) + (uint32_t)value(in, k));
      if (b->kind[i] == 3) v[k] = (int32_t)((uint32_t)value(x, k) * 3u);
      if (b->kind[i] == 6) v[k] = (int32_t)((uint32_t)value(x, k) + (uint32_t)value(&b->older, k));
      if (b->kind[i] == 7) v[k] = (int32_t)((uint32_t)value(x, k) - (uint32_t)value(&b->older, k));
      if (b->kind[i] == 8) {
        uint32_t now = b->of < 0 ? (uint32_t)value(&b->older, k)
                                 : (uint32_t)value(&s[b->of], k) * (uint32_t)(b->by ? b->by : P.now);
        v[k] = (int32_t)((uint32_t)value(x, k) + now);
      }
      if (b->kind[i] == 9) v[k] = (int32_t)((uint32_t)value(x, k) + (uint32_t)value(&b->known, k));
    }
    for (int k = 0; k < 6; k++)
      put(b->kind[i] == 3 ? in : x, k, v[k]);
  }
  for (int i = 0; i < 6; i++) {
    out[0][i] = (int32_t)((uint32_t)value(&s[0], i) + (uint32_t)value(&s[1], i) + (uint32_t)value(in, i));
    out[2][i] = value(&s[1], i);
  }
}

/* What is captured, read again from its text with the state of now: its next run gives what the model's
 * would; nothing else changes. */
static void step_text(const Body *b) {
  static Storage was[STORAGES];
  const char *names[8], *text = tg_jit_to_text(b->jit, NULL, NULL, 0);
  if (!text && strstr(tg_errmsg(P.ctx), "nothing is captured yet")) { /* its last run was a first one again */
    tg_clear_error(P.ctx);
    return;
  }
  char *copy = text ? strdup(text) : NULL;
  TgTensor *m[8], *out[3], *x;
  int32_t want[3][6], got[6];
  int n = 0, used = P.nstorage;
  memcpy(was, P.storage, sizeof was);
  Handle in = {.rank = 1, .n = 6, .d = {6}};
  in = own(&in);
  for (int i = 0; i < 6; i++)
    put(&in, i, i * i - 7);
  TG_SCOPE(P.ctx) {
    while (n < 8 && (m[n] = tg_jit_memory(b->jit, (size_t)n, &names[n])))
      n++;
    x = tg_from(P.ctx, P.storage[in.s].at[0], TG_I32, TG_SHAPE(6));
    TgJit *again = copy ? tg_jit_from_text(P.ctx, copy, names, m, n) : NULL;
    TgVariable *size = again ? tg_jit_variable(again, 0) : NULL;
    bool ok = again && (!size || !tg_variable_bind(size, P.now)) && !tg_jit_run(again, &x, 1, out, 3);
    if (!ok) wrong("as text");
    model_run(b, &in, want);
    for (int o = 0; ok && o < 3; o++)
      if (tg_read(out[o], got, sizeof got) || memcmp(got, want[o], sizeof got))
        ok = false, wrong("read from text");
    tg_jit_free(again);
  }
  free(copy);
  memcpy(P.storage, was, sizeof was);
  P.nstorage = used;
}

/* The input of a captured function lies as it did when that was captured. */
static TgTensor *input_of(const int32_t *v) {
  static const char *const devices[] = {"INTERP", "INTERP:1", "INTERP:2"};
  TgTensor *t = tg_from(P.ctx, v, TG_I32, TG_SHAPE(6));
  TgTensor *s = P.sharded ? tg_shard(t, 3, devices, 0) : t;
  return P.sharded && tg_realize(s) ? NULL : s;
}

/* An expression that a function is to read: of a state, or of another handle; mostly of the variable as well. */
static void make_older(int which) {
  int x = -1 - below(2);
  for (int i = 0; i < P.n; i++)
    if (P.h[i].n == 6 && below(3) == 0) x = i;
  const Handle *from = handle(x);
  bool times = !P.sharded && below(3), realized = below(3) == 0;
  int32_t k = P.sharded ? 5 + 2 * which : 5; /* on one device both may be one graph */
  Handle h = {.rank = 1, .n = 6, .d = {6}};
  h = own(&h);
  h.kept = true, h.varies = times || from->varies;
  for (int i = 0; i < 6; i++)
    for (int n = 1; n <= MOST_SIZE; n++)
      put_of(&h, i, n, (int32_t)((uint32_t)value_of(from, i, n) * (uint32_t)(times ? n : k)));
  Body *b = &P.body[which];
  b->of = x < 0 ? -1 - x : -1, b->by = times ? 0 : k;
  TgTensor *t = tg_keep(older_of(from->t, b->by));
  char by[12];
  snprintf(by, sizeof by, "%d", (int)k);
  say("  e%d = tg_mul(tg_reshape(%s, (6)), %s)%s;\n", which, name(x), times ? "n" : by,
      realized ? ", realized" : "");
  if (!t || (realized && tg_realize(t))) wrong("older");
  h.t = t, h.memory = realized && !h.varies;
  b->older = h;
}

static void make_known(Body *b) {
  Handle h = {.rank = 1, .n = 6, .d = {6}};
  h = own(&h);
  h.kept = h.memory = true;
  for (int i = 0; i < 6; i++)
    put(&h, i, below(10));
  h.t = tg_keep(input_of(P.storage[h.s].at[0]));
  if (!h.t) wrong("known");
  b->known = h;
}

/* What a function of kind 7 makes of its expression, as a handle outside. */
static void make_twin(const Body *b) {
  const Handle *from = &b->older;
  Handle h = own(from);
  bool realized = below(2);
  h.varies = from->varies;
  for (int i = 0; i < 6; i++)
    for (int n = 1; n <= MOST_SIZE; n++)
      put_of(&h, i, n, (int32_t)(0u - (uint32_t)value_of(from, i, n)));
  TgTensor *t = tg_neg(from->t);
  say("  %s = tg_neg(e%d)%s;\n", name(P.n), (int)(b - P.body), realized ? ", realized" : "");
  if (!t || (realized && tg_realize(t))) wrong("twin");
  h.memory = realized && !h.varies;
  add(h, t);
}

static void step_bind(void) {
  P.now = 1 + below(MOST_SIZE);
  say("  n = %d;\n", (int)P.now);
  if (tg_variable_bind(P.size, P.now)) wrong("bind");
}

static void step_jit(void) {
  int which = below(CAPTURES);
  Body *b = &P.body[which];
  if (P.n + 5 > HANDLES || b->runs > 8) return;
  if (!b->jit) {
    for (int i = 0; i < 3; i++)
      b->kind[i] = below(10), b->a[i] = below(2), b->b[i] = below(2);
    for (int i = 0; i < 3 && P.sharded; i++) /* a symbolic slice of what is split */
      b->kind[i] = b->kind[i] == 5 ? 6 : b->kind[i];
    make_older(which);
    make_known(b);
    if (below(2)) make_twin(b);
    b->lo = below(5), b->hi = b->lo + 1 + below((int)(6 - b->lo)), b->k = below(9), b->drops = below(3) == 0;
    b->jit = tg_jit(P.ctx, body_run, b);
    say("  j%d = tg_jit(..);   /* kinds %d %d %d, a %d %d %d, b %d %d %d, %d .. %d, k %d%s */\n", which,
        b->kind[0], b->kind[1], b->kind[2], b->a[0], b->a[1], b->a[2], b->b[0], b->b[1], b->b[2], (int)b->lo,
        (int)b->hi, (int)b->k, b->drops ? ", drops" : "");
  }
  if (P.now == 1 || below(2)) step_bind();
  Handle in = {.rank = 1, .n = 6, .d = {6}};
  bool assigned = b->kind[0] == 3 || b->kind[1] == 3 || b->kind[2] == 3; /* it has to be memory */
  bool known = !assigned && below(4) == 0;
  in = own(known ? &b->known : &in), in.varies = !assigned && !known && !P.sharded && below(3) == 0;
  in.memory = !in.varies;
  for (int i = 0; i < 6; i++)
    put(&in, i, below(10));
  TgTensor *given = known ? tg_detach(b->known.t) : input_of(P.storage[in.s].at[0]);
  if (known) in = b->known, in.kept = false;
  for (int i = 0; i < 6 * MOST_SIZE && in.varies; i++)
    put_of(&in, i % 6, 1 + i / 6, value_of(&in, i % 6, 1 + i / 6) + 1 + i / 6);
  add(in, in.varies ? tg_add(given, tg_variable_tensor(P.size)) : given);
  TgTensor *out[3] = {NULL}, *x = P.h[P.n - 1].t;
  int32_t want[3][6];
  say("  tg_jit_run(j%d, %s%s);   /* run %d */\n", which, name(P.n - 1),
      in.varies ? ", of n"
      : known   ? ", a view of what it knows"
                : "",
      b->runs++);
  if (tg_jit_run(b->jit, &x, 1, out, 3)) {
    wrong("jit");
    return;
  }
  say("  /* %s %s %s are its outputs */\n", name(P.n), name(P.n + 1), name(P.n + 2));
  model_run(b, &P.h[P.n - 1], want);
  for (int o = 0; o < 3; o++) {
    Handle h = own(&in);
    for (int i = 0; i < 6; i++)
      put(&h, i, want[o][i]);
    h.memory = true;
    add(h, out[o]);
  }
  bool reads_older = b->kind[0] >= 6 || b->kind[1] >= 6 || b->kind[2] >= 6;
  if (b->runs == 3 && b->k == 0 && !P.sharded && !reads_older) step_text(b); /* of some: it is planned anew */
}

/* A few runs one after the other, whose inputs and outputs go. */
static void step_jits(void) {
  for (int i = below(5); i >= 0 && !P.bad; i--) {
    int had = P.n;
    step_jit();
    if (i == 0 || P.bad || P.n == had) return;
    for (int o = 1; o <= 3 && !P.bad; o++)
      check(P.n - o);
    say("  tg_release(..) of these and of their input\n");
    for (int o = 0; o < 4; o++)
      tg_release(P.h[--P.n].t);
  }
}

/* ---- a program */
static void begin(const char *device) {
  if (!P.ctx) P.ctx = tg_open(&(TgOpenOptions){.size = sizeof(TgOpenOptions), .device = device, .seed = 1});
  P.nstorage = P.n = P.depth = 0, P.len = 0, P.bad = false;
  memset(P.body, 0, sizeof P.body);
  P.text[0] = 0;
  if (!P.size) P.size = tg_variable(P.ctx, "n", 1, MOST_SIZE);
  P.now = 1;
  if (tg_variable_bind(P.size, P.now)) wrong("bind");
  tg_scope_begin(P.ctx);
  P.first[0] = 0;
  for (int i = 0; i < 2; i++) {
    Handle s = {.rank = 1, .n = 6, .d = {6}};
    s = own(&s);
    s.kept = true;
    for (int k = 0; k < 6; k++)
      put(&s, k, i ? 5 : 10 * k);
    s.t = tg_keep(on(i ? tg_full(P.ctx, TG_SHAPE(6), 5, .dtype = TG_I32)
                       : tg_from(P.ctx, P.storage[s.s].at[0], TG_I32, TG_SHAPE(6))));
    s.memory = true;
    if (!s.t || tg_realize(s.t)) wrong("state");
    P.state[i] = s;
  }
  say("  /* s0 = 0 10 20 30 40 50; s1 = tg_full((6), 5), realized */\n");
}

static void end(void) {
  while (P.depth > 0)
    tg_scope_end(P.ctx), P.depth--;
  for (int i = 0; i < CAPTURES; i++)
    tg_jit_free(P.body[i].jit), tg_release(P.body[i].older.t), tg_release(P.body[i].known.t);
  tg_scope_end(P.ctx);
  for (int i = 0; i < 2; i++)
    tg_release(P.state[i].t);
  if (P.bad) tg_clear_error(P.ctx);
}

bool fuzz_memory(uint64_t seed, const char *device, bool sharded, bool broken) {
  P.rng = seed * 2654435761u + 99, P.broken = broken, P.sharded = sharded;
  draw(), draw();
  begin(device);
  step_new(), step_new();
  for (int i = 0; i < STEPS && !P.bad && P.nstorage < STORAGES - 12; i++) {
    int kind = below(24);
    bool room = P.n < HANDLES - 1 && P.n > 0;
    if (!P.n)
      step_new();
    else if (kind < 2 && room)
      step_new();
    else if (kind < 6 && room)
      step_view();
    else if (kind < 9 && room)
      step_compute();
    else if (kind < 12)
      step_assign();
    else if (kind < 14)
      step_setitem();
    else if (kind < 15 && room)
      step_clone();
    else if (kind < 16)
      step_realize();
    else if (kind < 17)
      check(any());
    else if (kind < 18)
      step_drop();
    else if (kind < 19 && room)
      below(2) ? step_sum() : step_replace();
    else if (kind < 20)
      step_scope();
    else if (kind < 22)
      step_jits();
    else if (kind < 23 && room)
      step_same();
    else if (!P.sharded && below(2))
      step_bind();
    else if (tg_collect(P.ctx))
      wrong("collect");
    else
      say("  tg_collect(c);\n");
    if (!P.bad && tg_error(P.ctx)) wrong("an error");
  }
  for (int i = -2 - CAPTURES; i < P.n && !P.bad; i++)
    if (handle(i)->t) check(i);
  bool ok = !P.bad;
  if (!ok)
    printf("memory, seed %llu on %s%s:\n%s", (unsigned long long)seed, tg_default_device(P.ctx),
           P.sharded ? " and others" : "", P.text);
  end();
  return ok;
}

void fuzz_memory_end(void) {
  tg_close(P.ctx);
  P.ctx = NULL, P.size = NULL;
}
