/* ptx_run.c: the threads of a launch, block by block. A thread runs alone until it comes to what it does with
 * others (a barrier, a shuffle, matrices); when all that are left of its warp, or of its block, have come
 * there, it is done for all of them. A copy that is asynchronous arrives when it is waited for, and no
 * sooner.
 */
#include "ptx/ptx.h"
#include "uop/matrix.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LANES = 32, MOST_SHARED = 232448, MOST_PENDING = 512, MOST_STEPS = 20000000 };

/* Shared memory in the generic address space. */
static const uint64_t WINDOW = UINT64_C(1) << 60;

typedef struct Pending {
  uint64_t to;
  uint8_t bytes[16];
  int nbytes, group;
} Pending;

typedef struct Lane {
  uint64_t *reg;
  int pc, index[3], npending, group;
  bool done, waits; /* at the instruction pc, for others */
  Pending *pending;
} Lane;

typedef struct Run {
  const PtxKernel *k;
  const PtxLaunch *l;
  char *why;
  uint8_t *shared;
  size_t nshared;
  uint32_t block[3];
  Lane *lane;
  int n;
  bool failed;
} Run;

static bool fails(Run *r, const PtxIns *i, const char *what) {
  if (!r->failed) snprintf(r->why, PTX_WHY, "line %d: %s: %s", i->line, i->op, what);
  r->failed = true;
  return false;
}

/* ---- types: the letter and the bits of the last part of an instruction that is one */
typedef struct Type {
  char letter;
  int bits;
} Type;

static Type type_at(const char *p) {
  Type t = {*p, atoi(p + 1)};
  if (!strncmp(p, "pred", 4)) return (Type){'p', 1};
  if (!strncmp(p, "bf16", 4)) return (Type){'h', 16};
  return t;
}

static bool is_type(const char *p) {
  return !strncmp(p, "pred", 4) || (strchr("usbf", *p) && p[1] >= '0' && p[1] <= '9' && strcmp(p, "b0"));
}

/* The nth type from the end: 0 the last. */
static Type type_of(const PtxIns *i, int nth) {
  for (const char *end = i->op + strlen(i->op); end > i->op;) {
    const char *p = end;
    while (p > i->op && p[-1] != '.')
      p--;
    char part[PTX_WORD];
    snprintf(part, sizeof part, "%.*s", (int)(end - p), p);
    if (is_type(part) && !nth--) return type_at(part);
    end = p - (p > i->op);
  }
  return (Type){0, 0};
}

static bool has(const PtxIns *i, const char *part) { /* between dots */
  size_t n = strlen(part);
  for (const char *p = strstr(i->op, part); p; p = strstr(p + 1, part))
    if ((p == i->op || p[-1] == '.') && (!p[n] || p[n] == '.')) return true;
  return false;
}

static uint64_t cut(uint64_t v, int bits) { return bits >= 64 ? v : v & ((UINT64_C(1) << bits) - 1); }

static int64_t extended(uint64_t v, int bits) {
  return bits >= 64 ? (int64_t)v : (int64_t)(v << (64 - bits)) >> (64 - bits);
}

static double float_of(uint64_t v, int bits) {
  uint32_t low = (uint32_t)v;
  float f;
  double d;
  memcpy(&f, &low, sizeof f), memcpy(&d, &v, sizeof d);
  return bits == 32 ? (double)f : d;
}

static uint64_t of_float(double d, int bits) {
  float f = (float)d;
  uint32_t low;
  uint64_t v;
  memcpy(&low, &f, sizeof low), memcpy(&v, &d, sizeof v);
  return bits == 32 ? low : v;
}

/* ---- operands and memory */
static uint64_t special(const Run *r, const Lane *t, const char *name) {
  const char *dot = strchr(name, '.');
  int axis = dot ? dot[1] - 'x' : 0;
  if (!strncmp(name, "%tid", 4)) return (uint64_t)t->index[axis];
  if (!strncmp(name, "%ctaid", 6)) return r->block[axis];
  if (!strncmp(name, "%ntid", 5)) return r->l->block[axis];
  if (!strncmp(name, "%nctaid", 7)) return r->l->grid[axis];
  return (uint64_t)(t - r->lane) % LANES;
}

