/* state.c: state dictionaries (names -> tensors), and trees of values. In: what readers and layers add.
 * Out: tensors by name or by place; tensors of a model replaced by those of a file. Names are found
 * through a hash table, so that a file with a million names takes only linear time. */
#include "io_private.h"
#include <stdio.h>

/* ---- names -> numbers */
static size_t hash_of(const char *s, size_t n) {
  uint64_t h = 0xcbf29ce484222325u ^ n;
  for (size_t i = 0; i < n; i++)
    h = (h ^ (unsigned char)s[i]) * 0x100000001b3u;
  return (size_t)(h ^ h >> 29);
}

static Name *slot_of(const Index *x, const char *name, size_t n) {
  for (size_t i = hash_of(name, n) & (x->cap - 1);; i = (i + 1) & (x->cap - 1)) {
    Name *s = &x->slot[i];
    if (!s->at || (s->n == n && !memcmp(s->at, name, n))) return s;
  }
}

bool index_find(const Index *x, const char *name, size_t n, size_t *value) {
  Name *s = x->cap ? slot_of(x, name, n) : NULL;
  if (!s || !s->at) return false;
  *value = s->value;
  return true;
}

bool index_put(TgContext *ctx, Index *x, const char *name, size_t n, size_t value, bool *was_there) {
  if (2 * (x->n + 1) > x->cap) {
    Index big = {.cap = x->cap ? 2 * x->cap : 32, .n = x->n};
    if (!(big.slot = tg_alloc(ctx, big.cap * sizeof *big.slot))) return false;
    for (size_t i = 0; i < x->cap; i++)
      if (x->slot[i].at) *slot_of(&big, x->slot[i].at, x->slot[i].n) = x->slot[i];
    tg_free(ctx, x->slot);
    *x = big;
  }
  Name *s = slot_of(x, name, n);
  *was_there = s->at != NULL;
  if (!s->at) {
    *s = (Name){name, n, value};
    x->n++;
  }
  return true;
}

void index_free(TgContext *ctx, Index *x) {
  tg_free(ctx, x->slot);
  *x = (Index){0};
}

/* ---- state dictionaries */
typedef struct Entry {
  char *name;
  bool own;
} Entry;

struct TgState {
  TgContext *ctx;
  Entry *at;
  TgTensor **tensors;
  size_t n, cap, tcap;
  Index index;
};

TgState *tg_state_new(TgContext *ctx) {
  TgState *s = tg_alloc(ctx, sizeof *s);
  if (s) s->ctx = ctx;
  return s;
}

TgContext *state_context(const TgState *s) { return s ? s->ctx : NULL; }

void tg_state_free(TgState *s) {
  if (!s) return;
  TgContext *ctx = s->ctx;
  for (size_t i = 0; i < s->n; i++) {
    if (s->at[i].own) tg_release(s->tensors[i]);
    tg_free(ctx, s->at[i].name);
  }
  index_free(ctx, &s->index);
  tg_free(ctx, s->at), tg_free(ctx, s->tensors), tg_free(ctx, s);
}

static bool put(TgState *s, const char *name, size_t n, TgTensor *t, bool own) {
  Entry *at = io_grow(s->ctx, s->at, s->n, &s->cap, sizeof *at);
  if (at) s->at = at;
  TgTensor **tensors = at ? io_grow(s->ctx, s->tensors, s->n, &s->tcap, sizeof *tensors) : NULL;
  if (tensors) s->tensors = tensors;
  char *copy = tensors ? tg_alloc(s->ctx, n + 1) : NULL;
  bool there = false;
  if (!copy) return false;
  memcpy(copy, name, n);
  if (!index_put(s->ctx, &s->index, copy, n, s->n, &there) || there) {
    tg_free(s->ctx, copy);
    return false;
  }
  s->at[s->n] = (Entry){copy, own};
  s->tensors[s->n++] = t;
  return true;
}

