/* torch.c: torch checkpoints. In: a zip, a stream of pickles, or a tar. Out: the tree that was saved, with
 * its tensors as views of the file. A pickle is a program; the interpreter here builds lists, maps, numbers
 * and text, and knows a dozen globals as enum values. Nothing is imported or called. Objects are numbered and
 * never freed one by one; tensors are made at the end, when the storages are known and only what is reached
 * counts. */
#include "io_private.h"
#include <stdio.h>
#include <stdlib.h>

typedef enum Kind {
  O_NONE,
  O_BOOL,
  O_INT,
  O_FLOAT,
  O_STR,
  O_TUPLE,
  O_LIST,
  O_DICT,
  O_GLOBAL,
  O_PERSISTENT,
  O_TENSOR,
  O_PARAMETER,
  O_OTHER
} Kind;

typedef enum Global {
  G_STORAGE,
  G_DTYPE,
  G_TENSOR_TYPE,
  G_ORDERED_DICT,
  G_REBUILD,
  G_REBUILD_V2,
  G_REBUILD_V3,
  G_REBUILD_PARAMETER,
  G_PARAMETER,
  G_SIZE,
  G_SET,
  G_DEVICE
} Global;

/* n of items (a dict has 2n), bytes, or the number of a global's entry. */
typedef struct Obj {
  uint8_t kind;
  bool done, open;
  uint32_t n;

  union {
    int64_t i;
    double f;
    const uint8_t *s;
    uint32_t *at;
  } u;

  size_t cap;
} Obj;

static const struct {
  const char *module, *name;
  Global g;
  TgDType d;
} globals[] = {{"torch", "FloatStorage", G_STORAGE, TG_F32},
               {"torch", "DoubleStorage", G_STORAGE, TG_F64},
               {"torch", "HalfStorage", G_STORAGE, TG_F16},
               {"torch", "BFloat16Storage", G_STORAGE, TG_BF16},
               {"torch", "LongStorage", G_STORAGE, TG_I64},
               {"torch", "IntStorage", G_STORAGE, TG_I32},
               {"torch", "ShortStorage", G_STORAGE, TG_I16},
               {"torch", "CharStorage", G_STORAGE, TG_I8},
               {"torch", "ByteStorage", G_STORAGE, TG_U8},
               {"torch", "BoolStorage", G_STORAGE, TG_BOOL},
               {"torch", "UntypedStorage", G_STORAGE, TG_U8},
               {"torch.storage", "UntypedStorage", G_STORAGE, TG_U8},
               {"torch", "float32", G_DTYPE, TG_F32},
               {"torch", "float64", G_DTYPE, TG_F64},
               {"torch", "float16", G_DTYPE, TG_F16},
               {"torch", "bfloat16", G_DTYPE, TG_BF16},
               {"torch", "int64", G_DTYPE, TG_I64},
               {"torch", "int32", G_DTYPE, TG_I32},
               {"torch", "int16", G_DTYPE, TG_I16},
               {"torch", "int8", G_DTYPE, TG_I8},
               {"torch", "uint8", G_DTYPE, TG_U8},
               {"torch", "uint16", G_DTYPE, TG_U16},
               {"torch", "uint32", G_DTYPE, TG_U32},
               {"torch", "uint64", G_DTYPE, TG_U64},
               {"torch", "bool", G_DTYPE, TG_BOOL},
               {"torch", "float8_e4m3fn", G_DTYPE, TG_FP8E4M3},
               {"torch", "float8_e5m2", G_DTYPE, TG_FP8E5M2},
               {"torch", "FloatTensor", G_TENSOR_TYPE, TG_F32},
               {"torch", "DoubleTensor", G_TENSOR_TYPE, TG_F64},
               {"torch", "HalfTensor", G_TENSOR_TYPE, TG_F16},
               {"torch", "LongTensor", G_TENSOR_TYPE, TG_I64},
               {"torch", "IntTensor", G_TENSOR_TYPE, TG_I32},
               {"torch", "ShortTensor", G_TENSOR_TYPE, TG_I16},
               {"torch", "CharTensor", G_TENSOR_TYPE, TG_I8},
               {"torch", "ByteTensor", G_TENSOR_TYPE, TG_U8},
               {"collections", "OrderedDict", G_ORDERED_DICT, 0},
               {"torch._utils", "_rebuild_tensor", G_REBUILD, 0},
               {"torch._utils", "_rebuild_tensor_v2", G_REBUILD_V2, 0},
               {"torch._utils", "_rebuild_tensor_v3", G_REBUILD_V3, 0},
               {"torch._utils", "_rebuild_parameter", G_REBUILD_PARAMETER, 0},
               {"torch.nn.parameter", "Parameter", G_PARAMETER, 0},
               {"torch", "Size", G_SIZE, 0},
               {"builtins", "set", G_SET, 0},
               {"__builtin__", "set", G_SET, 0},
               {"torch", "device", G_DEVICE, 0}};

enum {
  NGLOBALS = sizeof globals / sizeof *globals,
  MARK = -1,
  MAX_DEPTH = 1000,
  MAX_PICKLE = 1 << 30,
  MAX_OBJECTS = 1 << 25
};

typedef struct Storage {
  const Source *in;
  uint64_t at, nbytes;
} Storage;

typedef struct Pickle {
  const Source *s; /* for errors */
  TgContext *ctx;
  Obj *obj;
  size_t nobj, cap;
  int64_t *stack;
  size_t depth, scap;
  uint32_t *memo;
  size_t nmemo, mcap;
  uint32_t none;           /* the objects None, False, True stand here, +1, +2 */
  Index storages, tensors; /* keys -> places in storage; -> O_TENSOR objects (tar) */
  Storage *storage;
  size_t nstorage, stcap;
} Pickle;

static bool bad(Pickle *p, const char *what) {
  return io_fail(p->s, TG_ERR_VALUE, "the pickle is damaged: %s", what);
}

