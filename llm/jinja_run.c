/* jinja_run.c: nodes -> text. In: the nodes of a template, names. Out: text. Each iteration of a loop and
 * each call of a macro has a frame of its own, so a `set` in a loop ends with the iteration. A name without a
 * value is undefined, which is printed as nothing. */
#include "jinja.h"
#include <math.h>

typedef enum Flow { FLOW_ON, FLOW_BREAK, FLOW_CONTINUE } Flow;

typedef struct Run {
  Jinja *j;
  JFrame *frame;
  LlmText *to;
  JValue *hole; /* the text of a block, which its filters begin with */
} Run;

static JValue *eval(Run *r, const JNode *n);
static Flow run_all(Run *r, const JNode *n);

static JValue *nothing(Run *r) { return j_value(r->j, J_UNDEFINED); }

static JFrame *frame_new(Jinja *j, JFrame *parent) {
  JFrame *f = j_alloc(j, sizeof *f);
  f->parent = parent;
  f->names = j_value(j, J_MAP);
  return f;
}

static void name_set(Run *r, const char *name, JValue *v) {
  j_put(r->j, r->frame->names, j_string(r->j, name, strlen(name)), v);
}

static JValue *name_get(Run *r, const char *name, size_t n) {
  for (const JFrame *f = r->frame; f; f = f->parent) {
    JValue *v = j_get(f->names, name, n);
    j_step(r->j, (int64_t)(f->names->n / 8));
    if (v) return v;
  }
  if (!j_is_function(name, n)) return nothing(r);
  JValue *f = j_value(r->j, J_FUNCTION);
  f->u.s = name;
  f->n = n;
  return f;
}

/* ---- attributes and items */
static JValue *loop_get(Jinja *j, const JLoop *l, const char *name) {
  int64_t at = (int64_t)l->at, n = (int64_t)l->list->n;
  if (!strcmp(name, "index")) return j_int(j, at + 1);
  if (!strcmp(name, "index0")) return j_int(j, at);
  if (!strcmp(name, "revindex")) return j_int(j, n - at);
  if (!strcmp(name, "revindex0")) return j_int(j, n - at - 1);
  if (!strcmp(name, "length")) return j_int(j, n);
  if (!strcmp(name, "first")) return j_bool(j, at == 0);
  if (!strcmp(name, "last")) return j_bool(j, at == n - 1);
  if (!strcmp(name, "depth")) return j_int(j, 1);
  if (!strcmp(name, "previtem") && at > 0) return l->list->u.at[at - 1];
  if (!strcmp(name, "nextitem") && at + 1 < n) return l->list->u.at[at + 1];
  return j_value(j, J_UNDEFINED);
}

JValue *j_attribute(Jinja *j, JValue *of, const char *name, size_t n) {
  if (of->kind == J_UNDEFINED) j_fail(j, TG_ERR_VALUE, "'%.60s' of what is undefined", name);
  if (of->kind == J_LOOP) return loop_get(j, of->u.loop, name);
  JValue *v = of->kind == J_MAP || of->kind == J_NAMESPACE ? j_get(of, name, n) : NULL;
  return v ? v : j_value(j, J_UNDEFINED);
}

/* an index as in Python: negative numbers count from the end */
static bool place_of(int64_t i, int64_t n, int64_t *at) {
  *at = i < 0 ? i + n : i;
  return *at >= 0 && *at < n;
}

JValue *j_item(Jinja *j, JValue *of, JValue *key) {
  int64_t at;
  if (of->kind == J_UNDEFINED) j_fail(j, TG_ERR_VALUE, "an item of what is undefined");
  if (of->kind == J_MAP) {
    JValue *v = j_find(j, of, key);
    return v ? v : j_value(j, J_UNDEFINED);
  }
  if (key->kind == J_STRING) return j_attribute(j, of, key->u.s, key->n);
  if ((key->kind == J_INT || key->kind == J_BOOL) && (of->kind == J_LIST || of->kind == J_STRING)) {
    JValue *list = j_as_list(j, of);
    if (place_of(key->u.i, (int64_t)list->n, &at)) return list->u.at[at];
  }
  return j_value(j, J_UNDEFINED);
}