TgStatus tg_state_put(TgState *s, const char *name, TgTensor *t) {
  if (!s || !name || !t)
    return !s ? TG_ERR_NOMEM
           : tg_error(s->ctx)
               ? tg_error(s->ctx)
               : tg_set_error(s->ctx, TG_ERR_VALUE, !name ? "state_put: no name" : "state_put: no tensor");
  size_t i, n = strlen(name);
  if (!index_find(&s->index, name, n, &i)) return put(s, name, n, t, false) ? TG_OK : tg_error(s->ctx);
  if (s->at[i].own && s->tensors[i] != t) {
    tg_release(s->tensors[i]);
    s->at[i].own = false;
  }
  s->tensors[i] = t;
  return TG_OK;
}

bool state_own(TgState *s, const char *name, size_t n, TgTensor *t) {
  if (!s || !t) return false;
  if (!put(s, name, n, t, true)) return false;
  tg_keep(t);
  return true;
}

bool state_moved(TgState *to, TgState *from, const char *name) {
  size_t i, n = strlen(name);
  if (!index_find(&from->index, name, n, &i) || !from->at[i].own) return false;
  if (!put(to, name, n, from->tensors[i], true)) return false;
  from->at[i].own = false;
  return true;
}

TgTensor *tg_state_get(const TgState *s, const char *name) {
  size_t i;
  return s && name && index_find(&s->index, name, strlen(name), &i) ? s->tensors[i] : NULL;
}

TgTensor *tg_state_remove(TgState *s, const char *name) {
  size_t i;
  if (!s || !name || !index_find(&s->index, name, strlen(name), &i)) return NULL;
  TgTensor *t = s->tensors[i];
  char *gone = s->at[i].name;
  memmove(s->at + i, s->at + i + 1, (s->n - i - 1) * sizeof *s->at);
  memmove(s->tensors + i, s->tensors + i + 1, (s->n - i - 1) * sizeof *s->tensors);
  s->n--;
  /* the places after it have changed: the table is filled again, in the same memory */
  memset(s->index.slot, 0, s->index.cap * sizeof *s->index.slot);
  s->index.n = 0;
  for (size_t k = 0; k < s->n; k++) {
    bool there;
    index_put(s->ctx, &s->index, s->at[k].name, strlen(s->at[k].name), k, &there);
  }
  tg_free(s->ctx, gone);
  return tg_keep(t);
}

size_t tg_state_count(const TgState *s) { return s ? s->n : 0; }

TgTensor *tg_state_at(const TgState *s, size_t i, const char **name) {
  if (!s || i >= s->n) return NULL;
  if (name) *name = s->at[i].name;
  return s->tensors[i];
}

TgTensor *const *tg_get_parameters(const TgState *s) { return s ? s->tensors : NULL; }

/* ---- loading */
static bool one_and_none(const TgTensor *a, const TgTensor *b) {
  return tg_numel(a) == 1 && tg_numel(b) == 1 && tg_ndim(a) <= 1 && tg_ndim(b) <= 1;
}

static bool same_shape(const TgTensor *a, const TgTensor *b) {
  return tg_ndim(a) == tg_ndim(b) &&
         (!tg_ndim(a) || !memcmp(tg_shape(a), tg_shape(b), (size_t)tg_ndim(a) * sizeof(int64_t)));
}

static void add(char *text, size_t cap, const char *what) {
  size_t n = strlen(text);
  snprintf(text + n, cap - n, "%s", what);
}

static void shape_text(char *out, size_t cap, const TgTensor *t) {
  char one[32];
  add(out, cap, "(");
  for (int i = 0; i < tg_ndim(t); i++) {
    snprintf(one, sizeof one, i ? ", %lld" : "%lld", (long long)tg_shape(t)[i]);
    add(out, cap, one);
  }
  add(out, cap, tg_ndim(t) == 1 ? ",)" : ")");
}

static bool counter(const char *name) {
  static const char end[] = "num_batches_tracked";
  size_t n = strlen(name), k = sizeof end - 1;
  return n >= k && !strcmp(name + n - k, end) && (n == k || name[n - k - 1] == '.');
}