static uint64_t get(const Run *r, const Lane *t, const PtxOperand *o) {
  uint64_t v = o->kind == PTX_REG   ? t->reg[o->reg] + (o->address ? o->value : 0)
               : o->kind == PTX_IMM ? o->value
                                    : special(r, t, o->special);
  return o->negated ? !v : v;
}

static void put(Lane *t, const PtxOperand *o, uint64_t v) { t->reg[o->reg] = v; }

static uint8_t *shared_at(Run *r, const PtxIns *i, uint64_t at, size_t n) {
  if (at <= r->nshared && n <= r->nshared - at && at % n == 0) return r->shared + at;
  fails(r, i, at % n ? "a shared address that is not aligned" : "outside shared memory");
  return NULL;
}

static uint8_t *global_at(Run *r, const PtxIns *i, uint64_t at, size_t n) {
  if (at >= WINDOW) return shared_at(r, i, at - WINDOW, n);
  for (int m = 0; m < r->l->nmemory; m++) {
    uint64_t from = (uintptr_t)r->l->memory[m].at, size = r->l->memory[m].nbytes;
    if (at >= from && at - from <= size && n <= size - (at - from) && at % n == 0)
      return (uint8_t *)(uintptr_t)at;
  }
  fails(r, i, at % n ? "an address that is not aligned" : "outside all memory");
  return NULL;
}

static bool access_memory(Run *r, Lane *t, const PtxIns *i, bool store) {
  Type type = type_of(i, 0);
  int many = has(i, "v2") ? 2 : has(i, "v4") ? 4 : 1;
  size_t each = (size_t)type.bits / 8;
  const PtxOperand *place = &i->at[store ? 0 : many], *value = &i->at[store ? 1 : 0];
  uint64_t at = get(r, t, place);
  if (i->n != many + 1 || !place->address) return fails(r, i, "its operands");
  if (has(i, "param")) {
    put(t, value, cut(r->l->params[at / 8], type.bits));
    return at % 8 == 0 && (int)(at / 8) < r->k->nparam ? true : fails(r, i, "no such parameter");
  }
  uint8_t *p =
      has(i, "shared") ? shared_at(r, i, at, each * (size_t)many) : global_at(r, i, at, each * (size_t)many);
  for (int e = 0; p && e < many; e++) {
    uint64_t v = store ? get(r, t, &value[e]) : 0;
    if (store) {
      memcpy(p + (size_t)e * each, &v, each);
      continue;
    }
    memcpy(&v, p + (size_t)e * each, each);
    put(t, &value[e], type.letter == 's' ? cut((uint64_t)extended(v, type.bits), 64) : v);
  }
  return p != NULL;
}

/* ---- arithmetic */
static bool float_op(Run *r, const PtxIns *i, double a, double b, double c, int bits, double *out) {
  const char *op = i->op;
  bool single = bits == 32;
#define IS(text) (!strncmp(op, text ".", sizeof text))
  if (IS("add"))
    *out = single ? (double)((float)a + (float)b) : a + b;
  else if (IS("sub"))
    *out = single ? (double)((float)a - (float)b) : a - b;
  else if (IS("mul"))
    *out = single ? (double)((float)a * (float)b) : a * b;
  else if (IS("div"))
    *out = single ? (double)((float)a / (float)b) : a / b;
  else if (IS("fma"))
    *out = single ? (double)fmaf((float)a, (float)b, (float)c) : fma(a, b, c);
  else if (IS("rcp"))
    *out = single ? (double)(1 / (float)a) : 1 / a;
  else if (IS("sqrt"))
    *out = single ? (double)sqrtf((float)a) : sqrt(a);
  else if (IS("rsqrt"))
    *out = 1 / sqrt(a);
  else if (IS("ex2"))
    *out = exp2(a);
  else if (IS("lg2"))
    *out = log2(a);
  else if (IS("neg"))
    *out = -a;
  else if (IS("abs"))
    *out = fabs(a);
  else if (IS("min"))
    *out = fmin(a, b);
  else if (IS("max"))
    *out = fmax(a, b);
  else
    return fails(r, i, "no operation on floats here");
  if (has(i, "rm") && IS("fma")) { /* towards minus infinity: one step below where rounding went up */
    double exact = a * b + c;
    float f = (float)*out;
    *out = (double)f > exact ? (double)nextafterf(f, -INFINITY) : (double)f;
  }
  if (has(i, "sat")) *out = isnan(*out) ? 0 : fmin(fmax(*out, 0), 1);
  return true;
}