/* ---- slices */
static int64_t bound(Run *r, const JNode *n, int64_t otherwise, int64_t count, int64_t least, int64_t most) {
  JValue *v = n ? eval(r, n) : NULL;
  if (!v || v->kind == J_NONE) return otherwise;
  if (v->kind != J_INT && v->kind != J_BOOL)
    j_fail(r->j, TG_ERR_VALUE, "a bound of a slice is no whole number");
  int64_t i = v->u.i < 0 ? v->u.i + count : v->u.i;
  return i < least ? least : i > most ? most : i;
}

static JValue *slice(Run *r, const JNode *n) {
  Jinja *j = r->j;
  JValue *of = eval(r, n->a), *step = n->d ? eval(r, n->d) : NULL;
  if (of->kind != J_LIST && of->kind != J_STRING) j_fail(j, TG_ERR_VALUE, "this cannot be sliced");
  JValue *list = j_as_list(j, of), *out = j_value(j, J_LIST);
  int64_t count = (int64_t)list->n, by = step && step->kind == J_INT ? step->u.i : 1;
  if (!by || by < -count - 1 || by > count + 1) by = by > 0 ? count + 1 : by < 0 ? -count - 1 : 0;
  if (!by) j_fail(j, TG_ERR_VALUE, "a slice whose step is 0");
  int64_t begin =
      by > 0 ? bound(r, n->b, 0, count, 0, count) : bound(r, n->b, count - 1, count, -1, count - 1);
  int64_t end = by > 0 ? bound(r, n->c, count, count, 0, count) : bound(r, n->c, -1, count, -1, count - 1);
  for (int64_t i = begin; by > 0 ? i < end : i > end; i += by) {
    j_step(j, 1);
    j_append(j, out, list->u.at[i]);
  }
  if (of->kind == J_LIST) return out;
  LlmText *t = j_buffer(j);
  for (size_t i = 0; i < out->n; i++)
    j_buffer_put(j, t, out->u.at[i]->u.s, out->u.at[i]->n);
  return j_text(j, t);
}

/* ---- operators */
static JValue *joined(Jinja *j, JValue *a, JValue *b) {
  LlmText *t = j_buffer(j);
  j_write(j, t, a, false);
  j_write(j, t, b, false);
  return j_text(j, t);
}

static JValue *added(Jinja *j, JValue *a, JValue *b) {
  if (a->kind == J_STRING && b->kind == J_STRING) return joined(j, a, b);
  if (a->kind != J_LIST || b->kind != J_LIST) return NULL;
  JValue *out = j_value(j, J_LIST);
  for (size_t i = 0; i < a->n + b->n; i++) {
    j_step(j, 1);
    j_append(j, out, i < a->n ? a->u.at[i] : b->u.at[i - a->n]);
  }
  return out;
}

static JValue *repeated(Jinja *j, JValue *a, JValue *b) {
  if (a->kind == J_INT) return b->kind == J_STRING ? repeated(j, b, a) : NULL;
  if (a->kind != J_STRING || b->kind != J_INT) return NULL;
  LlmText *t = j_buffer(j);
  for (int64_t i = 0; a->n && i < b->u.i; i++) {
    j_step(j, 1);
    j_buffer_put(j, t, a->u.s, a->n);
  }
  return j_text(j, t);
}

static JValue *whole(Jinja *j, JOp op, int64_t a, int64_t b) {
  int64_t v = 0;
  bool over = false;
  if ((op == OP_FLOORDIV || op == OP_MOD) && (b == 0 || (a == INT64_MIN && b == -1)))
    j_fail(j, TG_ERR_VALUE, "a division by 0");
  switch (op) {
  case OP_ADD: over = __builtin_add_overflow(a, b, &v); break;
  case OP_SUB: over = __builtin_sub_overflow(a, b, &v); break;
  case OP_MUL: over = __builtin_mul_overflow(a, b, &v); break;
  case OP_FLOORDIV: v = a / b - (a % b != 0 && (a < 0) != (b < 0)); break;
  default: v = a % b + (a % b != 0 && (a < 0) != (b < 0) ? b : 0); break;
  }
  if (over) j_fail(j, TG_ERR_VALUE, "a number past 64 bits");
  return j_int(j, v);
}

