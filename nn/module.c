/* module.c: what follows from the table of a struct of tensors: names in a state dictionary, the list of
 * parameters and their number, freezing, text, release. In: a TgModule and the struct. One walk visits the
 * tensors in the order of the table; everything else is a visitor. */
#include "nn_private.h"
#include "tg_io.h"
#include <stdio.h>
#include <string.h>

enum { MAX_NAME = 512, MAX_DEPTH = 16 };

/* ---- the walk */
typedef struct Walk Walk;
typedef TgStatus (*Visit)(Walk *w, const TgField *f, TgTensor **t);

struct Walk {
  Visit visit;
  char name[MAX_NAME]; /* name of the tensor that is visited */
  int depth;
  void *user;
};

static TgStatus walk_module(Walk *w, const TgModule *m, char *layer);

/* Appends ".name" or ".name.index" to the walk's name. The caller cuts it off again. Returns false if it is
 * too long. */
static bool name_push(Walk *w, const char *name, int index, bool indexed) {
  size_t n = strlen(w->name);
  const char *dot = n ? "." : "";
  int k = indexed ? snprintf(w->name + n, MAX_NAME - n, "%s%s.%d", dot, name, index)
                  : snprintf(w->name + n, MAX_NAME - n, "%s%s", dot, name);
  return k >= 0 && (size_t)k < MAX_NAME - n;
}

static TgStatus walk_field(Walk *w, const TgField *f, char *layer, int i) {
  size_t n = strlen(w->name);
  TgStatus status = TG_OK;
  const TgModule *inner = f->role == TG_FIELD_MODULE && f->module ? f->module() : NULL;
  size_t each = inner ? inner->nbytes : sizeof(TgTensor *);
  char *at = layer + f->offset + (size_t)i * each;
  if (!name_push(w, f->name, i, f->count > 0))
    status = TG_ERR_LIMIT;
  else if (inner)
    status = walk_module(w, inner, at);
  else if (f->role != TG_FIELD_MODULE && *(TgTensor **)at)
    status = w->visit(w, f, (TgTensor **)at);
  w->name[n] = 0;
  return status;
}

static TgStatus walk_module(Walk *w, const TgModule *m, char *layer) {
  TgStatus status = w->depth < MAX_DEPTH ? TG_OK : TG_ERR_LIMIT;
  w->depth++;
  for (int k = 0; k < m->nfields; k++)
    for (int i = 0; !status && i < (m->fields[k].count > 0 ? m->fields[k].count : 1); i++)
      status = walk_field(w, &m->fields[k], layer, i);
  w->depth--;
  return status;
}

static TgStatus walk(TgModuleFn module, const void *layer, const char *prefix, Visit visit, void *user) {
  Walk w = {.visit = visit, .user = user};
  if (!module || !layer) return TG_ERR_VALUE;
  if (prefix && snprintf(w.name, sizeof w.name, "%s", prefix) >= (int)sizeof w.name) return TG_ERR_LIMIT;
  return walk_module(&w, module(), (char *)layer);
}

/* ---- visitors */
TgStatus nn_state_put(TgState *s, const char *prefix, const char *name, TgTensor *t) {
  char full[MAX_NAME];
  if (!t) return TG_ERR_NOMEM;
  if (snprintf(full, sizeof full, "%s%s%s", prefix ? prefix : "", prefix && *prefix ? "." : "", name) >=
      (int)sizeof full)
    return TG_ERR_LIMIT;
  return tg_state_put(s, full, t);
}

static TgStatus visit_state(Walk *w, const TgField *f, TgTensor **t) {
  (void)f;
  return tg_state_put(w->user, w->name, *t);
}

TgStatus tg_module_state(TgModuleFn module, const void *layer, TgState *s, const char *prefix) {
  return s ? walk(module, layer, prefix, visit_state, s) : TG_ERR_VALUE;
}

typedef struct List {
  TgTensor **out;
  int n, cap;
} List;

static TgStatus visit_list(Walk *w, const TgField *f, TgTensor **t) {
  List *l = w->user;
  if (f->role != TG_FIELD_PARAMETER || !tg_is_parameter(*t)) return TG_OK;
  if (l->n < l->cap && l->out) l->out[l->n] = *t;
  l->n++;
  return TG_OK;
}

int tg_module_parameters(TgModuleFn module, const void *layer, TgTensor **out, int cap) {
  List l = {out, 0, cap};
  return walk(module, layer, NULL, visit_list, &l) ? 0 : l.n;
}

static TgStatus visit_count(Walk *w, const TgField *f, TgTensor **t) {
  if (f->role == TG_FIELD_PARAMETER) *(int64_t *)w->user += tg_numel(*t);
  return TG_OK;
}

int64_t tg_module_count(TgModuleFn module, const void *layer) {
  int64_t n = 0;
  return walk(module, layer, NULL, visit_count, &n) ? 0 : n;
}

static TgStatus visit_freeze(Walk *w, const TgField *f, TgTensor **t) {
  if (f->role != TG_FIELD_PARAMETER) return TG_OK;
  if (*(bool *)w->user) tg_zero_grad(*t);
  return tg_requires_grad(*t, !*(bool *)w->user) ? TG_OK : tg_error(tg_context(*t));
}

TgStatus tg_module_freeze(TgModuleFn module, const void *layer, bool on) {
  return walk(module, layer, NULL, visit_freeze, &on);
}

/* Returns a realized and kept `placed`, which has the values of t, as a parameter if t is one. NULL: failed,
 * with the error recorded. */