static bool whole_op(Run *r, const PtxIns *i, uint64_t a, uint64_t b, uint64_t c, Type t, uint64_t *out) {
  const char *op = i->op;
  int64_t x = extended(a, t.bits), y = extended(b, t.bits);
  bool sign = t.letter == 's';
  if (!sign) a = cut(a, t.bits), b = cut(b, t.bits);
  if (IS("mul") || IS("mad")) {
    __int128 wide = sign ? (__int128)x * y : (__int128)((unsigned __int128)a * b);
    *out = has(i, "hi") ? (uint64_t)(wide >> t.bits) : (uint64_t)wide;
    if (IS("mad")) *out += c;
    return true;
  }
  if (IS("add"))
    *out = a + b;
  else if (IS("sub"))
    *out = a - b;
  else if (IS("div") && b)
    *out = sign ? (uint64_t)(x / y) : a / b;
  else if (IS("rem") && b)
    *out = sign ? (uint64_t)(x % y) : a % b;
  else if (IS("neg"))
    *out = 0 - a;
  else if (IS("abs"))
    *out = x < 0 ? 0 - (uint64_t)x : (uint64_t)x;
  else if (IS("min"))
    *out = sign ? (x < y ? a : b) : a < b ? a : b;
  else if (IS("max"))
    *out = sign ? (x > y ? a : b) : a > b ? a : b;
  else if (IS("and"))
    *out = a & b;
  else if (IS("or"))
    *out = a | b;
  else if (IS("xor"))
    *out = a ^ b;
  else if (IS("not"))
    *out = t.bits == 1 ? !a : ~a;
  else if (IS("shl"))
    *out = (uint32_t)b >= (uint32_t)t.bits ? 0 : a << (uint32_t)b;
  else if (IS("shr") && sign)
    *out = (uint64_t)(x >> ((uint32_t)b >= (uint32_t)t.bits ? t.bits - 1 : (int)b));
  else if (IS("shr"))
    *out = (uint32_t)b >= (uint32_t)t.bits ? 0 : a >> (uint32_t)b;
  else if (IS("popc"))
    *out = (uint64_t)__builtin_popcountll(a);
  else if (IS("clz"))
    *out = a ? (uint64_t)(__builtin_clzll(a) - (64 - t.bits)) : (uint64_t)t.bits;
  else if (IS("bfe")) {
    uint32_t from = (uint32_t)b & 255, n = (uint32_t)c & 255;
    uint64_t field = n && from < (uint32_t)t.bits ? cut((sign ? (uint64_t)x : a) >> from, (int)n) : 0;
    *out = sign && n ? (uint64_t)extended(field, (int)(n < (uint32_t)t.bits ? n : (uint32_t)t.bits)) : field;
  } else
    return fails(r, i, "no operation on whole numbers here");
  return true;
}

static bool arithmetic(Run *r, Lane *t, const PtxIns *i) {
  Type type = type_of(i, 0);
  uint64_t v[4] = {0}, out = 0; /* sources */
  for (int k = 1; k < i->n && k < 5; k++)
    v[k - 1] = get(r, t, &i->at[k]);
  if (type.letter == 'f') {
    double d = 0;
    uint64_t sign = UINT64_C(1) << (type.bits - 1);
    if (!strncmp(i->op, "neg.", 4)) return put(t, &i->at[0], cut(v[0], type.bits) ^ sign), true;
    bool ok = float_op(r, i, float_of(v[0], type.bits), float_of(v[1], type.bits), float_of(v[2], type.bits),
                       type.bits, &d);
    if (ok) put(t, &i->at[0], of_float(d, type.bits));
    return ok;
  }
  if (!whole_op(r, i, v[0], v[1], v[2], type, &out)) return false;
  put(t, &i->at[0], cut(out, has(i, "wide") ? 2 * type.bits : type.bits));
  return true;
}