static JValue *arithmetic(Jinja *j, JOp op, JValue *a, JValue *b) {
  JValue *v = op == OP_ADD ? added(j, a, b) : op == OP_MUL ? repeated(j, a, b) : NULL;
  if (v) return v;
  double x = j_number(j, a), y = j_number(j, b);
  bool real = a->kind == J_FLOAT || b->kind == J_FLOAT || op == OP_DIV || (op == OP_POW && y < 0);
  if (op == OP_POW)
    return real ? j_float(j, pow(x, y)) : j_int(j, fabs(pow(x, y)) < 9e15 ? (int64_t)pow(x, y) : 0);
  if (!real) return whole(j, op, a->u.i, b->u.i);
  if (y == 0 && (op == OP_DIV || op == OP_FLOORDIV || op == OP_MOD))
    j_fail(j, TG_ERR_VALUE, "a division by 0");
  return j_float(j, op == OP_ADD        ? x + y
                    : op == OP_SUB      ? x - y
                    : op == OP_MUL      ? x * y
                    : op == OP_DIV      ? x / y
                    : op == OP_FLOORDIV ? floor(x / y)
                                        : x - floor(x / y) * y);
}

/* whether the string `in` contains `part` */
static bool has_text(const JValue *in, const JValue *part) {
  for (size_t i = 0; i + part->n <= in->n; i++)
    if (!memcmp(in->u.s + i, part->u.s, part->n)) return true;
  return false;
}

static bool contained(Jinja *j, JValue *a, JValue *in) {
  if (in->kind == J_MAP) return j_find(j, in, a) != NULL;
  if (in->kind == J_STRING) {
    if (a->kind != J_STRING) j_fail(j, TG_ERR_VALUE, "'in' a string: what is looked for is none");
    j_step(j, (int64_t)(in->n / 64));
    return has_text(in, a);
  }
  if (in->kind == J_UNDEFINED) return false;
  if (in->kind != J_LIST) j_fail(j, TG_ERR_VALUE, "'in' what has no items");
  for (size_t i = 0; i < in->n; i++) {
    j_step(j, 1);
    if (j_equal(j, in->u.at[i], a)) return true;
  }
  return false;
}

static JValue *binary(Run *r, const JNode *n) {
  Jinja *j = r->j;
  JValue *a = eval(r, n->a), *b = eval(r, n->b);
  j->line = n->line;
  switch (n->op) {
  case OP_JOIN: return joined(j, a, b);
  case OP_EQ: return j_bool(j, j_equal(j, a, b));
  case OP_NE: return j_bool(j, !j_equal(j, a, b));
  case OP_LT: return j_bool(j, j_compare(j, a, b) < 0);
  case OP_LE: return j_bool(j, j_compare(j, a, b) <= 0);
  case OP_GT: return j_bool(j, j_compare(j, a, b) > 0);
  case OP_GE: return j_bool(j, j_compare(j, a, b) >= 0);
  case OP_IN: return j_bool(j, contained(j, a, b));
  case OP_NOT_IN: return j_bool(j, !contained(j, a, b));
  default: return arithmetic(j, n->op, a, b);
  }
}

/* ---- calls */
JValue *j_argument(const JArguments *a, size_t place, const char *name) {
  size_t at = 0;
  for (size_t i = 0; i < a->n; i++) {
    if (a->name[i] ? name && !strcmp(a->name[i], name) : at == place) return a->at[i];
    at += !a->name[i];
  }
  return NULL;
}

static JArguments arguments(Run *r, const JNode *n) {
  JArguments a = {j_alloc(r->j, n->narguments * sizeof *a.at), n->narguments,
                  j_alloc(r->j, n->narguments * sizeof *a.name)};
  for (size_t i = 0; i < n->narguments; i++) {
    a.at[i] = eval(r, n->argument[i].value);
    a.name[i] = n->argument[i].name;
  }
  return a;
}