static bool no_memory(Pickle *p) { return io_fail(p->s, TG_ERR_NOMEM, "out of memory"); }

static bool obj_new(Pickle *p, Obj o, uint32_t *id) {
  Obj *more = p->nobj < MAX_OBJECTS ? io_grow(p->ctx, p->obj, p->nobj, &p->cap, sizeof *more) : NULL;
  if (!more)
    return p->nobj < MAX_OBJECTS
               ? no_memory(p)
               : io_fail(p->s, TG_ERR_LIMIT, "the pickle has more than %d objects", MAX_OBJECTS);
  p->obj = more, *id = (uint32_t)p->nobj, p->obj[p->nobj++] = o;
  return true;
}

static bool push(Pickle *p, int64_t v) {
  int64_t *more = io_grow(p->ctx, p->stack, p->depth, &p->scap, sizeof *more);
  if (!more) return no_memory(p);
  p->stack = more, p->stack[p->depth++] = v;
  return true;
}

static bool push_new(Pickle *p, Obj o) {
  uint32_t id = 0;
  return obj_new(p, o, &id) && push(p, id);
}

static bool push_int(Pickle *p, int64_t v) { return push_new(p, (Obj){.kind = O_INT, .u.i = v}); }

static bool pop(Pickle *p, uint32_t *id) {
  if (!p->depth || p->stack[p->depth - 1] == MARK) return bad(p, "the stack is empty");
  *id = (uint32_t)p->stack[--p->depth];
  return true;
}

/* How many stand above the last mark. */
static bool above_mark(Pickle *p, size_t *n) {
  for (*n = 0; *n < p->depth && p->stack[p->depth - 1 - *n] != MARK; ++*n) {}
  return *n < p->depth || bad(p, "a mark is missing");
}

static bool item_add(Pickle *p, uint32_t to, uint32_t item) {
  Obj *o = &p->obj[to];
  /* open: a key whose value comes next */
  size_t used = (size_t)o->n * (o->kind == O_DICT ? 2 : 1) + (o->open ? 1 : 0);
  uint32_t *at = io_grow(p->ctx, o->u.at, used, &o->cap, sizeof *at);
  if (!at) return no_memory(p);
  o->u.at = at, at[used] = item;
  if (o->kind == O_DICT) o->open = !o->open;
  if (o->kind != O_DICT || !o->open) o->n++;
  return true;
}

/* The n topmost as items of a new object. */
static bool gather(Pickle *p, Kind kind, size_t n) {
  uint32_t id = 0;
  if (n > p->depth || !obj_new(p, (Obj){.kind = (uint8_t)kind}, &id))
    return n <= p->depth ? false : bad(p, "the stack is empty");
  for (size_t i = 0; i < n; i++) {
    int64_t v = p->stack[p->depth - n + i];
    if (v == MARK) return bad(p, "a mark among items");
    if (!item_add(p, id, (uint32_t)v)) return false;
  }
  p->depth -= n;
  return push(p, id);
}

/* The n topmost are added to what stands below them; below: a mark between. */
static bool extend(Pickle *p, Kind kind, size_t n, bool mark) {
  if (p->depth < n + mark + 1 || p->stack[p->depth - n - mark - 1] == MARK)
    return bad(p, "the stack is empty");
  uint32_t to = (uint32_t)p->stack[p->depth - n - mark - 1];
  if (p->obj[to].kind != kind || (kind == O_DICT && n % 2))
    return bad(p, "items are added to what is no list or map");
  for (size_t i = 0; i < n; i++) {
    int64_t v = p->stack[p->depth - n + i];
    if (v == MARK) return bad(p, "a mark among items");
    if (!item_add(p, to, (uint32_t)v)) return false;
  }
  p->depth -= n + mark;
  return true;
}

static bool global_push(Pickle *p, const uint8_t *m, size_t mn, const uint8_t *s, size_t sn) {
  for (uint32_t i = 0; i < NGLOBALS; i++)
    if (strlen(globals[i].module) == mn && !memcmp(globals[i].module, m, mn) &&
        strlen(globals[i].name) == sn && !memcmp(globals[i].name, s, sn))
      return push_new(p, (Obj){.kind = O_GLOBAL, .n = i});
  return io_fail(p->s, TG_ERR_VALUE,
                 "the pickle asks for %.*s.%.*s, which is none of the globals of a state dictionary",
                 (int)(mn > 80 ? 80 : mn), (const char *)m, (int)(sn > 80 ? 80 : sn), (const char *)s);
}

static bool is_global(const Pickle *p, uint32_t id, Global g) {
  return p->obj[id].kind == O_GLOBAL && globals[p->obj[id].n].g == g;
}

static bool seq(const Pickle *p, uint32_t id) {
  return p->obj[id].kind == O_TUPLE || p->obj[id].kind == O_LIST;
}

static uint32_t item(const Pickle *p, uint32_t id, uint32_t i) { return p->obj[id].u.at[i]; }