static bool compared(Run *r, Lane *t, const PtxIns *i) {
  Type type = type_of(i, 0);
  char op[PTX_WORD];
  snprintf(op, sizeof op, "%s", i->op + strlen("setp."));
  op[strcspn(op, ".")] = 0;
  uint64_t a = get(r, t, &i->at[1]), b = get(r, t, &i->at[2]);
  bool less, equal, unordered = false, yes;
  if (type.letter == 'f') {
    double x = float_of(a, type.bits), y = float_of(b, type.bits);
    less = x < y, equal = x == y, unordered = isnan(x) || isnan(y);
  } else if (type.letter == 's') {
    less = extended(a, type.bits) < extended(b, type.bits), equal = cut(a, type.bits) == cut(b, type.bits);
  } else
    less = cut(a, type.bits) < cut(b, type.bits), equal = cut(a, type.bits) == cut(b, type.bits);
  static const char *const names[] = {"eq",  "ne",  "lt",  "le",  "gt",  "ge", "equ", "neu", "ltu",
                                      "leu", "gtu", "geu", "num", "nan", "lo", "ls",  "hi",  "hs"};
  int which = -1;
  for (int k = 0; k < (int)(sizeof names / sizeof *names); k++)
    if (!strcmp(op, names[k])) which = k;
  bool more = !less && !equal && !unordered;
  switch (which < 0 ? -1 : which >= 14 ? which - 12 : which % 6 + (which >= 12 ? 12 : 0)) {
  case 0: yes = equal; break;
  case 1: yes = !equal && !unordered; break;
  case 2: yes = less; break;
  case 3: yes = less || equal; break;
  case 4: yes = more; break;
  case 5: yes = more || equal; break;
  case 12: yes = !unordered; break;
  case 13: yes = unordered; break;
  default: return fails(r, i, "no such comparison");
  }
  if (which >= 6 && which < 12) yes |= unordered;
  if (i->n == 4) { /* joined to another predicate */
    bool c = get(r, t, &i->at[3]) != 0;
    yes = has(i, "and") ? yes && c : has(i, "or") ? yes || c : yes != c;
  }
  put(t, &i->at[0], yes);
  return true;
}

static double rounded(const PtxIns *i, double x) {
  if (has(i, "rni")) return rint(x);
  if (has(i, "rzi")) return trunc(x);
  return has(i, "rmi") ? floor(x) : has(i, "rpi") ? ceil(x) : x;
}

static double half(uint64_t h) {
  int e = (int)(h >> 10 & 31);
  double m = (double)(h & 1023), s = h >> 15 & 1 ? -1 : 1;
  return e == 31 ? (m > 0 ? (double)NAN : s * INFINITY) : e ? s * ldexp(1024 + m, e - 25) : s * ldexp(m, -24);
}

static bool converted(Run *r, Lane *t, const PtxIns *i) {
  Type to = type_of(i, 0), from = to;
  to = type_of(i, 1);
  uint64_t v = get(r, t, &i->at[1]), out;
  if (to.letter == 'f' && from.letter == 'f') {
    double x = rounded(i, from.bits == 16 ? half(v) : float_of(v, from.bits));
    if (to.bits == 16) return fails(r, i, "f16 is not made here");
    if (has(i, "sat")) x = isnan(x) ? 0 : fmin(fmax(x, 0), 1);
    out = of_float(x, to.bits);
  } else if (to.letter == 'f') {
    if (to.bits == 32) {
      float f = from.letter == 's' ? (float)extended(v, from.bits) : (float)cut(v, from.bits);
      out = of_float((double)f, 32);
    } else
      out = of_float(from.letter == 's' ? (double)extended(v, from.bits) : (double)cut(v, from.bits), 64);
  } else if (from.letter == 'f') {
    double x = rounded(i, float_of(v, from.bits)), low = to.letter == 's' ? -ldexp(1, to.bits - 1) : 0;
    double high = ldexp(1, to.bits - (to.letter == 's'));
    if (isnan(x))
      out = to.bits == 64 ? UINT64_C(1) << 63 : 0;
    else if (to.letter == 's')
      out = x <= low    ? (uint64_t)(int64_t)low
            : x >= high ? (UINT64_C(1) << (to.bits - 1)) - 1
                        : (uint64_t)(int64_t)x;
    else
      out = x <= 0 ? 0 : x >= high ? cut(~UINT64_C(0), to.bits) : (uint64_t)x;
    out = cut(out, to.bits);
  } else
    out = cut(from.letter == 's' ? (uint64_t)extended(v, from.bits) : cut(v, from.bits),
              to.bits < 32 ? 32 : to.bits);
  put(t, &i->at[0], out);
  return true;
}

