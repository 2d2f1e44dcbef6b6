/* torch_pickle.c: the interpreter of pickles. In: bytes. Out: objects, and the number of the object that
 * the pickle leaves on the stack. */
#include "torch_pickle.h"

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

enum { NGLOBALS = sizeof globals / sizeof *globals, MARK = -1, MAX_PICKLE = 1 << 30, MAX_OBJECTS = 1 << 25 };

bool pickle_bad(Pickle *p, const char *what) {
  return io_fail(p->s, TG_ERR_VALUE, "the pickle is damaged: %s", what);
}

bool pickle_no_memory(Pickle *p) { return io_fail(p->s, TG_ERR_NOMEM, "out of memory"); }

bool pickle_new(Pickle *p, Obj o, uint32_t *id) {
  Obj *more = p->nobj < MAX_OBJECTS ? io_grow(p->ctx, p->obj, p->nobj, &p->cap, sizeof *more) : NULL;
  if (!more)
    return p->nobj < MAX_OBJECTS
               ? pickle_no_memory(p)
               : io_fail(p->s, TG_ERR_LIMIT, "the pickle has more than %d objects", MAX_OBJECTS);
  p->obj = more;
  *id = (uint32_t)p->nobj;
  p->obj[p->nobj++] = o;
  return true;
}

static bool push(Pickle *p, int64_t v) {
  int64_t *more = io_grow(p->ctx, p->stack, p->depth, &p->scap, sizeof *more);
  if (!more) return pickle_no_memory(p);
  p->stack = more;
  p->stack[p->depth++] = v;
  return true;
}

static bool push_new(Pickle *p, Obj o) {
  uint32_t id = 0;
  return pickle_new(p, o, &id) && push(p, id);
}

static bool push_int(Pickle *p, int64_t v) { return push_new(p, (Obj){.kind = O_INT, .u.i = v}); }

static bool pop(Pickle *p, uint32_t *id) {
  if (!p->depth || p->stack[p->depth - 1] == MARK) return pickle_bad(p, "the stack is empty");
  *id = (uint32_t)p->stack[--p->depth];
  return true;
}

/* Counts the values above the last mark of the stack. */
static bool above_mark(Pickle *p, size_t *n) {
  for (*n = 0; *n < p->depth && p->stack[p->depth - 1 - *n] != MARK; ++*n) {}
  return *n < p->depth || pickle_bad(p, "a mark is missing");
}

bool pickle_add(Pickle *p, uint32_t to, uint32_t item) {
  Obj *o = &p->obj[to];
  /* open: a key was added, and its value comes next */
  size_t used = (size_t)o->n * (o->kind == O_DICT ? 2 : 1) + (o->open ? 1 : 0);
  uint32_t *at = io_grow(p->ctx, o->u.at, used, &o->cap, sizeof *at);
  if (!at) return pickle_no_memory(p);
  o->u.at = at;
  at[used] = item;
  if (o->kind == O_DICT) o->open = !o->open;
  if (o->kind != O_DICT || !o->open) o->n++;
  return true;
}

/* Replaces the n topmost values by a new object with these items. */
static bool gather(Pickle *p, Kind kind, size_t n) {
  uint32_t id = 0;
  if (n > p->depth || !pickle_new(p, (Obj){.kind = (uint8_t)kind}, &id))
    return n <= p->depth ? false : pickle_bad(p, "the stack is empty");
  for (size_t i = 0; i < n; i++) {
    int64_t v = p->stack[p->depth - n + i];
    if (v == MARK) return pickle_bad(p, "a mark among items");
    if (!pickle_add(p, id, (uint32_t)v)) return false;
  }
  p->depth -= n;
  return push(p, id);
}