/* Writes up to five names of a that b lacks to text. Returns how many there are. counters: whether names
 * of counters count, too. */
static size_t lacking(const TgState *a, const TgState *b, bool counters, char *text, size_t cap) {
  size_t n = 0;
  for (size_t i = 0; i < a->n; i++) {
    if (tg_state_get(b, a->at[i].name) || (!counters && counter(a->at[i].name))) continue;
    if (n < 5) add(text, cap, n ? ", " : ""), add(text, cap, a->at[i].name);
    n++;
  }
  if (n > 5) add(text, cap, ", ..");
  return n;
}

/* the present values in memory of their own: they are read once, and no kernel runs */
static TgTensor *copied(TgTensor *x, TgContext *ctx) {
  size_t n = tg_nbytes(x);
  void *p = tg_alloc(ctx, n + 1);
  if (!p) return NULL;
  TgStatus s = tg_read(x, p, n);
  if (s && tg_context(x) != ctx) tg_set_error(ctx, s, tg_errmsg(tg_context(x)));
  TgTensor *t = s ? NULL : tg_from(ctx, p, tg_dtype(x), tg_ndim(x), tg_shape(x));
  tg_free(ctx, p);
  return t;
}

TgStatus tg_load_state_opt(TgState *model, const TgState *file, const TgLoadOptions *opt) {
  if (!model || !file) return TG_ERR_VALUE;
  TgContext *ctx = model->ctx;
  TgLoadOptions o;
  char text[400] = "", more[200] = "";
  if (tg_options_read(ctx, "load_state", "TgLoadOptions", &o, sizeof o, opt)) return TG_ERR_VALUE;
  if (tg_error(ctx)) return tg_error(ctx);
  size_t none = o.partial ? 0 : lacking(model, file, true, text, 200);
  size_t many = o.more ? 0 : lacking(file, model, false, more, sizeof more);
  if (none || many) {
    ctx_fail(ctx, TG_ERR_VALUE, "load_state: %s%s%s%s%s", none ? "the file lacks " : "", text,
             none && many ? "; " : "", many ? "the model has no " : "", more);
    return TG_ERR_VALUE;
  }
  for (size_t i = 0; i < model->n; i++) {
    TgTensor *t = model->tensors[i], *x = tg_state_get(file, model->at[i].name);
    if (!x || same_shape(t, x) || one_and_none(t, x)) continue;
    text[0] = more[0] = 0;
    shape_text(text, sizeof text, t);
    shape_text(more, sizeof more, x);
    ctx_fail(ctx, TG_ERR_SHAPE, "load_state: %.200s is %s, in the file %s", model->at[i].name, text, more);
    return TG_ERR_SHAPE;
  }
  TgTensor **fresh = tg_alloc(ctx, (model->n + 1) * sizeof *fresh);
  if (!fresh || tg_scope_begin(ctx)) {
    tg_free(ctx, fresh);
    return tg_error(ctx);
  }
  bool ok = true;
  for (size_t i = 0; i < model->n && ok; i++) {
    TgTensor *t = model->tensors[i], *x = tg_state_get(file, model->at[i].name);
    if (!x) continue;
    x = o.view ? tg_to_context(x, ctx) : copied(x, ctx);
    fresh[i] = x && same_shape(t, x) ? x : tg_reshape(x, tg_ndim(t), tg_shape(t));
    if (tg_shard_count(t) > 1) fresh[i] = tg_shard_like(fresh[i], t); /* split it as t is split */
    ok = fresh[i] != NULL && (tg_shard_count(t) == 1 || !tg_realize(fresh[i]));
  }
  for (size_t i = 0; i < model->n && ok; i++)
    if (fresh[i]) ok = tg_replace(model->tensors[i], fresh[i]) != NULL;
  tg_scope_end(ctx);
  tg_free(ctx, fresh);
  return ok ? TG_OK : tg_error(ctx);
}

/* ---- trees of values */
Doc *doc_new(TgContext *ctx) {
  Doc *d = tg_alloc(ctx, sizeof *d);
  if (!d) return NULL;
  d->ctx = ctx;
  if (!(d->tensors = tg_state_new(ctx))) {
    tg_free(ctx, d);
    return NULL;
  }
  return d;
}