/* Bytes of two words, chosen by the four nibbles of a third. */
static uint64_t permuted(uint64_t a, uint64_t b, uint64_t how) {
  uint64_t all = cut(a, 32) | b << 32, out = 0;
  for (int k = 0; k < 4; k++) {
    uint64_t byte = all >> 8 * (how >> 4 * k & 7) & 255;
    if (how >> 4 * k & 8) byte = byte & 128 ? 255 : 0;
    out |= byte << 8 * k;
  }
  return out;
}

/* ---- copies that arrive later */
static bool copy_begun(Run *r, Lane *t, const PtxIns *i) {
  int n = (int)i->at[2].value;
  bool whole = has(i, "cg");
  if (i->n != 3 || (n != 4 && n != 8 && n != 16) || (whole && n != 16))
    return fails(r, i, "of so many bytes");
  if (t->npending == MOST_PENDING) return fails(r, i, "too many copies");
  Pending *p = &t->pending[t->npending++];
  *p = (Pending){.to = get(r, t, &i->at[0]), .nbytes = n, .group = t->group};
  const uint8_t *from = global_at(r, i, get(r, t, &i->at[1]), (size_t)n);
  if (!from || !shared_at(r, i, p->to, (size_t)n)) return false;
  memcpy(p->bytes, from, (size_t)n);
  return true;
}

static void copies_arrive(Run *r, Lane *t, int still) { /* but those of the last `still` groups */
  int kept = 0;
  for (int k = 0; k < t->npending; k++)
    if (t->pending[k].group < t->group - still)
      memcpy(r->shared + t->pending[k].to, t->pending[k].bytes, (size_t)t->pending[k].nbytes);
    else
      t->pending[kept++] = t->pending[k];
  t->npending = kept;
}

static bool copied(Run *r, Lane *t, const PtxIns *i) {
  if (has(i, "commit_group"))
    t->group++;
  else if (has(i, "wait_group"))
    copies_arrive(r, t, (int)i->at[0].value);
  else if (has(i, "wait_all"))
    t->group++, copies_arrive(r, t, 0);
  else
    return copy_begun(r, t, i);
  return true;
}

/* ---- one instruction of one thread */
static bool step(Run *r, Lane *t, const PtxIns *i) {
  const char *op = i->op;
  if (IS("ld") || IS("st")) return access_memory(r, t, i, IS("st"));
  if (IS("setp")) return compared(r, t, i);
  if (IS("cvt")) return converted(r, t, i);
  if (IS("cp")) return copied(r, t, i);
  if (IS("mov")) {
    int half = type_of(i, 0).bits / 2;
    bool apart = i->n == 3 && i->at[0].group == i->at[1].group; /* one becomes two */
    if (i->n == 2)
      put(t, &i->at[0], cut(get(r, t, &i->at[1]), 2 * half > 1 ? 2 * half : 1));
    else if (i->n != 3)
      return fails(r, i, "of several words");
    else if (!apart)
      put(t, &i->at[0], cut(get(r, t, &i->at[1]), half) | get(r, t, &i->at[2]) << half);
    else {
      uint64_t v = get(r, t, &i->at[2]);
      put(t, &i->at[0], cut(v, half)), put(t, &i->at[1], cut(v >> half, half));
    }
  } else if (IS("cvta")) {
    uint64_t v = get(r, t, &i->at[1]);
    put(t, &i->at[0], !has(i, "shared") ? v : has(i, "to") ? v - WINDOW : v + WINDOW);
  } else if (IS("selp"))
    put(t, &i->at[0], get(r, t, &i->at[get(r, t, &i->at[3]) ? 1 : 2]));
  else if (IS("prmt"))
    put(t, &i->at[0], permuted(get(r, t, &i->at[1]), get(r, t, &i->at[2]), get(r, t, &i->at[3])));
  else if (IS("shf")) {
    uint64_t both = cut(get(r, t, &i->at[1]), 32) | get(r, t, &i->at[2]) << 32, n = get(r, t, &i->at[3]);
    n = has(i, "clamp") ? (n > 32 ? 32 : n) : n & 31;
    put(t, &i->at[0], cut(has(i, "l") ? both >> (32 - n) : both >> n, 32));
  } else if (IS("lop3")) {
    uint64_t a = get(r, t, &i->at[1]), b = get(r, t, &i->at[2]), c = get(r, t, &i->at[3]), f = i->at[4].value,
             v = 0;
    for (int k = 0; k < 32; k++)
      v |= (f >> ((a >> k & 1) * 4 + (b >> k & 1) * 2 + (c >> k & 1)) & 1) << k;
    put(t, &i->at[0], v);
  } else if (IS("bfi")) {
    uint64_t from = get(r, t, &i->at[3]) & 255, n = get(r, t, &i->at[4]) & 255;
    uint64_t mask = from < 64 ? cut(~UINT64_C(0), (int)n) << from : 0, b = get(r, t, &i->at[2]);
    put(t, &i->at[0],
        cut((b & ~mask) | (from < 64 ? get(r, t, &i->at[1]) << from & mask : 0), type_of(i, 0).bits));
  } else if (!IS("membar") && !IS("fence"))
    return arithmetic(r, t, i);
  return !r->failed;
}