/* Adds the n topmost values to the object below them; mark: a mark is between. */
static bool extend(Pickle *p, Kind kind, size_t n, bool mark) {
  if (p->depth < n + mark + 1 || p->stack[p->depth - n - mark - 1] == MARK)
    return pickle_bad(p, "the stack is empty");
  uint32_t to = (uint32_t)p->stack[p->depth - n - mark - 1];
  if (p->obj[to].kind != kind || (kind == O_DICT && n % 2))
    return pickle_bad(p, "items are added to what is no list or map");
  for (size_t i = 0; i < n; i++) {
    int64_t v = p->stack[p->depth - n + i];
    if (v == MARK) return pickle_bad(p, "a mark among items");
    if (!pickle_add(p, to, (uint32_t)v)) return false;
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

bool pickle_is(const Pickle *p, uint32_t id, Global g) {
  return p->obj[id].kind == O_GLOBAL && globals[p->obj[id].n].g == g;
}

TgDType pickle_dtype(const Pickle *p, uint32_t id) { return globals[p->obj[id].n].d; }

bool pickle_storage(Pickle *p, TgDType d, uint32_t *out) {
  uint32_t type = 0;
  while (type < NGLOBALS && !(globals[type].g == G_STORAGE && globals[type].d == d))
    type++;
  return pickle_new(p, (Obj){.kind = O_GLOBAL, .n = type}, out);
}

/* Runs a call callable(args) of one of the known globals. */
static bool reduce(Pickle *p) {
  uint32_t args = 0, fn = 0, id = 0, n;
  if (!pop(p, &args) || !pop(p, &fn)) return false;
  if (p->obj[fn].kind != O_GLOBAL || !pickle_seq(p, args))
    return pickle_bad(p, "a call of what is no global");
  n = p->obj[args].n;
  switch (globals[p->obj[fn].n].g) {
  case G_ORDERED_DICT:
    if (n > 1 || (n && !pickle_seq(p, pickle_item(p, args, 0))))
      return pickle_bad(p, "OrderedDict of no list");
    if (!pickle_new(p, (Obj){.kind = O_DICT}, &id)) return false;
    for (uint32_t i = 0, list = n ? pickle_item(p, args, 0) : 0; n && i < p->obj[list].n; i++) {
      uint32_t pair = pickle_item(p, list, i);
      if (!pickle_seq(p, pair) || p->obj[pair].n != 2) return pickle_bad(p, "OrderedDict of no pairs");
      if (!pickle_add(p, id, pickle_item(p, pair, 0)) || !pickle_add(p, id, pickle_item(p, pair, 1)))
        return false;
    }
    return push(p, id);
  case G_REBUILD:
  case G_REBUILD_V2:
  case G_REBUILD_V3: {
    bool v3 = globals[p->obj[fn].n].g == G_REBUILD_V3;
    if (n < (v3 ? 7u : 4u) || (v3 && !pickle_is(p, pickle_item(p, args, 6), G_DTYPE)))
      return pickle_bad(p, "a tensor without its parts");
    if (!pickle_new(p, (Obj){.kind = O_TENSOR}, &id)) return false;
    for (uint32_t i = 0; i < 4; i++)
      if (!pickle_add(p, id, pickle_item(p, args, i))) return false;
    return (!v3 || pickle_add(p, id, pickle_item(p, args, 6))) && push(p, id);
  }
  case G_REBUILD_PARAMETER:
    return n ? push(p, pickle_item(p, args, 0)) : pickle_bad(p, "a parameter without its tensor");
  case G_PARAMETER: return push_new(p, (Obj){.kind = O_PARAMETER});
  case G_SIZE:
  case G_SET:
    return n == 1 && pickle_seq(p, pickle_item(p, args, 0)) ? push(p, pickle_item(p, args, 0))
           : n                                              ? pickle_bad(p, "a set of no list")
                                                            : push_new(p, (Obj){.kind = O_LIST});
  case G_DEVICE: return push_new(p, (Obj){.kind = O_OTHER});
  default: return pickle_bad(p, "a call of a type");
  }
}

static bool build(Pickle *p) {
  uint32_t state = 0, o = 0;
  if (!pop(p, &state) || !pop(p, &o)) return false;
  if (p->obj[o].kind == O_DICT) return push(p, o); /* this is _metadata of an OrderedDict */
  if (p->obj[o].kind == O_PARAMETER && pickle_seq(p, state) && p->obj[state].n)
    return push(p, pickle_item(p, state, 0));
  return pickle_bad(p, "a state for what has none");
}

static bool memo_put(Pickle *p, uint64_t i, uint64_t limit) {
  if (i > limit) return pickle_bad(p, "a memo index out of range");
  if (!p->depth || p->stack[p->depth - 1] == MARK) return pickle_bad(p, "the stack is empty");
  while (p->nmemo <= i) {
    uint32_t *more = io_grow(p->ctx, p->memo, p->nmemo, &p->mcap, sizeof *more);
    if (!more) return pickle_no_memory(p);
    p->memo = more;
    p->memo[p->nmemo++] = UINT32_MAX;
  }
  p->memo[i] = (uint32_t)p->stack[p->depth - 1];
  return true;
}

static bool memo_get(Pickle *p, uint64_t i) {
  return i < p->nmemo && p->memo[i] != UINT32_MAX ? push(p, p->memo[i])
                                                  : pickle_bad(p, "a memo index out of range");
}

static bool long_push(Pickle *p, const uint8_t *at, uint64_t n) {
  if (n > 8) return pickle_bad(p, "an integer of more than 64 bits");
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

/* An opcode and its operand: bytes at `head`, followed by n bytes of text. */
typedef struct Code {
  uint8_t op;
  const uint8_t *head, *text;
  uint64_t n;
} Code;

static bool cut_off(Pickle *p) { return pickle_bad(p, "it ends too early"); }

/* The number of bytes between an opcode and its text; if there is a text, they hold its length. */
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
  c->op = b[(*at)++];
  c->head = b + *at;
  c->n = 0;
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
  if ((c->op == 'T' || c->op == 0x8b) && c->n > INT32_MAX) return pickle_bad(p, "a negative length");
  if (c->n > end - *at - head) return pickle_bad(p, "a text or number is longer than the pickle");
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
    if (c->n > UINT32_MAX) return pickle_bad(p, "a text of 4 GiB");
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
    p->stack[p->depth - 2] = p->stack[p->depth - 1];
    p->depth--; /* the new object replaces the mark */
    return true;
  case 'a': return extend(p, O_LIST, 1, false);
  case 'e':
  case 0x90: return above_mark(p, &k) && extend(p, O_LIST, k, true);
  case 's': return extend(p, O_DICT, 2, false);
  case 'u': return above_mark(p, &k) && extend(p, O_DICT, k, true);
  default: return value_run(p, c);
  }
}

/* Opcodes that only change the stack, and calls of globals. */
static bool code_run(Pickle *p, const Code *c) {
  size_t k;
  uint32_t x = 0, y = 0;
  switch (c->op) {
  case 0x80: return c->head[0] <= 5 || pickle_bad(p, "an unknown protocol");
  case 0x95: return true; /* a frame: only a hint for buffering */
  case '(': return push(p, MARK);
  case '0':
    if (!p->depth) return pickle_bad(p, "the stack is empty");
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
    if (p->obj[x].kind != O_STR || p->obj[y].kind != O_STR) return pickle_bad(p, "a global without a name");
    return global_push(p, p->obj[x].u.s, p->obj[x].n, p->obj[y].u.s, p->obj[y].n);
  case 'R':
  case 0x81: return reduce(p);
  case 'b': return build(p);
  case 'Q':
    return pop(p, &x) && pickle_new(p, (Obj){.kind = O_PERSISTENT}, &y) && pickle_add(p, y, x) && push(p, y);
  default: return container_run(p, c);
  }
}

/* Reads a module and a name, each ended by a newline, from *at on. */
static bool global_run(Pickle *p, const uint8_t *b, uint64_t *at, uint64_t end) {
  const uint8_t *module = b + *at, *name_end = NULL;
  const uint8_t *module_end = memchr(module, '\n', (size_t)(end - *at));
  if (module_end) name_end = memchr(module_end + 1, '\n', (size_t)(b + end - module_end - 1));
  if (!name_end) return pickle_bad(p, "a global without a name");
  *at = (uint64_t)(name_end + 1 - b);
  return global_push(p, module, (size_t)(module_end - module), module_end + 1,
                     (size_t)(name_end - module_end - 1));
}

/* Makes the objects that have the same numbers in every pickle: None, False, True. */
static bool constants_made(Pickle *p) {
  uint32_t id;
  return p->nobj ||
         (pickle_new(p, (Obj){.kind = O_NONE}, &p->none) && pickle_new(p, (Obj){.kind = O_BOOL}, &id) &&
          pickle_new(p, (Obj){.kind = O_BOOL, .u.i = 1}, &id));
}

/* Runs one pickle at b[*at..end). Afterwards *at is the place after it, and *out the object that it
 * leaves. A memo may have as many entries as the pickle has bytes. */
bool pickle_run(Pickle *p, const uint8_t *b, uint64_t *at, uint64_t end, uint32_t *out) {
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
  return ok && pop(p, out) && (p->depth == 0 || pickle_bad(p, "more than one value is left"));
}