void doc_free(Doc *d) {
  for (Doc *more; d; d = more) {
    TgContext *ctx = d->ctx;
    more = d->more;
    for (Block *b = d->blocks, *next; b; b = next) {
      next = b->next;
      tg_free(ctx, b);
    }
    tg_state_free(d->tensors);
    tg_free(ctx, d);
  }
}

void tg_value_free(TgValue *root) { doc_free((Doc *)root); }

void *doc_alloc(Doc *d, size_t n) {
  if (n > SIZE_MAX / 4) return NULL;
  n = (n + 7) & ~(size_t)7;
  Block *b = d->blocks;
  if (!b || b->cap - b->used < n) {
    size_t cap = b ? b->cap * 2 < 1 << 20 ? b->cap * 2 : 1 << 20 : 1024;
    if (cap < n) cap = n;
    if (!(b = tg_alloc(d->ctx, sizeof *b + cap))) return NULL;
    b->cap = cap;
    b->next = d->blocks;
    d->blocks = b;
  }
  b->used += n;
  return (char *)(b + 1) + b->used - n;
}

bool doc_string(Doc *d, TgValue *v, const void *s, size_t n) {
  char *p = doc_alloc(d, n + 1);
  if (!p) return false;
  if (n) memcpy(p, s, n);
  *v = (TgValue){.kind = TG_KIND_STRING, .n = (int64_t)n, .u.s = p};
  return true;
}

bool doc_items(Doc *d, TgValue *v, TgKind kind, size_t n) {
  size_t k = kind == TG_KIND_MAP ? 2 : 1;
  TgValue *p = n > SIZE_MAX / 4 / sizeof *p ? NULL : doc_alloc(d, n * k * sizeof *p);
  if (!p) return false;
  *v = (TgValue){.kind = kind, .n = (int64_t)n, .u.at = p};
  return true;
}

bool doc_tensor(Doc *d, TgValue *v, TgTensor *t) {
  char name[32];
  snprintf(name, sizeof name, "%zu", d->tensors->n);
  *v = (TgValue){.kind = TG_KIND_TENSOR, .u.t = t};
  return state_own(d->tensors, name, strlen(name), t);
}

/* ---- trees that a program makes */
TgValue *tg_value_new(TgContext *ctx, TgKind kind) {
  if (!ctx) return NULL;
  if (kind != TG_KIND_MAP && kind != TG_KIND_LIST)
    return ctx_fail(ctx, TG_ERR_VALUE, "value_new: a tree begins with a map or a list"), NULL;
  Doc *d = doc_new(ctx);
  if (!d) return NULL;
  d->root.kind = kind;
  return &d->root;
}

/* Whether a value may be added under this key. */
static bool takes(const TgValue *to, const char *key) {
  TgContext *ctx = ((const Doc *)to)->ctx;
  if (to->kind == TG_KIND_MAP)
    return key || ctx_fail(ctx, TG_ERR_VALUE, "value_put: a value of a map has a key");
  if (to->kind == TG_KIND_LIST)
    return !key || ctx_fail(ctx, TG_ERR_VALUE, "value_put: '%.100s': a value of a list has no key", key);
  return ctx_fail(ctx, TG_ERR_VALUE, "value_put: this is neither a map nor a list");
}

/* Makes room for one more value and its key, in memory that doubles. What a reader made has exactly the room
 * that it needs. */
static bool root_grow(TgValue *to) {
  enum { FEW = 8 };

  size_t n = (size_t)to->n, room = n < FEW ? FEW : 2 * n;
  if (n < to->room) return true;
  TgValue more;
  if (room > UINT32_MAX || !doc_items((Doc *)to, &more, to->kind, room)) return false;
  if (n) memcpy(more.u.at, to->u.at, (to->kind == TG_KIND_MAP ? 2 : 1) * n * sizeof more);
  to->u.at = more.u.at;
  to->room = (uint32_t)room;
  return true;
}