static bool meets(const PtxIns *i) {
  static const char *const together[] = {"bar.", "barrier.", "shfl.", "mma.", "ldmatrix.", "vote."};
  for (size_t k = 0; k < sizeof together / sizeof *together; k++)
    if (!strncmp(i->op, together[k], strlen(together[k]))) return true;
  return false;
}

static bool lane_runs(Run *r, Lane *t) {
  for (long steps = 0; !t->done; steps++) {
    const PtxIns *i = &r->k->ins[t->pc];
    if (t->pc >= r->k->n || steps > MOST_STEPS) return fails(r, &r->k->ins[0], "a thread does not end");
    bool skipped = i->guard >= 0 && (t->reg[i->guard] != 0) == i->unless;
    if (skipped)
      t->pc++;
    else if (!strcmp(i->op, "ret") || !strcmp(i->op, "exit"))
      t->done = true;
    else if (*i->label)
      t->pc = i->target;
    else if (meets(i))
      return t->waits = true;
    else {
      if (!step(r, t, i)) return false;
      t->pc++;
    }
  }
  return true;
}

/* ---- what a warp does together */
static bool shuffled(Run *r, Lane *w, const PtxIns *i) {
  uint64_t value[LANES], out[LANES];
  bool second = i->n == 6; /* whether the lane it came from was there */
  const PtxOperand *a = &i->at[1 + second];
  for (int l = 0; l < LANES; l++)
    value[l] = get(r, &w[l], &a[0]);
  for (int l = 0; l < LANES; l++) {
    uint64_t b = get(r, &w[l], &a[1]), c = get(r, &w[l], &a[2]), segment = c >> 8 & 31;
    int clamp = (int)(c & 31), most = (int)(((uint64_t)l & segment) | ((uint64_t)clamp & ~segment));
    int least = l & (int)segment, from;
    if ((uint32_t)get(r, &w[l], &a[3]) != UINT32_MAX) return fails(r, i, "not all lanes are named");
    if (has(i, "bfly"))
      from = l ^ (int)b;
    else if (has(i, "up"))
      from = l - (int)b;
    else if (has(i, "down"))
      from = l + (int)b;
    else
      from = least | ((int)b & ~(int)segment);
    bool there = has(i, "up") ? from >= most : from <= most;
    out[l] = value[there ? from & 31 : l];
    if (second) put(&w[l], &i->at[1], there);
  }
  for (int l = 0; l < LANES; l++)
    put(&w[l], &i->at[0], out[l]);
  return true;
}

static bool rows_loaded(Run *r, Lane *w, const PtxIns *i) {
  int many = has(i, "x4") ? 4 : has(i, "x2") ? 2 : 1;
  uint16_t m[4][8][8];
  if (i->n != many + 1) return fails(r, i, "its registers");
  for (int k = 0; k < many; k++)
    for (int row = 0; row < 8; row++) {
      const uint8_t *p = shared_at(r, i, cut(get(r, &w[8 * k + row], &i->at[many]), 32), 16);
      if (!p) return false;
      memcpy(m[k][row], p, 16);
    }
  for (int l = 0; l < LANES; l++)
    for (int k = 0; k < many; k++) {
      int row = l / 4, column = l % 4 * 2;
      uint64_t low = has(i, "trans") ? m[k][column][row] : m[k][row][column];
      uint64_t high = has(i, "trans") ? m[k][column + 1][row] : m[k][row][column + 1];
      put(&w[l], &i->at[k], low | high << 16);
    }
  return true;
}