static JValue *call_macro(Jinja *j, const JValue *macro, const JArguments *a) {
  const JNode *n = macro->u.macro;
  Run r = {j, frame_new(j, macro->frame), j_buffer(j), NULL};
  j_enter(j);
  for (size_t i = 0; i < n->narguments; i++) {
    JValue *v = j_argument(a, i, n->argument[i].name);
    if (!v) v = n->argument[i].value ? eval(&r, n->argument[i].value) : nothing(&r);
    name_set(&r, n->argument[i].name, v);
  }
  run_all(&r, n->b);
  j->depth--;
  return j_text(j, r.to);
}

static JValue *call(Run *r, const JNode *n) {
  Jinja *j = r->j;
  JValue *out;
  if (n->a->kind == N_ATTRIBUTE) {
    JValue *of = eval(r, n->a->a);
    JArguments a = arguments(r, n);
    j->line = n->line;
    if (j_method(j, of, n->a->name, &a, &out)) return out;
    JValue *f = j_attribute(j, of, n->a->name, n->a->n);
    if (f->kind == J_MACRO) return call_macro(j, f, &a);
    j_fail(j, TG_ERR_VALUE, "there is no method '%.60s' here", n->a->name);
  }
  JValue *f = eval(r, n->a);
  JArguments a = arguments(r, n);
  j->line = n->line;
  if (f->kind == J_MACRO) return call_macro(j, f, &a);
  if (f->kind == J_FUNCTION) return j_function(j, f->u.s, &a);
  j_fail(j, TG_ERR_VALUE, "'%.60s' is no function", n->a->name ? n->a->name : "this");
}

/* ---- expressions */
static JValue *made_list(Run *r, const JNode *n) {
  bool map = n->kind == N_MAP;
  JValue *v = j_value(r->j, map ? J_MAP : J_LIST);
  v->tuple = n->negative;
  for (size_t i = 0; i < n->narguments; i++) {
    JValue *item = eval(r, n->argument[i].value);
    if (map)
      j_put(r->j, v, item, eval(r, n->argument[++i].value));
    else
      j_append(r->j, v, item);
  }
  return v;
}

static JValue *negative(Run *r, const JNode *n) {
  JValue *v = eval(r, n->a);
  if (v->kind == J_FLOAT) return j_float(r->j, -v->u.f);
  j_number(r->j, v);
  return whole(r->j, OP_SUB, 0, v->u.i);
}

static JValue *filtered(Run *r, const JNode *n) {
  JValue *v = eval(r, n->a);
  JArguments a = arguments(r, n);
  r->j->line = n->line;
  return n->kind == N_FILTER ? j_filter(r->j, n->name, v, &a)
                             : j_bool(r->j, j_test(r->j, n->name, v, &a) != n->negative);
}

static JValue *eval_kind(Run *r, const JNode *n) {
  JValue *v;
  switch (n->kind) {
  case N_CONST: return n->value ? n->value : r->hole;
  case N_NAME: return name_get(r, n->name, n->n);
  case N_LIST:
  case N_MAP: return made_list(r, n);
  case N_ATTRIBUTE: return j_attribute(r->j, eval(r, n->a), n->name, n->n);
  case N_INDEX: v = eval(r, n->a); return j_item(r->j, v, eval(r, n->b));
  case N_SLICE: return slice(r, n);
  case N_CALL: return call(r, n);
  case N_FILTER:
  case N_TEST: return filtered(r, n);
  case N_NOT: return j_bool(r->j, !j_true(eval(r, n->a)));
  case N_NEGATIVE: return negative(r, n);
  case N_AND: v = eval(r, n->a); return j_true(v) ? eval(r, n->b) : v;
  case N_OR: v = eval(r, n->a); return j_true(v) ? v : eval(r, n->b);
  case N_CHOICE: return j_true(eval(r, n->a)) ? eval(r, n->b) : n->c ? eval(r, n->c) : nothing(r);
  default: return binary(r, n);
  }
}

static JValue *eval(Run *r, const JNode *n) {
  j_step(r->j, 1);
  j_enter(r->j);
  r->j->line = n->line;
  JValue *v = eval_kind(r, n);
  r->j->depth--;
  return v;
}

/* ---- statements */
/* Assigns a value to the targets of `for` or `set`: one target takes the value, several targets take its
 * items. */