/* callable(args): what the few globals make. */
static bool reduce(Pickle *p) {
  uint32_t args = 0, fn = 0, id = 0, n;
  if (!pop(p, &args) || !pop(p, &fn)) return false;
  if (p->obj[fn].kind != O_GLOBAL || !seq(p, args)) return bad(p, "a call of what is no global");
  n = p->obj[args].n;
  switch (globals[p->obj[fn].n].g) {
  case G_ORDERED_DICT:
    if (n > 1 || (n && !seq(p, item(p, args, 0)))) return bad(p, "OrderedDict of no list");
    if (!obj_new(p, (Obj){.kind = O_DICT}, &id)) return false;
    for (uint32_t i = 0, list = n ? item(p, args, 0) : 0; n && i < p->obj[list].n; i++) {
      uint32_t pair = item(p, list, i);
      if (!seq(p, pair) || p->obj[pair].n != 2) return bad(p, "OrderedDict of no pairs");
      if (!item_add(p, id, item(p, pair, 0)) || !item_add(p, id, item(p, pair, 1))) return false;
    }
    return push(p, id);
  case G_REBUILD:
  case G_REBUILD_V2:
  case G_REBUILD_V3: {
    bool v3 = globals[p->obj[fn].n].g == G_REBUILD_V3;
    if (n < (v3 ? 7u : 4u) || (v3 && !is_global(p, item(p, args, 6), G_DTYPE)))
      return bad(p, "a tensor without its parts");
    if (!obj_new(p, (Obj){.kind = O_TENSOR}, &id)) return false;
    for (uint32_t i = 0; i < 4; i++)
      if (!item_add(p, id, item(p, args, i))) return false;
    return (!v3 || item_add(p, id, item(p, args, 6))) && push(p, id);
  }
  case G_REBUILD_PARAMETER: return n ? push(p, item(p, args, 0)) : bad(p, "a parameter without its tensor");
  case G_PARAMETER: return push_new(p, (Obj){.kind = O_PARAMETER});
  case G_SIZE:
  case G_SET:
    return n == 1 && seq(p, item(p, args, 0)) ? push(p, item(p, args, 0))
           : n                                ? bad(p, "a set of no list")
                                              : push_new(p, (Obj){.kind = O_LIST});
  case G_DEVICE: return push_new(p, (Obj){.kind = O_OTHER});
  default: return bad(p, "a call of a type");
  }
}

static bool build(Pickle *p) {
  uint32_t state = 0, o = 0;
  if (!pop(p, &state) || !pop(p, &o)) return false;
  if (p->obj[o].kind == O_DICT) return push(p, o); /* _metadata of an OrderedDict */
  if (p->obj[o].kind == O_PARAMETER && seq(p, state) && p->obj[state].n) return push(p, item(p, state, 0));
  return bad(p, "a state for what has none");
}

static bool memo_put(Pickle *p, uint64_t i, uint64_t limit) {
  if (i > limit) return bad(p, "a memo index out of range");
  if (!p->depth || p->stack[p->depth - 1] == MARK) return bad(p, "the stack is empty");
  while (p->nmemo <= i) {
    uint32_t *more = io_grow(p->ctx, p->memo, p->nmemo, &p->mcap, sizeof *more);
    if (!more) return no_memory(p);
    p->memo = more, p->memo[p->nmemo++] = UINT32_MAX;
  }
  p->memo[i] = (uint32_t)p->stack[p->depth - 1];
  return true;
}

static bool memo_get(Pickle *p, uint64_t i) {
  return i < p->nmemo && p->memo[i] != UINT32_MAX ? push(p, p->memo[i]) : bad(p, "a memo index out of range");
}

static bool long_push(Pickle *p, const uint8_t *at, uint64_t n) {
  if (n > 8) return bad(p, "an integer of more than 64 bits");
  uint64_t v = n && at[n - 1] & 0x80 ? UINT64_MAX : 0;
  for (uint64_t i = n; i-- > 0;)
    v = v << 8 | at[i];
  return push_int(p, (int64_t)v);
}

static double big_double(const uint8_t *p) {
  uint64_t v = 0;
  double d;
  for (int i = 0; i < 8; i++)
    v = v << 8 | p[i];
  memcpy(&d, &v, 8);
  return d;
}

/* An opcode and its operand: bytes at `head`, then n bytes of text. */
typedef struct Code {
  uint8_t op;
  const uint8_t *head, *text;
  uint64_t n;
} Code;

static bool cut_off(Pickle *p) { return bad(p, "it ends too early"); }

/* How many bytes an opcode has in front of its text: the length of the text, if it has one. */
static size_t head_size(uint8_t op) {
  switch (op) {
  case 0x80:
  case 'K':
  case 'q':
  case 'h':
  case 0x8a:
  case 'U':
  case 0x8c:
  case 'C': return 1;
  case 'M': return 2;
  case 'J':
  case 'r':
  case 'j':
  case 'X':
  case 'T':
  case 'B':
  case 0x8b: return 4;
  case 'G':
  case 0x95:
  case 0x8d:
  case 0x8e: return 8;
  default: return 0;
  }
}

static bool code_read(Pickle *p, const uint8_t *b, uint64_t *at, uint64_t end, Code *c) {
  if (!inside(*at, 1, end)) return cut_off(p);
  c->op = b[(*at)++], c->head = b + *at, c->n = 0;
  size_t head = head_size(c->op);
  if (!inside(*at, head, end)) return cut_off(p);
  switch (c->op) {
  case 0x8a:
  case 'U':
  case 0x8c:
  case 'C': c->n = c->head[0]; break;
  case 'X':
  case 'T':
  case 'B':
  case 0x8b: c->n = le32(c->head); break;
  case 0x8d:
  case 0x8e: c->n = le64(c->head); break;
  default: break;
  }
  if ((c->op == 'T' || c->op == 0x8b) && c->n > INT32_MAX) return bad(p, "a negative length");
  if (c->n > end - *at - head) return bad(p, "a text or number is longer than the pickle");
  c->text = c->head + head;
  *at += head + c->n;
  return true;
}

static bool value_run(Pickle *p, const Code *c) {
  switch (c->op) {
  case 'N': return push(p, p->none);
  case 0x89: return push(p, p->none + 1);
  case 0x88: return push(p, p->none + 2);
  case 'K': return push_int(p, c->head[0]);
  case 'M': return push_int(p, le16(c->head));
  case 'J': return push_int(p, (int32_t)le32(c->head));
  case 0x8a:
  case 0x8b: return long_push(p, c->text, c->n);
  case 'G': return push_new(p, (Obj){.kind = O_FLOAT, .u.f = big_double(c->head)});
  case 'U':
  case 'T':
  case 'X':
  case 0x8c:
  case 0x8d:
  case 'C':
  case 'B':
  case 0x8e:
    if (c->n > UINT32_MAX) return bad(p, "a text of 4 GiB");
    return push_new(p, (Obj){.kind = O_STR, .n = (uint32_t)c->n, .u.s = c->text});
  default: return io_fail(p->s, TG_ERR_VALUE, "the pickle has opcode 0x%02x, which is not read here", c->op);
  }
}