/* The row of the table whose shape and types an instruction names. */
static const MatrixShape *shape_of(const PtxIns *i) {
  static const struct {
    const char *ptx, *row;
  } names[] = {{"m16n8k16.row.col.f32.f16.f16.f32", "m16n8k16_f16_f32"},
               {"m16n8k16.row.col.f32.bf16.bf16.f32", "m16n8k16_bf16_f32"},
               {"m16n8k8.row.col.f32.tf32.tf32.f32", "m16n8k8_tf32_f32"},
               {"m16n8k32.row.col.s32.s8.s8.s32", "m16n8k32_s8_s32"},
               {"m16n8k32.row.col.s32.u8.u8.s32", "m16n8k32_u8_s32"},
               {"m16n8k32.row.col.f32.e4m3.e4m3.f32", "m16n8k32_e4m3_f32"},
               {"m16n8k32.row.col.f32.e5m2.e5m2.f32", "m16n8k32_e5m2_f32"},
               {"m16n8k8.row.col.f32.f16.f16.f32", "m16n8k8_f16_f32"}};

  for (size_t n = 0; n < sizeof names / sizeof *names; n++)
    for (int s = 0; s < MATRIX_COUNT && strstr(i->op, names[n].ptx); s++)
      if (!strcmp(matrix_shapes[s].name, names[n].row)) return &matrix_shapes[s];
  return NULL;
}

typedef struct Fragments {
  Scalar at[MATRIX_ROLES][LANES][16];
} Fragments;

static Scalar *fragment_at(void *ctx, MatrixRole role, int thread, int element) {
  return &((Fragments *)ctx)->at[role][thread][element];
}

static bool multiplied(Run *r, Lane *w, const PtxIns *i) {
  static Fragments f; /* of one thread of this program */
  const MatrixShape *s = shape_of(i);
  if (!s) return fails(r, i, "no such product");
  int first[MATRIX_ROLES], words[MATRIX_ROLES], d = s->operand[MATRIX_C].elements;
  for (int role = MATRIX_A, at = d; role < MATRIX_ROLES; role++) {
    const MatrixOperand *o = &s->operand[role];
    words[role] = role == MATRIX_C ? o->elements : o->elements * (int)dtype_size(o->dtype) / 4;
    first[role] = at, at += words[role];
    for (int k = first[role]; k < at; k++)
      if (k >= i->n || i->at[k].group != i->at[first[role]].group) return fails(r, i, "its fragments");
  }
  if (i->n != first[MATRIX_C] + words[MATRIX_C]) return fails(r, i, "its fragments");
  for (int l = 0; l < LANES; l++)
    for (int role = MATRIX_A; role < MATRIX_ROLES; role++) {
      const MatrixOperand *o = &s->operand[role];
      uint32_t bits[16];
      for (int k = 0; k < words[role]; k++)
        bits[k] = (uint32_t)get(r, &w[l], &i->at[first[role] + k]);
      for (int e = 0; e < o->elements; e++) {
        if (s->narrowed && role != MATRIX_C) bits[e] &= 0xffffe000u; /* the unit reads no more */
        f.at[role][l][e] = scalar_load(o->dtype, (const char *)bits + (size_t)e * dtype_size(o->dtype));
      }
    }
  MatrixShape as_read = *s;
  as_read.narrowed = false;
  matrix_multiply(&as_read, fragment_at, &f);
  for (int l = 0; l < LANES; l++)
    for (int e = 0; e < d; e++) {
      uint32_t bits;
      scalar_store(s->operand[MATRIX_C].dtype, f.at[MATRIX_C][l][e], &bits);
      put(&w[l], &i->at[e], bits);
    }
  return true;
}