/* Adds a value to a root; its text and its tensor belong to the tree already. */
static TgStatus root_put(TgValue *to, const char *key, TgValue v) {
  Doc *d = (Doc *)to;
  if (!takes(to, key)) return tg_error(d->ctx);
  TgValue name;
  bool ok = root_grow(to) && (!key || doc_string(d, &name, key, strlen(key)));
  if (!ok) return tg_error(d->ctx) ? tg_error(d->ctx) : TG_ERR_NOMEM;
  TgValue *at = to->u.at + (key ? 2 : 1) * to->n++;
  if (key) *at++ = name;
  *at = v;
  return TG_OK;
}

TgStatus tg_value_put_int(TgValue *to, const char *key, int64_t v) {
  return to ? root_put(to, key, (TgValue){.kind = TG_KIND_INT, .u.i = v}) : TG_ERR_NOMEM;
}

TgStatus tg_value_put_bool(TgValue *to, const char *key, bool v) {
  return to ? root_put(to, key, (TgValue){.kind = TG_KIND_BOOL, .u.i = v}) : TG_ERR_NOMEM;
}

TgStatus tg_value_put_float(TgValue *to, const char *key, double v) {
  return to ? root_put(to, key, (TgValue){.kind = TG_KIND_FLOAT, .u.f = v}) : TG_ERR_NOMEM;
}

TgStatus tg_value_put_string(TgValue *to, const char *key, const char *s, size_t nbytes) {
  TgValue v;
  if (!to) return TG_ERR_NOMEM;
  Doc *d = (Doc *)to;
  if (!s && nbytes) return ctx_fail(d->ctx, TG_ERR_VALUE, "value_put: no text"), tg_error(d->ctx);
  if (!doc_string(d, &v, s, nbytes)) return tg_error(d->ctx) ? tg_error(d->ctx) : TG_ERR_NOMEM;
  return root_put(to, key, v);
}

TgStatus tg_value_put_tensor(TgValue *to, const char *key, TgTensor *t) {
  TgValue v;
  if (!to) return TG_ERR_NOMEM;
  Doc *d = (Doc *)to;
  if (!t || tg_context(t) != d->ctx)
    ctx_fail(d->ctx, TG_ERR_VALUE, t ? "value_put: a tensor of another context" : "value_put: no tensor");
  else if (takes(to, key) && doc_tensor(d, &v, t))
    return root_put(to, key, v);
  return tg_error(d->ctx);
}

TgStatus tg_value_put_tree(TgValue *to, const char *key, TgValue *tree) {
  if (!to) return TG_ERR_NOMEM;
  Doc *d = (Doc *)to, *more = (Doc *)tree;
  if (!tree || tree == to || more->ctx != d->ctx) {
    ctx_fail(d->ctx, TG_ERR_VALUE,
             tree ? "value_put: the tree itself, or one of another context" : "value_put: no tree");
    return tg_error(d->ctx);
  }
  TgStatus failed = root_put(to, key, *tree);
  if (failed) return failed;
  *tree = (TgValue){0}; /* so that nothing can be added to what is no root any more */
  Doc *last = more;
  while (last->more)
    last = last->more;
  last->more = d->more;
  d->more = more;
  return TG_OK;
}

TgKind tg_value_kind(const TgValue *v) { return v ? v->kind : TG_KIND_NONE; }

int64_t tg_value_int(const TgValue *v) {
  return v && (v->kind == TG_KIND_INT || v->kind == TG_KIND_BOOL) ? v->u.i : 0;
}

double tg_value_float(const TgValue *v) {
  return v && v->kind == TG_KIND_FLOAT ? v->u.f : (double)tg_value_int(v);
}

const char *tg_value_string(const TgValue *v, size_t *nbytes) {
  bool is = v && v->kind == TG_KIND_STRING;
  if (nbytes) *nbytes = is ? (size_t)v->n : 0;
  return is ? v->u.s : NULL;
}