static void targets_set(Run *r, const JNode *n, JValue *v) {
  if (n->narguments == 1) {
    name_set(r, n->argument[0].name, v);
    return;
  }
  JValue *list = j_as_list(r->j, v);
  if (list->n != n->narguments)
    j_fail(r->j, TG_ERR_VALUE, "%zu values for %zu names", list->n, n->narguments);
  for (size_t i = 0; i < list->n; i++)
    name_set(r, n->argument[i].name, list->u.at[i]);
}

static JValue *chosen_items(Run *r, const JNode *n) {
  JValue *all = j_as_list(r->j, eval(r, n->a));
  if (!n->d) return all;
  JValue *some = j_value(r->j, J_LIST);
  Run each = *r;
  for (size_t i = 0; i < all->n; i++) {
    each.frame = frame_new(r->j, r->frame);
    targets_set(&each, n, all->u.at[i]);
    if (j_true(eval(&each, n->d))) j_append(r->j, some, all->u.at[i]);
  }
  return some;
}

static Flow run_for(Run *r, const JNode *n) {
  JValue *list = chosen_items(r, n);
  size_t count = list->n; /* items that the body appends are not visited */
  Run each = *r;
  if (!count) return run_all(r, n->c);
  for (size_t i = 0; i < count; i++) {
    JValue *loop = j_value(r->j, J_LOOP);
    loop->u.loop = j_alloc(r->j, sizeof *loop->u.loop);
    *loop->u.loop = (JLoop){list, i};
    each.frame = frame_new(r->j, r->frame);
    name_set(&each, "loop", loop);
    targets_set(&each, n, list->u.at[i]);
    if (run_all(&each, n->b) == FLOW_BREAK) break;
  }
  return FLOW_ON;
}

static void assign(Run *r, const JNode *n, JValue *v) {
  if (!n->name) {
    targets_set(r, n, v);
    return;
  }
  JValue *space = name_get(r, n->name, strlen(n->name));
  if (space->kind != J_NAMESPACE) j_fail(r->j, TG_ERR_VALUE, "'%.60s' is no namespace", n->name);
  j_put(r->j, space, j_string(r->j, n->argument[0].name, strlen(n->argument[0].name)), v);
}

/* the text of a block after its filters */
static JValue *block_text(Run *r, const JNode *n) {
  Run inner = *r;
  inner.to = j_buffer(r->j);
  run_all(&inner, n->b);
  JValue *text = j_text(r->j, inner.to);
  if (!n->a) return text;
  inner.hole = text;
  return eval(&inner, n->a);
}

static void define(Run *r, const JNode *n) {
  JValue *m = j_value(r->j, J_MACRO);
  m->u.macro = n;
  m->frame = r->frame;
  name_set(r, n->name, m);
}

static Flow run_one(Run *r, const JNode *n) {
  switch (n->kind) {
  case N_TEXT: j_buffer_put(r->j, r->to, n->name, n->n); break;
  case N_PRINT: j_write(r->j, r->to, eval(r, n->a), false); break;
  case N_IF: return run_all(r, j_true(eval(r, n->a)) ? n->b : n->c);
  case N_FOR: return run_for(r, n);
  case N_SET: assign(r, n, eval(r, n->a)); break;
  case N_SET_BLOCK: assign(r, n, block_text(r, n)); break;
  case N_MACRO: define(r, n); break;
  case N_FILTER_BLOCK: j_write(r->j, r->to, block_text(r, n), false); break;
  case N_BREAK: return FLOW_BREAK;
  case N_CONTINUE: return FLOW_CONTINUE;
  default: break;
  }
  return FLOW_ON;
}

static Flow run_all(Run *r, const JNode *n) {
  Flow f = FLOW_ON;
  j_enter(r->j);
  for (; n && f == FLOW_ON; n = n->next) {
    j_step(r->j, 1);
    r->j->line = n->line;
    f = run_one(r, n);
  }
  r->j->depth--;
  return f;
}

void j_render(Jinja *j, const JNode *root, JValue *names, LlmText *to) {
  JFrame *base = frame_new(j, NULL);
  base->names = names;
  Run r = {j, frame_new(j, base), to, NULL};
  run_all(&r, root);
}