static bool together(Run *r, Lane *w, const PtxIns *i) {
  if (!strncmp(i->op, "shfl.", 5)) return shuffled(r, w, i);
  if (!strncmp(i->op, "ldmatrix.", 9)) return rows_loaded(r, w, i);
  if (!strncmp(i->op, "mma.", 4)) return multiplied(r, w, i);
  if (!strncmp(i->op, "bar.warp", 8)) return true;
  return fails(r, i, "no such meeting");
}

static void go_on(Lane *t, int n) {
  for (int k = 0; k < n; k++)
    if (!t[k].done) t[k].waits = false, t[k].pc++;
}

/* A warp whose lanes all stand at one instruction. */
static bool warps_meet(Run *r, bool *any) {
  for (int first = 0; first < r->n; first += LANES) {
    Lane *w = &r->lane[first];
    int n = r->n - first < LANES ? r->n - first : LANES, same = 0;
    const PtxIns *i = &r->k->ins[w->pc];
    for (int l = 0; l < n; l++)
      same += w[l].waits && !w[l].done && w[l].pc == w->pc;
    bool block = !strncmp(i->op, "bar.sync", 8) || !strncmp(i->op, "barrier.", 8);
    if (!w->waits || w->done || block) continue;
    if (same != LANES) return fails(r, i, "not all lanes of the warp have come");
    if (!together(r, w, i)) return false;
    go_on(w, n);
    *any = true;
  }
  return true;
}

static bool block_meets(Run *r) {
  const PtxIns *i = NULL;
  for (int t = 0; t < r->n; t++) {
    if (r->lane[t].done) continue;
    const PtxIns *here = &r->k->ins[r->lane[t].pc];
    if (i && here != i) return fails(r, here, "threads wait at different barriers");
    i = here;
  }
  for (int t = 0; t < r->n; t++)
    if (i && r->lane[t].done) return fails(r, i, "a thread has ended that a barrier waits for");
  go_on(r->lane, r->n);
  return true;
}

static bool block_runs(Run *r) {
  memset(r->shared, 0xcd, r->nshared);
  for (int t = 0; t < r->n; t++) {
    Lane *l = &r->lane[t];
    memset(l->reg, 0xcd, (size_t)r->k->nreg * sizeof *l->reg);
    l->pc = l->npending = l->group = 0, l->done = l->waits = false;
    l->index[0] = t % (int)r->l->block[0], l->index[1] = t / (int)r->l->block[0] % (int)r->l->block[1];
    l->index[2] = t / (int)r->l->block[0] / (int)r->l->block[1];
  }
  for (;;) {
    bool left = false, met = false;
    for (int t = 0; t < r->n; t++) {
      if (!r->lane[t].waits && !lane_runs(r, &r->lane[t])) return false;
      left |= !r->lane[t].done;
    }
    if (!left) return true;
    if (!warps_meet(r, &met) || (!met && !block_meets(r))) return false;
  }
}

bool ptx_run(const PtxKernel *k, const PtxLaunch *l, char why[PTX_WHY]) {
  Run r = {.k = k, .l = l, .why = why, .nshared = k->shared + l->dynamic};
  r.n = (int)(l->block[0] * l->block[1] * l->block[2]);
  r.lane = calloc((size_t)r.n + LANES, sizeof *r.lane), r.shared = aligned_alloc(16, MOST_SHARED);
  uint64_t *regs = calloc((size_t)r.n * (size_t)(k->nreg + 1), sizeof *regs);
  Pending *pending = calloc((size_t)r.n * MOST_PENDING, sizeof *pending);
  bool ok = r.lane && r.shared && regs && pending && r.nshared <= MOST_SHARED;
  if (!ok) snprintf(why, PTX_WHY, "no room for the launch");
  for (int t = 0; ok && t < r.n; t++)
    r.lane[t].reg = regs + (size_t)t * (size_t)(k->nreg + 1),
    r.lane[t].pending = pending + (size_t)t * MOST_PENDING;
  for (uint32_t z = 0; ok && z < l->grid[2]; z++)
    for (uint32_t y = 0; ok && y < l->grid[1]; y++)
      for (uint32_t x = 0; ok && x < l->grid[0]; x++) {
        r.block[0] = x, r.block[1] = y, r.block[2] = z;
        ok = block_runs(&r);
      }
  free(r.lane), free(r.shared), free(regs), free(pending);
  return ok;
}