static TgTensor *replaced(TgTensor *t, TgTensor *placed) {
  TgContext *ctx = tg_context(t);
  if (placed && tg_is_parameter(t)) placed = tg_requires_grad(placed, true);
  return placed && !tg_realize(placed) && !tg_error(ctx) ? tg_keep(placed) : NULL;
}

static TgStatus visit_cast(Walk *w, const TgField *f, TgTensor **t) {
  TgDType to = *(const TgDType *)w->user;
  TgContext *ctx = tg_context(*t);
  if (f->role != TG_FIELD_PARAMETER || !tg_dtype_is_float(tg_dtype(*t)) || tg_dtype(*t) == to) return TG_OK;
  TgTensor *made = NULL;
  TG_SCOPE(ctx) { made = replaced(*t, tg_contiguous(tg_cast(tg_detach(*t), to))); }
  if (!made) return tg_error(ctx) ? tg_error(ctx) : TG_ERR_NOMEM;
  tg_release(*t);
  *t = made;
  return TG_OK;
}

TgStatus tg_module_cast(TgModuleFn module, void *layer, TgDType dtype) {
  if (!tg_dtype_is_float(dtype)) return TG_ERR_DTYPE;
  return walk(module, layer, NULL, visit_cast, &dtype);
}

typedef struct ShardTable {
  int n, nrules;
  const char *const *devices;
  const TgShardRule *rules;
} ShardTable;

static bool name_fits(const char *pattern, const char *name) {
  for (; *pattern != '*'; pattern++, name++)
    if (*pattern != *name || !*name) return *pattern == *name;
  for (pattern++; *name; name++)
    if (name_fits(pattern, name)) return true;
  return name_fits(pattern, name);
}

static TgStatus visit_shard(Walk *w, const TgField *f, TgTensor **t) {
  (void)f;
  const ShardTable *table = w->user;
  TgContext *ctx = tg_context(*t);
  int axis = TG_WHOLE;
  for (int i = table->nrules; i-- > 0;)
    if (name_fits(table->rules[i].pattern, w->name)) axis = table->rules[i].axis;
  TgTensor *made = NULL;
  /* profiles use this name for the tensor's gradient */
  if (tg_name_begin(ctx, w->name)) return tg_error(ctx);
  TG_SCOPE(ctx) {
    TgTensor *x = tg_detach(*t);
    made = replaced(*t, axis == TG_WHOLE ? tg_replicate(x, table->n, table->devices)
                                         : tg_shard(x, table->n, table->devices, axis));
  }
  tg_name_end(ctx);
  if (!made) return tg_error(ctx) ? tg_error(ctx) : TG_ERR_NOMEM;
  tg_release(*t);
  *t = made;
  return TG_OK;
}

TgStatus tg_module_shard(TgModuleFn module, void *layer, int n, const char *const *devices,
                         const TgShardRule *rules, int nrules) {
  ShardTable table = {n, rules ? nrules : 0, devices, rules};
  return walk(module, layer, NULL, visit_shard, &table);
}

static TgStatus visit_free(Walk *w, const TgField *f, TgTensor **t) {
  (void)w, (void)f;
  tg_release(*t);
  *t = NULL;
  return TG_OK;
}

void tg_module_free(TgModuleFn module, void *layer) { walk(module, layer, NULL, visit_free, NULL); }

/* ---- text */
typedef struct Text {
  char *to;
  size_t cap;
  int n; /* length of the whole text */
} Text;

static bool any_byte(const char *p, size_t n) {
  while (n && !*p)
    p++, n--;
  return n > 0;
}

/* Whether a layer was made: one that was not is all zeros. A norm without weights has sizes, so it counts as
 * made. */
static bool is_there(const TgModule *m, const char *layer, int depth) {
  for (int k = 0; depth < MAX_DEPTH && k < m->nfields; k++) {
    const TgField *f = &m->fields[k];
    const TgModule *inner = f->role == TG_FIELD_MODULE && f->module ? f->module() : NULL;
    if (inner ? is_there(inner, layer + f->offset, depth + 1)
              : f->role != TG_FIELD_MODULE && *(TgTensor *const *)(layer + f->offset) != NULL)
      return true;
  }
  return m->describe && any_byte(layer, m->nbytes);
}

static void print_module(Text *t, const TgModule *m, const char *layer, int depth) {
  char between[256] = "";
  bool inner_lines = false;
  if (m->describe) m->describe(layer, between, sizeof between);
  nn_text(t->to, t->cap, &t->n, "%s(%s", m->name, between);
  for (int k = 0; depth < MAX_DEPTH && k < m->nfields; k++) {
    const TgField *f = &m->fields[k];
    const TgModule *inner = f->role == TG_FIELD_MODULE && f->module ? f->module() : NULL;
    for (int i = 0; inner && i < (f->count > 0 ? f->count : 1); i++) {
      const char *at = layer + f->offset + (size_t)i * inner->nbytes;
      if (!is_there(inner, at, depth + 1)) continue;
      nn_text(t->to, t->cap, &t->n, f->count > 0 ? "\n%*s(%s.%d): " : "\n%*s(%s): ", 2 * depth + 2, "",
              f->name, i);
      print_module(t, inner, at, depth + 1);
      inner_lines = true;
    }
  }
  if (inner_lines) nn_text(t->to, t->cap, &t->n, "\n%*s", 2 * depth, "");
  nn_text(t->to, t->cap, &t->n, ")");
}

int tg_module_print(TgModuleFn module, const void *layer, char *text, size_t cap) {
  Text t = {text, text ? cap : 0, 0};
  if (text && cap) *text = 0;
  if (module && layer) print_module(&t, module(), layer, 0);
  return t.n;
}