static bool container_run(Pickle *p, const Code *c) {
  size_t k;
  switch (c->op) {
  case ')': return gather(p, O_TUPLE, 0);
  case 0x85:
  case 0x86:
  case 0x87: return gather(p, O_TUPLE, c->op - 0x84u);
  case ']':
  case 0x8f: return gather(p, O_LIST, 0);
  case '}': return gather(p, O_DICT, 0);
  case 't':
  case 'l':
    if (!above_mark(p, &k) || !gather(p, c->op == 't' ? O_TUPLE : O_LIST, k)) return false;
    p->stack[p->depth - 2] = p->stack[p->depth - 1], p->depth--; /* takes the mark's place */
    return true;
  case 'a': return extend(p, O_LIST, 1, false);
  case 'e':
  case 0x90: return above_mark(p, &k) && extend(p, O_LIST, k, true);
  case 's': return extend(p, O_DICT, 2, false);
  case 'u': return above_mark(p, &k) && extend(p, O_DICT, k, true);
  default: return value_run(p, c);
  }
}

/* The stack alone, and what is called by name. */
static bool code_run(Pickle *p, const Code *c) {
  size_t k;
  uint32_t x, y;
  switch (c->op) {
  case 0x80: return c->head[0] <= 5 || bad(p, "an unknown protocol");
  case 0x95: return true; /* a frame: a hint for buffers */
  case '(': return push(p, MARK);
  case '0':
    if (!p->depth) return bad(p, "the stack is empty");
    p->depth--;
    return true;
  case '1':
    if (!above_mark(p, &k)) return false;
    p->depth -= k + 1;
    return true;
  case '2': return pop(p, &x) && push(p, x) && push(p, x);
  case 'h': return memo_get(p, c->head[0]);
  case 'j': return memo_get(p, le32(c->head));
  case 0x93:
    if (!pop(p, &y) || !pop(p, &x)) return false;
    if (p->obj[x].kind != O_STR || p->obj[y].kind != O_STR) return bad(p, "a global without a name");
    return global_push(p, p->obj[x].u.s, p->obj[x].n, p->obj[y].u.s, p->obj[y].n);
  case 'R':
  case 0x81: return reduce(p);
  case 'b': return build(p);
  case 'Q':
    return pop(p, &x) && obj_new(p, (Obj){.kind = O_PERSISTENT}, &y) && item_add(p, y, x) && push(p, y);
  default: return container_run(p, c);
  }
}

/* A module and a name, each ended by a newline, from *at on. */
static bool global_run(Pickle *p, const uint8_t *b, uint64_t *at, uint64_t end) {
  const uint8_t *module = b + *at, *name_end = NULL;
  const uint8_t *module_end = memchr(module, '\n', (size_t)(end - *at));
  if (module_end) name_end = memchr(module_end + 1, '\n', (size_t)(b + end - module_end - 1));
  if (!name_end) return bad(p, "a global without a name");
  *at = (uint64_t)(name_end + 1 - b);
  return global_push(p, module, (size_t)(module_end - module), module_end + 1,
                     (size_t)(name_end - module_end - 1));
}

/* The objects that every pickle knows by these numbers: None, False, True. */
static bool constants_made(Pickle *p) {
  uint32_t id;
  return p->nobj || (obj_new(p, (Obj){.kind = O_NONE}, &p->none) && obj_new(p, (Obj){.kind = O_BOOL}, &id) &&
                     obj_new(p, (Obj){.kind = O_BOOL, .u.i = 1}, &id));
}

/* Runs one pickle at p[*at..end); *at moves behind it, *out is what it leaves. A memo has as many places as
 * the pickle has bytes. */
static bool run(Pickle *p, const uint8_t *b, uint64_t *at, uint64_t end, uint32_t *out) {
  uint64_t start = *at;
  if (end - start > MAX_PICKLE) end = start + MAX_PICKLE;
  p->depth = p->nmemo = 0;
  bool ok = constants_made(p);
  Code c = {0};
  while (ok && (ok = code_read(p, b, at, end, &c)) && c.op != '.') {
    switch (c.op) {
    case 'q': ok = memo_put(p, c.head[0], end - start); break;
    case 'r': ok = memo_put(p, le32(c.head), end - start); break;
    case 0x94: ok = memo_put(p, p->nmemo, end - start); break;
    case 'c': ok = global_run(p, b, at, end); break;
    default: ok = code_run(p, &c);
    }
  }
  return ok && pop(p, out) && (p->depth == 0 || bad(p, "more than one value is left"));
}

/* ---- storages and tensors */
static const char *key_text(Pickle *p, uint32_t id, char number[24], size_t *n) {
  const Obj *o = &p->obj[id];
  if (o->kind == O_STR) {
    *n = o->n;
    return (const char *)o->u.s;
  }
  if (o->kind != O_INT) return NULL;
  *n = (size_t)snprintf(number, 24, "%lld", (long long)o->u.i);
  return number;
}

static bool storage_add(Pickle *p, const char *key, size_t n, Storage s) {
  bool there = false;
  Storage *more = io_grow(p->ctx, p->storage, p->nstorage, &p->stcap, sizeof *more);
  if (!more) return no_memory(p);
  p->storage = more, p->storage[p->nstorage] = s;
  if (!index_put(p->ctx, &p->storages, key, n, p->nstorage++, &there)) return no_memory(p);
  return !there || io_fail(p->s, TG_ERR_VALUE, "storage %.*s is there twice", (int)n, key);
}