TgTensor *tg_value_tensor(const TgValue *v) { return v && v->kind == TG_KIND_TENSOR ? v->u.t : NULL; }

size_t tg_value_count(const TgValue *v) {
  return v && (v->kind == TG_KIND_LIST || v->kind == TG_KIND_MAP) ? (size_t)v->n : 0;
}

const TgValue *tg_value_at(const TgValue *v, size_t i) {
  return i >= tg_value_count(v) ? NULL : v->kind == TG_KIND_MAP ? &v->u.at[2 * i + 1] : &v->u.at[i];
}

const TgValue *tg_value_key(const TgValue *v, size_t i) {
  return i >= tg_value_count(v) || v->kind != TG_KIND_MAP ? NULL : &v->u.at[2 * i];
}

const TgValue *tg_value_get(const TgValue *v, const char *key) {
  size_t n = key ? strlen(key) : 0;
  for (size_t i = 0; key && v && v->kind == TG_KIND_MAP && i < (size_t)v->n; i++) {
    const TgValue *k = &v->u.at[2 * i];
    if (k->kind == TG_KIND_STRING && (size_t)k->n == n && !memcmp(k->u.s, key, n)) return k + 1;
  }
  return NULL;
}

/* Depth first with an explicit stack, because the file determines the depth of the tree. A tree with
 * shared branches could have an unlimited number of names, so visits are counted. */
typedef struct Level {
  const TgValue *v;
  size_t next, name;
} Level;

enum { STATE_VISITS = 1 << 24 };

/* Not recursive: `stack` holds the lists and maps on the way down, `name` the path to the present value. */
TgState *tg_get_state(TgContext *ctx, const TgValue *v, const char *prefix) {
  TgState *s = tg_state_new(ctx);
  Level *stack = NULL;
  size_t depth = 0, cap = 0, ncap = 0, used = 0, visits = 0;
  char *name = NULL;
  bool ok = s != NULL;
  for (const char *p = prefix ? prefix : ""; ok && *p; p++) {
    char *more = io_grow(ctx, name, used, &ncap, 1);
    if ((ok = more != NULL)) {
      name = more;
      name[used++] = *p;
    }
  }
  if (ok && used && name[used - 1] == '.') used--;
  while (ok && v) {
    if (v->kind == TG_KIND_TENSOR) {
      size_t i;
      /* if a key occurs twice, the last one counts, as everywhere */
      if (index_find(&s->index, used ? name : "", used, &i))
        s->tensors[i] = v->u.t;
      else
        ok = put(s, used ? name : "", used, v->u.t, false);
    } else if (tg_value_count(v)) {
      Level *more = io_grow(ctx, stack, depth, &cap, sizeof *more);
      if (!(ok = more != NULL)) break;
      stack = more;
      stack[depth++] = (Level){v, 0, used};
    }
    for (v = NULL; depth && !v;) {
      Level *l = &stack[depth - 1];
      used = l->name;
      if (l->next == tg_value_count(l->v)) {
        depth--;
        continue;
      }
      const TgValue *k = tg_value_key(l->v, l->next);
      char number[24];
      const char *part = k && k->kind == TG_KIND_STRING ? k->u.s : number;
      snprintf(number, sizeof number, "%lld", k ? (long long)tg_value_int(k) : (long long)l->next);
      size_t n = k && k->kind == TG_KIND_STRING ? (size_t)k->n : strlen(number);
      size_t dot = l->name > 0;
      for (size_t i = 0; ok && i < n + dot; i++) {
        char *more = io_grow(ctx, name, used, &ncap, 1);
        if ((ok = more != NULL)) {
          name = more;
          name[used++] = i < dot ? '.' : part[i - dot];
        }
      }
      v = tg_value_at(l->v, l->next++);
      if (++visits > STATE_VISITS)
        ok = ctx_fail(ctx, TG_ERR_LIMIT, "get_state: more than %d values", STATE_VISITS);
      if (!ok) break;
    }
  }
  tg_free(ctx, stack), tg_free(ctx, name);
  if (!ok) tg_state_free(s);
  return ok ? s : NULL;
}