/* A key as text that stays. */
static const char *key_keep(Pickle *p, Doc *d, uint32_t id, size_t *n) {
  char number[24];
  const char *k = key_text(p, id, number, n);
  if (!k || k != number) return k;
  char *copy = doc_alloc(d, *n + 1);
  if (copy) memcpy(copy, k, *n);
  return copy;
}

static bool sizes(Pickle *p, uint32_t id, int64_t *v, int *n) {
  if (!seq(p, id) || p->obj[id].n > TG_MAX_RANK)
    return seq(p, id) ? io_fail(p->s, TG_ERR_SHAPE, "a tensor of more than %d axes", TG_MAX_RANK)
                      : bad(p, "a shape that is no tuple");
  *n = (int)p->obj[id].n;
  for (int i = 0; i < *n; i++) {
    const Obj *o = &p->obj[item(p, id, (uint32_t)i)];
    if (o->kind != O_INT || o->u.i < 0) return bad(p, "a shape or stride that is no number from 0 up");
    v[i] = o->u.i;
  }
  return true;
}

/* What a tensor says of its storage; NULL: an error in the context. The key is text of `number` or of p. */
static const char *storage_key(Pickle *p, uint32_t storage, char number[24], size_t *n) {
  const char *key = NULL;
  if (seq(p, storage) && p->obj[storage].n >= 5) {
    const Obj *tag = &p->obj[item(p, storage, 0)];
    if (tag->kind == O_STR && tag->n == 7 && !memcmp(tag->u.s, "storage", 7) &&
        is_global(p, item(p, storage, 1), G_STORAGE))
      key = key_text(p, item(p, storage, 2), number, n);
  }
  if (!key) return bad(p, "a tensor without a storage"), NULL;
  if (p->obj[storage].n > 5 && p->obj[item(p, storage, 5)].kind != O_NONE) {
    io_fail(p->s, TG_ERR_VALUE, "storage %.*s is a view of another, which is not read here", (int)*n, key);
    return NULL;
  }
  return key;
}

/* A tensor as it lies in its storage. */
typedef struct Strided {
  int n;
  int64_t dims[TG_MAX_RANK], strides[TG_MAX_RANK];
  int64_t offset; /* elements */
  int64_t last;   /* the last element, from the first on */
} Strided;

static bool lies_inside(Strided *x, uint64_t nelem) {
  int64_t numel = 1;
  x->last = 0;
  for (int i = 0; i < x->n; i++) {
    if (__builtin_mul_overflow(numel, x->dims[i], &numel)) return false;
    if (x->dims[i] > 1 && x->strides[i] > INT64_MAX / 64 / x->dims[i]) return false;
    if (x->dims[i] > 1) x->last += (x->dims[i] - 1) * x->strides[i];
  }
  return x->offset <= INT64_MAX / 64 && x->last <= INT64_MAX / 64 &&
         (uint64_t)(x->offset + x->last + 1) <= nelem;
}

/* The axes longer than 1 as they lie in memory, the longest stride first: how many; -1: the strides are not
 * those of such an order. */
static int memory_order(const Strided *x, int64_t order[TG_MAX_RANK]) {
  int m = 0;
  for (int i = 0; i < x->n; i++)
    if (x->dims[i] > 1) order[m++] = i;
  for (int i = 1; i < m; i++)
    for (int k = i; k > 0 && x->strides[order[k]] > x->strides[order[k - 1]]; k--) {
      int64_t o = order[k];
      order[k] = order[k - 1], order[k - 1] = o;
    }
  int64_t want = 1;
  for (int k = m; k-- > 0;) {
    if (x->strides[order[k]] != want) return -1;
    want *= x->dims[order[k]];
  }
  return m;
}

static bool strided_read(Pickle *p, uint32_t id, Strided *x) {
  const Obj *offset = &p->obj[item(p, id, 1)];
  int nstrides;
  if (!sizes(p, item(p, id, 2), x->dims, &x->n) || !sizes(p, item(p, id, 3), x->strides, &nstrides))
    return false;
  if (x->n != nstrides || offset->kind != O_INT || offset->u.i < 0)
    return bad(p, "a tensor whose parts do not fit together");
  x->offset = offset->u.i;
  return true;
}

/* A view of the file: read in the order of memory, then its axes put in theirs. */
static TgTensor *tensor_of(Pickle *p, uint32_t id) {
  uint32_t storage = item(p, id, 0);
  if (p->obj[storage].kind == O_PERSISTENT) storage = item(p, storage, 0);
  char number[24];
  size_t nkey = 0, place;
  const char *key = storage_key(p, storage, number, &nkey);
  Strided x;
  if (!key || !strided_read(p, id, &x)) return NULL;
  TgDType d = globals[p->obj[p->obj[id].n > 4 ? item(p, id, 4) : item(p, storage, 1)].n].d;
  for (int i = 0; i < x.n; i++)
    if (!x.dims[i]) return tg_zeros(p->ctx, x.n, x.dims, .dtype = d);

  if (!index_find(&p->storages, key, nkey, &place)) {
    io_fail(p->s, TG_ERR_VALUE, "storage %.*s is missing", (int)nkey, key);
    return NULL;
  }
  const Storage *s = &p->storage[place];
  int64_t size = (int64_t)tg_dtype_size(d);
  if (!lies_inside(&x, s->nbytes / (uint64_t)size)) {
    io_fail(p->s, TG_ERR_VALUE, "a tensor lies outside of storage %.*s", (int)nkey, key);
    return NULL;
  }
  int64_t order[TG_MAX_RANK], sorted[TG_MAX_RANK], back[TG_MAX_RANK];
  int m = memory_order(&x, order);
  if (m < 0) {
    io_fail(p->s, TG_ERR_VALUE, "a tensor of storage %.*s has strides that are no permutation of its axes",
            (int)nkey, key);
    return NULL;
  }
  for (int k = 0; k < m; k++)
    sorted[k] = x.dims[order[k]];
  for (int k = 0, axis = 0; axis < x.n; axis++) /* axis (of those longer than 1) -> where it lies */
    for (int q = 0; q < m; q++)
      if (order[q] == axis) back[k++] = q;
  TgTensor *t = source_view(s->in, s->at + (uint64_t)(x.offset * size), d, m, sorted);
  return tg_reshape(tg_permute(t, m, back), x.n, x.dims);
}

/* ---- objects -> the tree. Each object is made once; one that holds itself is refused, so the tree ends. */
typedef struct Step {
  uint32_t id;
  uint32_t next;
  TgValue *to;
} Step;

static bool scalar_of(Pickle *p, Doc *d, uint32_t id, TgValue *v) { /* anything but lists and maps */
  const Obj *o = &p->obj[id];
  switch (o->kind) {
  case O_NONE: return *v = (TgValue){0}, true;
  case O_BOOL: return *v = (TgValue){.kind = TG_KIND_BOOL, .u.i = o->u.i}, true;
  case O_INT: return *v = (TgValue){.kind = TG_KIND_INT, .u.i = o->u.i}, true;
  case O_FLOAT: return *v = (TgValue){.kind = TG_KIND_FLOAT, .u.f = o->u.f}, true;
  case O_STR: return doc_string(d, v, o->u.s, o->n);
  case O_TENSOR: return doc_tensor(d, v, tensor_of(p, id));
  default: return *v = (TgValue){.kind = TG_KIND_OTHER}, true;
  }
}

/* A tensor of a tar by its key, where id is the persistent id of one; else id. */
static uint32_t tensor_named(Pickle *p, uint32_t id) {
  char number[24];
  size_t n, at;
  const char *key = p->obj[id].kind == O_PERSISTENT ? key_text(p, item(p, id, 0), number, &n) : NULL;
  return key && index_find(&p->tensors, key, n, &at) ? (uint32_t)at : id;
}

/* The keys of a dict into its map; a key set twice stands once, with its last value. */
static bool keys_made(Pickle *p, Doc *d, Obj *dict, TgValue *map) {
  Index seen = {0};
  uint32_t kept = 0;
  bool ok = true;
  for (uint32_t i = 0; ok && i < dict->n; i++) {
    size_t nkey, at = kept;
    bool there = false;
    uint32_t k = dict->u.at[2 * i];
    const char *key = p->obj[k].kind == O_STR ? key_text(p, k, NULL, &nkey) : NULL;
    if (p->obj[k].kind != O_STR && p->obj[k].kind != O_INT) {
      ok = bad(p, "a key that is neither text nor a whole number");
      break;
    }
    if (key && index_put(p->ctx, &seen, key, nkey, kept, &there) && there) index_find(&seen, key, nkey, &at);
    dict->u.at[2 * at] = k, dict->u.at[2 * at + 1] = dict->u.at[2 * i + 1];
    if (!there) ok = scalar_of(p, d, k, &map->u.at[2 * kept++]);
  }
  index_free(p->ctx, &seen);
  dict->n = kept, map->n = kept;
  return ok;
}

/* The way from the root to what is being made. */
typedef struct Path {
  Step *at;
  size_t depth, cap;
} Path;

/* A list or map is begun: its items are made next. */
static bool path_push(Pickle *p, Doc *d, Path *path, uint32_t id, TgValue *made, TgValue *to) {
  if (path->depth >= MAX_DEPTH)
    return io_fail(p->s, TG_ERR_LIMIT, "the pickle is nested more than %d deep", MAX_DEPTH);
  Step *more = io_grow(p->ctx, path->at, path->depth, &path->cap, sizeof *more);
  if (!more) return no_memory(p);
  path->at = more;
  Obj *o = &p->obj[id];
  if (!doc_items(d, made, o->kind == O_DICT ? TG_KIND_MAP : TG_KIND_LIST, o->n)) return false;
  if (o->kind == O_DICT && !keys_made(p, d, o, made)) return false;
  o->open = true;
  path->at[path->depth++] = (Step){id, 0, to};
  return true;
}

/* The next item to be made, and where it goes; what is complete on the way to it is closed. False: none. */
static bool path_next(Pickle *p, Path *path, TgValue *made, uint32_t *id, TgValue **to) {
  for (; path->depth; path->depth--) {
    Step *s = &path->at[path->depth - 1];
    Obj *o = &p->obj[s->id];
    if (s->next < o->n) {
      uint32_t i = s->next++;
      if (o->kind == O_DICT) i = 2 * i + 1;
      *id = o->u.at[i], *to = &made[s->id].u.at[i];
      return true;
    }
    o->open = false, o->done = true, *s->to = made[s->id];
  }
  return false;
}

static bool tree_of(Pickle *p, Doc *d, uint32_t root) {
  Path path = {0};
  TgValue *made = tg_alloc(p->ctx, (p->nobj + 1) * sizeof *made), *to = &d->root;
  bool ok = made != NULL;
  uint32_t id = root;
  do {
    if (!ok) break;
    for (uint32_t named; (named = tensor_named(p, id)) != id;)
      id = named;
    Obj *o = &p->obj[id];
    if (o->open)
      ok = bad(p, "a value holds itself");
    else if (o->done)
      *to = made[id];
    else if (o->kind == O_TUPLE || o->kind == O_LIST || o->kind == O_DICT)
      ok = path_push(p, d, &path, id, &made[id], to);
    else
      ok = scalar_of(p, d, id, &made[id]), o->done = true, *to = made[id];
  } while (ok && path_next(p, &path, made, &id, &to));
  tg_free(p->ctx, made), tg_free(p->ctx, path.at);
  return ok;
}

/* ---- the three containers */
static const uint8_t stream_magic[] = {0x80, 2,    0x8a, 10,   0x6c, 0xfc, 0x9c, 0x46,
                                       0xf9, 0x20, 0x6a, 0xa8, 0x50, 0x19, '.'};

/* The files of an archive; the ones that were unpacked are tensors of their own. */
typedef struct Files {
  TgState *state;
  Source *at;
} Files;

static bool files_open(Pickle *p, Files *f, TgState *(*read)(const Source *, Source **)) {
  f->state = read(p->s, &f->at);
  for (size_t i = 0; i < tg_state_count(f->state); i++)
    if (!f->at[i].p && !source_open(&f->at[i], f->at[i].t, p->s->what, p->s->name)) return false;
  return f->state != NULL;
}

static const Source *file_named(const Files *f, const char *name) {
  const char *have;
  for (size_t i = 0; tg_state_at(f->state, i, &have); i++)
    if (!strcmp(have, name)) return &f->at[i];
  return NULL;
}

static bool load_zip(Pickle *p, Doc *d, const Files *f) {
  static const char tail[] = "/data.pkl";
  const char *name, *base = NULL;
  size_t n = 0;
  const Source *pickle = NULL;
  for (size_t i = 0; !pickle && tg_state_at(f->state, i, &name); i++) {
    const char *slash = strchr(name, '/');
    if (slash && !strcmp(slash, tail)) pickle = &f->at[i], base = name, n = (size_t)(slash - name) + 1;
  }
  if (!pickle) return io_fail(p->s, TG_ERR_VALUE, "the zip has no data.pkl: it is no checkpoint");
  for (size_t i = 0; tg_state_at(f->state, i, &name); i++) {
    if (strncmp(name, base, n)) continue;
    if (!strcmp(name + n, "byteorder") && (f->at[i].n < 6 || memcmp(f->at[i].p, "little", 6)))
      return io_fail(p->s, TG_ERR_VALUE, "the numbers are not little-endian");
    if (!strncmp(name + n, "data/", 5) && name[n + 5] &&
        !storage_add(p, name + n + 5, strlen(name + n + 5), (Storage){&f->at[i], 0, f->at[i].n}))
      return false;
  }
  uint32_t root;
  uint64_t at = 0;
  return run(p, pickle->p, &at, pickle->n, &root) && tree_of(p, d, root);
}

static bool count_of(Pickle *p, uint32_t id, uint64_t limit, uint64_t *n) {
  if (p->obj[id].kind != O_INT || p->obj[id].u.i < 0 || (uint64_t)p->obj[id].u.i > limit)
    return bad(p, "a count that cannot be");
  *n = (uint64_t)p->obj[id].u.i;
  return true;
}

/* u64 count and the elements behind it: a storage. */
static bool raw_storage(Pickle *p, Doc *d, const Source *s, uint64_t *at, uint32_t key, size_t size) {
  size_t n = 0;
  const char *k = key_keep(p, d, key, &n);
  if (!k || !inside(*at, 8, s->n)) return bad(p, k ? "a storage is cut off" : "a storage without a key");
  uint64_t count = le64(s->p + *at);
  *at += 8;
  if (count > s->n / size || !inside(*at, count * size, s->n)) return bad(p, "a storage is cut off");
  *at += count * size;
  return storage_add(p, k, n, (Storage){s, *at - count * size, count * size});
}

/* How wide the elements of each storage are: the persistent ids say it. */
static bool widths_read(Pickle *p, Doc *d, Index *x) {
  for (uint32_t i = 0; i < p->nobj; i++) {
    size_t n = 0;
    bool there;
    uint32_t t = p->obj[i].kind == O_PERSISTENT ? item(p, i, 0) : p->none;
    const char *key = seq(p, t) && p->obj[t].n > 4 && is_global(p, item(p, t, 1), G_STORAGE)
                          ? key_keep(p, d, item(p, t, 2), &n)
                          : NULL;
    if (key && !index_put(p->ctx, x, key, n, tg_dtype_size(globals[p->obj[item(p, t, 1)].n].d), &there))
      return no_memory(p);
  }
  return true;
}

static bool load_stream(Pickle *p, Doc *d) {
  const Source *s = p->s;
  uint64_t at = sizeof stream_magic;
  uint32_t version, system, root, keys;
  if (!run(p, s->p, &at, s->n, &version)) return false;
  if (p->obj[version].kind != O_INT || p->obj[version].u.i != 1001) return bad(p, "not protocol 1001");
  if (!run(p, s->p, &at, s->n, &system) || !run(p, s->p, &at, s->n, &root) || !run(p, s->p, &at, s->n, &keys))
    return false;
  for (uint32_t i = 0; p->obj[system].kind == O_DICT && i < p->obj[system].n; i++) {
    const Obj *k = &p->obj[item(p, system, 2 * i)];
    if (k->kind == O_STR && k->n == 13 && !memcmp(k->u.s, "little_endian", 13) &&
        item(p, system, 2 * i + 1) != p->none + 2)
      return io_fail(s, TG_ERR_VALUE, "the numbers are not little-endian");
  }
  if (!seq(p, keys)) return bad(p, "no list of storages");
  Index widths = {0};
  bool ok = widths_read(p, d, &widths);
  for (uint32_t i = 0; ok && i < p->obj[keys].n; i++) {
    char number[24];
    size_t n = 0, size;
    const char *key = key_text(p, item(p, keys, i), number, &n);
    ok = (key && index_find(&widths, key, n, &size)) || bad(p, "a storage that no tensor names");
    ok = ok && raw_storage(p, d, s, &at, item(p, keys, i), size);
  }
  index_free(p->ctx, &widths);
  return ok && tree_of(p, d, root);
}

static bool int_add(Pickle *p, uint32_t to, uint64_t v) {
  uint32_t id;
  return obj_new(p, (Obj){.kind = O_INT, .u.i = (int64_t)v}, &id) && item_add(p, to, id);
}

/* What a persistent id would say of a storage: ("storage", its type, key, .., ..). */
static bool storage_named(Pickle *p, uint32_t key, TgDType d, uint32_t *out) {
  uint32_t parts[5], type = 0;
  while (type < NGLOBALS && !(globals[type].g == G_STORAGE && globals[type].d == d))
    type++;
  if (!obj_new(p, (Obj){.kind = O_STR, .n = 7, .u.s = (const uint8_t *)"storage"}, &parts[0]) ||
      !obj_new(p, (Obj){.kind = O_GLOBAL, .n = type}, &parts[1]) || !obj_new(p, (Obj){.kind = O_TUPLE}, out))
    return false;
  parts[2] = key, parts[3] = parts[4] = p->none;
  for (int k = 0; k < 5; k++)
    if (!item_add(p, *out, parts[k])) return false;
  return true;
}

/* A tensor of the oldest layout at s[*at]: its pickle (key, storage, type), then rank, sizes, strides and
 * offset as numbers of 8 bytes, the rank of 4 and 4 of nothing. */
static bool old_tensor(Pickle *p, Doc *d, const Source *s, uint64_t *at) {
  uint32_t id, storage, made;
  if (!run(p, s->p, at, s->n, &id)) return false;
  if (!seq(p, id) || p->obj[id].n != 3 || !is_global(p, item(p, id, 2), G_TENSOR_TYPE))
    return bad(p, "a tensor without key, storage and type");
  uint64_t rank = inside(*at, 8, s->n) ? le32(s->p + *at) : UINT64_MAX;
  if (rank > TG_MAX_RANK || !inside(*at, 8 + 16 * rank + 8, s->n)) return bad(p, "a tensor is cut off");
  *at += 8;
  if (!storage_named(p, item(p, id, 1), globals[p->obj[item(p, id, 2)].n].d, &storage) ||
      !obj_new(p, (Obj){.kind = O_TENSOR}, &made) || !item_add(p, made, storage) ||
      !int_add(p, made, le64(s->p + *at + 16 * rank)))
    return false;
  for (int part = 0; part < 2; part++) { /* sizes, strides */
    uint32_t list;
    if (!obj_new(p, (Obj){.kind = O_TUPLE}, &list)) return false;
    for (uint64_t k = 0; k < rank; k++, *at += 8)
      if (!int_add(p, list, le64(s->p + *at))) return false;
    if (!item_add(p, made, list)) return false;
  }
  *at += 8;
  size_t len = 0;
  bool there = false;
  const char *key = key_keep(p, d, item(p, id, 0), &len);
  if (!key || !index_put(p->ctx, &p->tensors, key, len, made, &there) || there)
    return bad(p, "a tensor's key");
  return true;
}

static bool load_tar(Pickle *p, Doc *d, const Files *f) {
  const Source *pickle = file_named(f, "pickle"), *s = file_named(f, "storages");
  const Source *tensors =
      file_named(f, "tensors"); /* the oldest layout: a file of their own, named by number */
  if (!pickle || !s)
    return io_fail(p->s, TG_ERR_VALUE, "the tar has no files pickle and storages: it is no checkpoint");
  uint64_t at = 0, n = 0;
  uint32_t id = 0;
  if (!run(p, s->p, &at, s->n, &id) || !count_of(p, id, s->n, &n)) return false;
  for (uint64_t i = 0; i < n; i++) {
    if (!run(p, s->p, &at, s->n, &id)) return false;
    if (!seq(p, id) || p->obj[id].n != 3 || !is_global(p, item(p, id, 2), G_STORAGE))
      return bad(p, "a storage without key, place and type");
    if (!raw_storage(p, d, s, &at, item(p, id, 0), tg_dtype_size(globals[p->obj[item(p, id, 2)].n].d)))
      return false;
  }
  at = 0;
  if (tensors && (!run(p, tensors->p, &at, tensors->n, &id) || !count_of(p, id, tensors->n, &n)))
    return false;
  for (uint64_t i = 0; tensors && i < n; i++)
    if (!old_tensor(p, d, tensors, &at)) return false;
  at = 0;
  return run(p, pickle->p, &at, pickle->n, &id) && tree_of(p, d, id);
}

static TgValue *load(TgTensor *file, const char *path) {
  Source s;
  bool ok = source_open(&s, file, "torch_load", path);
  Pickle p = {.s = &s, .ctx = s.ctx};
  Files f = {0};
  Doc *d = ok ? doc_new(s.ctx) : NULL;
  ok = d && !tg_scope_begin(s.ctx);
  bool scope = ok;
  if (!ok) {
  } else if (zip_is(&s))
    ok = files_open(&p, &f, zip_read) && load_zip(&p, d, &f);
  else if (s.n > sizeof stream_magic && !memcmp(s.p, stream_magic, sizeof stream_magic))
    ok = load_stream(&p, d);
  else if (tar_is(&s))
    ok = files_open(&p, &f, tar_read) && load_tar(&p, d, &f);
  else
    ok = io_fail(&s, TG_ERR_VALUE, "no torch checkpoint: neither a zip, a stream of pickles, nor a tar");
  if (scope) tg_scope_end(s.ctx);
  for (size_t i = 0; i < p.nobj; i++)
    if (p.obj[i].cap) tg_free(s.ctx, p.obj[i].u.at);
  for (size_t i = 0; i < tg_state_count(f.state); i++)
    source_close(&f.at[i]);
  tg_free(s.ctx, p.obj), tg_free(s.ctx, p.stack), tg_free(s.ctx, p.memo), tg_free(s.ctx, p.storage),
      tg_free(s.ctx, f.at);
  index_free(s.ctx, &p.storages), index_free(s.ctx, &p.tensors);
  tg_state_free(f.state);
  source_close(&s);
  if (!ok) doc_free(d);
  return ok ? &d->root : NULL;
}

TgValue *tg_torch_load(TgTensor *file) { return load(file, NULL); }

TgValue *tg_torch_load_file(TgContext *ctx, const char *path) {
  if (tg_scope_begin(ctx)) return NULL;
  TgValue *v = load(file_tensor(ctx, path), path);
  tg_scope_end(ctx);
  return v;
}
