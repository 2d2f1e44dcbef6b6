/* opts.c: shapes a kernel's loops by a list of opts. In: loop ranges and the list. Out: the same kernel with
 * ranges split and typed: UPCAST (register tile), VEC (vector lanes), UNROLL, GROUP (vector accumulators
 * along a reduction), LOCAL (threads of a GPU block), THREAD.
 *
 * An opt names a range by its id in the kernel's graph and acts on every loop that descends from it. A range
 * that a tile does not divide is cut in two, whole tiles and the rest, each a loop nest of its own: no masks.
 * UPCAST balances its tiles: 10 by 8 is 5 and 5. Only the grid of a GPU and the threads of a block are
 * padded, because they are a fixed number: what lies past the end is gated. */
#include "codegen/codegen.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_R MAX_RANGES
static const char *const opt_names[] = {
    [OPT_THREAD] = "THREAD", [OPT_TILE] = "TILE", [OPT_SWAP] = "SWAP",     [OPT_LOCAL] = "LOCAL",
    [OPT_UPCAST] = "UPCAST", [OPT_VEC] = "VEC",   [OPT_UNROLL] = "UNROLL", [OPT_GROUP] = "GROUP"};

void opt_print(Str *out, const Opt *o) {
  str_printf(out, o->op == OPT_SWAP ? "%s%s r%lld r%lld" : "%s%s r%lld %lld", out->len ? ", " : "",
             opt_names[o->op], (long long)o->r, (long long)o->n);
}

bool opts_parse(const char *text, TgMem *mem, OptVec *out, TgError *err) {
  for (const char *p = text; *p;) {
    p += strspn(p, " ,");
    if (!*p) break;
    size_t len = strcspn(p, " ,"), op = 0;
    while (op < TG_COUNT(opt_names) && !(strlen(opt_names[op]) == len && !strncmp(p, opt_names[op], len)))
      op++;
    if (op == TG_COUNT(opt_names))
      return error_set(err, TG_ERR_VALUE,
                       "opts: '%.*s' is none of THREAD TILE SWAP LOCAL UPCAST VEC UNROLL GROUP",
                       (int)TG_MIN(len, 40), p),
             false;
    Opt o = {.op = (OptOp)op};
    char *end = (char *)p + len;
    long long v[2] = {0};
    for (int i = 0; i < 2; i++) {
      end += strspn(end, " ");
      bool range = *end == 'r', want = i == 0 || op == OPT_SWAP;
      const char *at = end + range;
      v[i] = range == want ? strtoll(at, &end, 10) : -1;
      if (range != want || end == at || v[i] < 0 || (!want && v[i] < 1))
        return error_set(err, TG_ERR_VALUE, "opts: %s needs %s", opt_names[op],
                         op == OPT_SWAP ? "two ranges, as in SWAP r0 r1"
                                        : "a range and a size, as in UPCAST r0 4"),
               false;
    }
    o.r = v[0], o.n = v[1];
    if (!vec_push(mem, out, o)) return error_set(err, TG_ERR_NOMEM, "opts: out of memory"), false;
    p = end;
  }
  return true;
}

static UOp *simp(Kernel *k, UOp *u) { return u ? uop_simplify(k->st, k->mem, u) : NULL; }

/* Ids rise within one change of the loops: an outer loop's is below that of the loop inside it, which is how
 * their order is told. */
UOp *kernel_range(Kernel *k, UOp *extent, AxisType type, int root) {
  int64_t id = k->next_range;
  if (id < MAX_RANGES)
    k->next_range++;
  else if (k->spare)
    id = __builtin_ctzll(k->spare), k->spare &= k->spare - 1;
  else
    return NULL; /* range sets are 64 bits wide */
  k->root[id] = (int8_t)(root == ROOT_OWN ? id : root);
  return extent ? uop_new(k->st, OPS_RANGE, DT_INDEX, 1, 1, &extent, (Arg){.range = {id, type}}) : NULL;
}

bool ranges_recycle(Kernel *k) {
  enum { ENOUGH = 16 };

  if (k->next_range + ENOUGH <= MAX_RANGES) return true;
  UOpVec order = {0};
  bool ok = uop_toposort(k->st, k->mem, &k->sink, 1, &order);
  uint64_t live = 0;
  for (size_t i = 0; ok && i < order.len; i++)
    if (order.at[i]->op == OPS_RANGE) live |= UINT64_C(1) << order.at[i]->arg.range.id;
  k->next_range = MAX_RANGES, k->spare = ~live;
  vec_free(k->mem, &order);
  return ok;
}

static int root_of(const Kernel *k, const UOp *r) { return k->root[r->arg.range.id]; }

static int list_start(const UOp *u) { return u->op == OPS_STORE ? 2 : u->op == OPS_REDUCE ? 1 : u->nsrc; }

static bool lists(const UOp *u, const UOp *r) {
  for (int i = list_start(u); i < u->nsrc; i++)
    if (u->src[i] == r) return true;
  return false;
}

/* A REDUCE over r, or local memory filled over r: what a cut divides inside a value. */
static bool loops_over(const UOp *u, const UOp *r) {
  if (u->op == OPS_REDUCE) return lists(u, r);
  if (u->op == OPS_AFTER)
    for (int i = 1; i < u->nsrc; i++)
      if (u->src[i]->op == OPS_STORE && lists(u->src[i], r)) return true;
  return false;
}

/* ---- splitting. List entries (of STORE and REDUCE) that became expressions are opened into their ranges,
 * outer first. */
static UOp *pm_open_lists(Rewrite *rw, UOp *u) {
  int first = u->op == OPS_STORE || u->op == OPS_REDUCE ? list_start(u) : -1, n = 0;
  if (first < 0) return NULL;
  bool any = false;
  for (int i = first; i < u->nsrc; i++)
    any |= u->src[i]->op != OPS_RANGE;
  if (!any) return NULL;
  UOp *src[MAX_RANGES + 2];
  for (int i = 0; i < u->nsrc; i++) {
    if (i < first || u->src[i]->op == OPS_RANGE) {
      if (n < MAX_RANGES) src[n++] = u->src[i];
      continue;
    }
    UOpVec order = {0};
    if (!uop_toposort(rw->st, rw->mem, &u->src[i], 1, &order)) {
      rw->failed = true;
      return NULL;
    }
    int n0 = n;
    for (size_t j = 0; j < order.len; j++)
      if (order.at[j]->op == OPS_RANGE && n < MAX_RANGES) {
        bool listed = false; /* two loops that became one */
        for (int l = first; l < n; l++)
          listed |= src[l] == order.at[j];
        if (listed) continue;
        int at = n++;
        while (at > n0 && src[at - 1]->arg.range.id > order.at[j]->arg.range.id)
          src[at] = src[at - 1], at--;
        src[at] = order.at[j];
      }
    vec_free(rw->mem, &order);
  }
  if (u->op == OPS_REDUCE && n == 1) return src[0];
  return uop_new(rw->st, (Ops)u->op, (DType)u->dtype, u->lanes, n, src, u->arg);
}

UOp *open_lists(Kernel *k, UOp *root) {
  Rewrite rw = {.st = k->st, .mem = k->mem};
  return root ? graph_rewrite(&rw, pm_open_lists, root) : NULL;
}

static bool becomes_index(const Kernel *k,
                          const UOp *r) { /* no loop in the end, so it may stand in two places */
  return k->ren->has_local && (r->arg.range.type == AXIS_GLOBAL || r->arg.range.type == AXIS_LOCAL);
}

/* root: a REDUCE, a STORE, or a SINK of stores that share loops. The rest of a cut range is a loop nest of
 * its own: r becomes `tail`, and every loop below it (later in a store's list, or of a reduction or fill that
 * depends on a renewed loop) becomes a new loop, so that no loop stands in two places. */
static UOp *tail_copy(Kernel *k, UOp *root, UOp *r, UOp *tail, bool own_nest) {
  UOpVec order = {0};
  UOp *from[MAX_R], *to[MAX_R];
  int n = 0;
  uint64_t renewed = r->ranges;
  from[n] = r, to[n++] = tail;
  bool ok = uop_toposort(k->st, k->mem, &root, 1, &order);
  for (size_t i = order.len; ok && i-- > 0;) { /* users first: outer loops before inner ones */
    UOp *u = order.at[i];
    bool top = u == root;
    for (int s = 0; root->op == OPS_SINK && s < root->nsrc; s++)
      top |= u == root->src[s];
    bool passed = !top || own_nest; /* the loops around r stay */
    if (u != root && !(u->ranges & renewed)) continue;
    if (u->op == OPS_AFTER) { /* a row filled here is not the row of the other nest */
      const UOp *l = u->src[0];
      if (n == MAX_R) {
        ok = false;
        break;
      }
      from[n] = u->src[0];
      to[n] = uop_new(k->st, OPS_DEFINE_LOCAL, (DType)l->dtype, 1, 0, NULL,
                      (Arg){.param = {l->arg.param.nelem, k->next_local++}});
      ok = to[n++] != NULL;
      continue;
    }
    for (int s = list_start(u); s < u->nsrc && ok; s++) {
      if (u->src[s] == r) {
        passed = true;
        continue;
      }
      bool seen = !passed || u->src[s]->op != OPS_RANGE || becomes_index(k, u->src[s]);
      for (int j = 0; j < n; j++)
        seen |= from[j] == u->src[s];
      if (seen) continue;
      if (n == MAX_R) {
        ok = false;
        break;
      }
      from[n] = u->src[s], renewed |= u->src[s]->ranges;
      to[n] = kernel_range(k, u->src[s]->src[0], (AxisType)u->src[s]->arg.range.type, root_of(k, u->src[s]));
      ok = to[n++] != NULL;
    }
  }
  vec_free(k->mem, &order);
  return ok ? uop_substitute(k->st, k->mem, root, n, from, to) : NULL;
}

typedef struct Cut {
  Kernel *k;
  UOp *r, *head, *tail;
} Cut;

static UOp *pm_cut(Rewrite *rw,
                   UOp *u) { /* a loop inside a value: over the whole tiles, then over the rest */
  Cut *c = rw->ctx;
  if (!loops_over(u, c->r)) return NULL;
  if (u->op == OPS_REDUCE)
    return uop_alu2(rw->st, (Ops)u->arg.reduce.op, uop_substitute(rw->st, rw->mem, u, 1, &c->r, &c->head),
                    tail_copy(c->k, u, c->r, c->tail, true));
  UOpVec src = {0};
  bool ok = vec_push(rw->mem, &src, u->src[0]);
  for (int part = 0; ok && part < 2; part++)
    for (int i = 1; ok && i < u->nsrc; i++) {
      bool over = lists(u->src[i], c->r);
      if (part && !over) continue;
      UOp *s = !over  ? u->src[i]
               : part ? tail_copy(c->k, u->src[i], c->r, c->tail, true)
                      : uop_substitute(rw->st, rw->mem, u->src[i], 1, &c->r, &c->head);
      ok = s && vec_push(rw->mem, &src, s);
    }
  UOp *r = ok ? uop_new(rw->st, OPS_AFTER, (DType)u->dtype, 1, (int)src.len, src.at, u->arg) : NULL;
  if (!ok) rw->failed = true;
  vec_free(rw->mem, &src);
  return r;
}

static UOp *gated_store(Kernel *k, UOp *s, UOp *valid) { /* stores, and reads its buffers, only where valid */
  if (!s) return NULL;
  UOp *x = s->src[0], *own = x->arg.i ? gate_loads(k, index_gate(x), valid) : NULL, *at[MAX_AXES + 2];
  UOp *gate = x->arg.i ? simp(k, own ? uop_alu2(k->st, OPS_AND, own, valid) : NULL) : valid;
  UOp *src[MAX_RANGES + 2];
  memcpy(src, s->src, s->nsrc * sizeof *src);
  int n = 1 + index_naxes(x);
  memcpy(at, x->src, (size_t)n * sizeof *at);
  for (int i = 1; i < n; i++)
    at[i] = gate_loads(k, at[i], valid); /* places that are data */
  at[n] = gate;
  src[0] = uop_new(k->st, OPS_INDEX, (DType)x->dtype, 1, n + 1, at, (Arg){.i = 1});
  src[1] = gate_loads(k, s->src[1], valid);
  return uop_new(k->st, OPS_STORE, DT_VOID, 1, s->nsrc, src, s->arg);
}

typedef struct Pad {
  Kernel *k;
  UOp *r, *whole, *valid;
} Pad;

static UOp *pm_pad(Rewrite *rw,
                   UOp *u) { /* r becomes `whole`; what lies past its end is the identity, or not stored */
  Pad *p = rw->ctx;
  if (!loops_over(u, p->r)) return NULL;
  UOp *src[MAX_RANGES + 2], *r = NULL;
  if (u->op == OPS_REDUCE) {
    memcpy(src, u->src, u->nsrc * sizeof *src);
    if (p->valid) {
      UOp *id = uop_const(rw->st, (DType)u->dtype, op_identity((Ops)u->arg.reduce.op, (DType)u->dtype));
      src[0] = uop_where(
          rw->st, p->valid,
          gate_loads(p->k, uop_substitute(rw->st, rw->mem, u->src[0], 1, &p->r, &p->whole), p->valid), id);
    }
    r = uop_new(rw->st, OPS_REDUCE, (DType)u->dtype, 1, u->nsrc, src, u->arg);
    return r ? uop_substitute(rw->st, rw->mem, r, 1, &p->r, &p->whole) : NULL;
  }
  if (u->nsrc > MAX_RANGES) return NULL;
  src[0] = u->src[0];
  for (int i = 1; i < u->nsrc; i++) {
    src[i] = uop_substitute(rw->st, rw->mem, u->src[i], 1, &p->r, &p->whole);
    if (src[i] && p->valid && lists(u->src[i], p->r)) src[i] = gated_store(p->k, src[i], p->valid);
  }
  return uop_new(rw->st, OPS_AFTER, (DType)u->dtype, 1, u->nsrc, src, u->arg);
}

/* Replaces r by `expr` in every loop that has it; `valid`, if any, says where expr is inside r. */
static bool replace_range(Kernel *k, UOp *r, UOp *expr, UOp *valid) {
  Pad p = {k, r, expr, valid};
  Rewrite rw = {.st = k->st, .mem = k->mem, .ctx = &p};
  UOp *sink = expr ? k->sink : NULL;
  if (sink && valid) {
    sink = graph_rewrite(&rw, pm_pad, sink);
    UOpVec out = {0};
    bool ok = sink != NULL;
    for (int i = 0; ok && i < sink->nsrc; i++) {
      UOp *s = sink->src[i];
      if (lists(s, r)) s = gated_store(k, uop_substitute(k->st, k->mem, s, 1, &r, &expr), valid);
      ok = s && vec_push(k->mem, &out, s);
    }
    sink = ok ? uop_new(k->st, OPS_SINK, DT_VOID, 1, (int)out.len, out.at, ARG0) : NULL;
    vec_free(k->mem, &out);
  } else if (sink)
    sink = uop_substitute(k->st, k->mem, sink, 1, &r, &expr);
  return (k->sink = simp(k, open_lists(k, sink))) != NULL;
}

static bool cut_range(Kernel *k, UOp *r, UOp *head, UOp *tail, bool own_nest) {
  Cut c = {k, r, head, tail};
  Rewrite rw = {.st = k->st, .mem = k->mem, .ctx = &c};
  UOp *sink = head && tail ? graph_rewrite(&rw, pm_cut, k->sink) : NULL;
  UOpVec stores = {0}, cut = {0};
  bool ok = sink != NULL;
  for (int i = 0; i < (sink ? sink->nsrc : 0) && ok; i++) {
    UOp *s = sink->src[i];
    if (lists(s, r))
      ok = vec_push(k->mem, &cut, s) && (s = uop_substitute(k->st, k->mem, s, 1, &r, &head)) != NULL;
    ok = ok && vec_push(k->mem, &stores, s);
  }
  if (ok && cut.len) {
    UOp *rest = uop_new(k->st, OPS_SINK, DT_VOID, 1, (int)cut.len, cut.at, ARG0);
    rest = rest ? tail_copy(k, rest, r, tail, own_nest) : NULL;
    ok = rest != NULL;
    for (int i = 0; ok && i < rest->nsrc; i++)
      ok = vec_push(k->mem, &stores, rest->src[i]);
  }
  k->sink =
      ok ? simp(k, open_lists(k, uop_new(k->st, OPS_SINK, DT_VOID, 1, (int)stores.len, stores.at, ARG0)))
         : NULL;
  vec_free(k->mem, &stores), vec_free(k->mem, &cut);
  return k->sink != NULL;
}

typedef struct Block {
  AxisType outer, inner;
  int outer_root, inner_root;
  UOp *loop;
} Block;

static UOp *block_expr(Kernel *k, Block *b, int64_t base, int64_t blocks,
                       int64_t n) { /* base + block * n + inner */
  UOp *zero = uop_index_const(k->st, 0), *size = uop_index_const(k->st, n);
  UOp *o = blocks == 1 ? zero : kernel_range(k, uop_index_const(k->st, blocks), b->outer, b->outer_root);
  UOp *i = n == 1 ? zero : kernel_range(k, size, b->inner, b->inner_root);
  b->loop = o && o->op == OPS_RANGE ? o : NULL;
  return uop_alu2(k->st, OPS_ADD,
                  uop_alu2(k->st, OPS_ADD, o && i ? uop_alu2(k->st, OPS_MUL, o, size) : NULL, i),
                  uop_index_const(k->st, base));
}

/* Loops in front of their list, behind those already there: the blocks of a TILE. */
static UOp *pm_front(Rewrite *rw, UOp *u) {
  Kernel *k = rw->ctx;
  int first = u->op == OPS_STORE || u->op == OPS_REDUCE ? list_start(u) : -1, n = 0;
  if (first < 0) return NULL;
  UOp *src[MAX_RANGES + 2];
  for (int i = 0; i < first; i++)
    src[n++] = u->src[i];
  for (int pass = 0; pass < 2; pass++)
    for (int i = first; i < u->nsrc; i++)
      if ((u->src[i]->op == OPS_RANGE && root_of(k, u->src[i]) == ROOT_TILE) == (pass == 0))
        src[n++] = u->src[i];
  return uop_new(rw->st, (Ops)u->op, (DType)u->dtype, u->lanes, n, src, u->arg);
}

static bool in_reduce(Kernel *k, const UOpVec *order, const UOp *r) {
  (void)k;
  for (size_t i = 0; i < order->len; i++)
    if (order->at[i]->op == OPS_REDUCE && lists(order->at[i], r)) return true;
  return false;
}

/* A loop whose turns are known when the kernel is launched: whole blocks, and what is left as a loop of its
 * own. */
static bool split_unknown(Kernel *k, const Opt *o, UOp *r, AxisType inner) {
  bool tile = o->op == OPT_TILE;
  AxisType outer = (AxisType)r->arg.range.type;
  UOp *size = uop_index_const(k->st, o->n), *blocks = simp(k, uop_alu2(k->st, OPS_FLOORDIV, r->src[0], size)),
      *left = simp(k, uop_alu2(k->st, OPS_FLOORMOD, r->src[0], size));
  if (!blocks || !left) return false;
  UOp *a = kernel_range(k, blocks, outer, tile ? ROOT_TILE : root_of(k, r)),
      *b = kernel_range(k, size, tile ? outer : inner, tile ? root_of(k, r) : ROOT_NONE);
  UOp *head = a && b ? uop_alu2(k->st, OPS_ADD, uop_alu2(k->st, OPS_MUL, a, size), b) : NULL;
  bool ok = head != NULL;
  if (is_const_int(left, 0))
    ok = ok && replace_range(k, r, head, NULL);
  else {
    UOp *rest = kernel_range(k, left, outer, ROOT_NONE);
    ok = ok && rest &&
         cut_range(k, r, head, uop_alu2(k->st, OPS_ADD, rest, uop_alu2(k->st, OPS_MUL, blocks, size)), tile);
  }
  if (ok && tile) {
    Rewrite rw = {.st = k->st, .mem = k->mem, .ctx = k};
    ok = (k->sink = graph_rewrite(&rw, pm_front, k->sink)) != NULL;
  }
  return ok;
}

/* A vector of n lanes is this many pieces of 16, 8, 4, 2 and 1 lanes: so often is written what it computes.
 */
static int64_t pieces(int64_t n) { return n / 16 + __builtin_popcountll((uint64_t)n % 16); }

static int64_t operations_along(Kernel *k, const UOp *r) {
  UOpVec order = {0};
  int64_t n = 0;
  bool ok = uop_toposort(k->st, k->mem, &k->sink, 1, &order);
  for (size_t i = 0; ok && i < order.len; i++)
    n += (order.at[i]->ranges & r->ranges) && order.at[i]->dtype != DT_INDEX &&
         op_is_alu((Ops)order.at[i]->op);
  vec_free(k->mem, &order);
  return n;
}

static bool split(Kernel *k, const Opt *o, UOp *r, AxisType inner) {
  enum {
    MOST_PIECES_TEXT = 400
  }; /* operations written for the lanes that are left, else they run one by one */

  if (!is_const(r->src[0])) return split_unknown(k, o, r, inner);
  int64_t size = r->src[0]->arg.v.i, n = TG_MIN(o->n, size), full = size / n, rest = size % n,
          tiles = (size + n - 1) / n;
  bool tile = o->op == OPT_TILE;
  bool grid = r->arg.range.type == AXIS_GLOBAL, pad = k->ren->has_local && (grid || inner == AXIS_LOCAL);
  Block b = {.outer = (AxisType)r->arg.range.type,
             .inner = tile ? (AxisType)r->arg.range.type : inner,
             .outer_root = tile ? ROOT_TILE : root_of(k, r),
             .inner_root = tile                          ? root_of(k, r)
                           : grid && inner == AXIS_LOCAL ? ROOT_GRID
                                                         : ROOT_NONE};
  if (pad) {
    if (inner == AXIS_LOCAL) n = o->n, tiles = (size + n - 1) / n, rest = size % n;
    UOp *e = simp(k, block_expr(k, &b, 0, tiles, n));
    return e &&
           replace_range(k, r, e,
                         rest ? simp(k, uop_alu2(k->st, OPS_CMPLT, e, uop_index_const(k->st, size))) : NULL);
  }
  bool lanes = inner == AXIS_VEC || inner == AXIS_GROUP;
  int64_t written = lanes ? operations_along(k, r) : 0;
  while (lanes && n < 16 && (n & (n - 1)) && written * pieces(n) > MOST_PIECES_TEXT)
    n &= n - 1, full = size / n, rest = size % n;
  int64_t n1 = n, blocks1 = full, n2 = rest, blocks2 = rest ? 1 : 0;
  Block left = b;
  if (written * pieces(rest) > MOST_PIECES_TEXT) left.inner = b.outer;
  if (o->op == OPT_UPCAST && rest) { /* balanced: tiles of n1 and one less */
    n1 = (size + tiles - 1) / tiles, n2 = size / tiles;
    blocks1 = n1 == n2 ? tiles : size - tiles * n2, blocks2 = n1 == n2 ? 0 : tiles - blocks1;
  }
  UOp *head = block_expr(k, &b, 0, blocks1, n1);
  bool ok = blocks2 ? cut_range(k, r, head, block_expr(k, &left, blocks1 * n1, blocks2, n2), tile)
                    : replace_range(k, r, head, NULL);
  if (ok && tile) {
    Rewrite rw = {.st = k->st, .mem = k->mem, .ctx = k};
    ok = (k->sink = graph_rewrite(&rw, pm_front, k->sink)) != NULL;
  }
  return ok;
}

typedef struct Swap {
  Kernel *k;
  int a, b;
} Swap;

static UOp *pm_swap(Rewrite *rw, UOp *u) {
  Swap *w = rw->ctx;
  if (u->op != OPS_STORE && u->op != OPS_REDUCE) return NULL;
  int at[2] = {-1, -1};
  for (int i = list_start(u); i < u->nsrc; i++) {
    if (u->src[i]->op != OPS_RANGE) return NULL;
    if (root_of(w->k, u->src[i]) == w->a) at[0] = i;
    if (root_of(w->k, u->src[i]) == w->b) at[1] = i;
  }
  if (at[0] < 0 || at[1] < 0 || at[0] > at[1]) return NULL; /* done already */
  UOp *src[MAX_RANGES + 2];
  memcpy(src, u->src, u->nsrc * sizeof *src);
  src[at[0]] = u->src[at[1]], src[at[1]] = u->src[at[0]];
  return uop_new(rw->st, (Ops)u->op, (DType)u->dtype, u->lanes, u->nsrc, src, u->arg);
}

static bool refuse(Kernel *k, const Opt *o, const char *why) {
  if (k->strict)
    error_set(k->err, TG_ERR_VALUE, "opts: %s r%lld %lld: %s", opt_names[o->op], (long long)o->r,
              (long long)o->n, why);
  return false;
}

/* The loop of a store that is dealt to threads: loop r of the opt where the store has it, else its first loop
 * of the grid that is long enough. */
static UOp *thread_loop(Kernel *k, const UOp *s, const Opt *opt) {
  UOp *best = NULL;
  for (int i = 2; i < s->nsrc; i++) {
    UOp *r = s->src[i];
    if (r->op != OPS_RANGE || r->arg.range.type >= AXIS_UPCAST || r->src[0]->ranges ||
        r->src[0]->vmax < opt->n)
      continue;
    if (root_of(k, r) == opt->r) return r;
    if (!best && r->arg.range.type == AXIS_GLOBAL) best = r;
  }
  return best;
}

/* Stores whose loop `best` goes to threads (NULL: they run on the first thread). Apart from other groups they
 * get loops of their own. */
static bool thread_group(Kernel *k, UOp *const *stores, int n, UOp *best, UOp *t, bool apart, UOpVec *out) {
  int64_t threads = t->src[0]->arg.v.i;
  UOp *zero = uop_index_const(k->st, 0), *m = best ? best->src[0] : zero;
  UOp *c = simp(k, uop_alu2(k->st, OPS_FLOORDIV,
                            uop_alu2(k->st, OPS_ADD, m, uop_index_const(k->st, threads - 1)),
                            uop_index_const(k->st, threads))),
      *begin = uop_alu2(k->st, OPS_MUL, t, c), *ext, *first = best;
  if (best) {
    UOp *left = uop_alu2(k->st, OPS_SUB, m, begin);
    ext = is_const(m) && m->arg.v.i % threads == 0
              ? c
              : simp(k, uop_where(k->st, uop_alu2(k->st, OPS_CMPLT, left, c),
                                  uop_alu2(k->st, OPS_MAX, left, zero), c));
  } else
    ext = uop_where(k->st, uop_alu2(k->st, OPS_CMPLT, t, uop_index_const(k->st, 1)),
                    uop_index_const(k->st, 1), zero);
  UOp *inner = kernel_range(k, ext, AXIS_LOOP, ROOT_NONE),
      *group = uop_new(k->st, OPS_SINK, DT_VOID, 1, n, stores, ARG0);
  for (int i = 2; !first && i < stores[0]->nsrc; i++)
    first = stores[0]->src[i];
  if (!inner || !group) return false;
  if (best)
    group = apart ? tail_copy(k, group, best, inner, true)
                  : uop_substitute(k->st, k->mem, group, 1, &best, &inner);
  else if (apart && first)
    group =
        tail_copy(k, group, first,
                  kernel_range(k, first->src[0], (AxisType)first->arg.range.type, root_of(k, first)), true);
  UOp *at = uop_alu2(k->st, OPS_ADD, begin, inner);
  for (int j = 0; group && j < n; j++) {
    UOp *s = group->src[j], *src[MAX_RANGES + 4];
    int w = 2;
    for (int i = 0; i < 2; i++)
      src[i] = best ? uop_substitute(k->st, k->mem, s->src[i], 1, &inner, &at) : s->src[i];
    src[w++] = t;
    if (!best) src[w++] = inner;
    for (int i = 2; i < s->nsrc; i++)
      src[w++] = s->src[i];
    s = uop_new(k->st, OPS_STORE, DT_VOID, 1, w, src, ARG0);
    if (!s || !vec_push(k->mem, out, s)) return false;
  }
  return group != NULL;
}

/* Outer loops are dealt to threads in chunks, never a reduction: any number of threads gives the same bits.
 */
static bool thread(Kernel *k, const Opt *opt) {
  if (!ranges_recycle(k)) return false;
  UOp *t = kernel_range(k, uop_index_const(k->st, opt->n), AXIS_THREAD, ROOT_NONE);
  UOpVec stores = {0}, group = {0}, loops = {0};
  bool ok = t != NULL;
  for (int j = 0; ok && j < k->sink->nsrc; j++)
    ok = vec_push(k->mem, &loops, thread_loop(k, k->sink->src[j], opt));
  for (int j = 0; ok && j < k->sink->nsrc; j++) {
    bool done = false, apart = false;
    group.len = 0;
    for (int i = 0; ok && i < k->sink->nsrc; i++) {
      if (loops.at[i] == loops.at[j])
        done |= i < j, ok = vec_push(k->mem, &group, k->sink->src[i]);
      else
        apart = true;
    }
    if (!done) ok = ok && thread_group(k, group.at, (int)group.len, loops.at[j], t, apart && j > 0, &stores);
  }
  if (ok) {
    k->sink = simp(k, open_lists(k, uop_new(k->st, OPS_SINK, DT_VOID, 1, (int)stores.len, stores.at, ARG0)));
    k->nthread = (int)opt->n;
    ok = k->sink != NULL;
  }
  vec_free(k->mem, &stores), vec_free(k->mem, &group), vec_free(k->mem, &loops);
  return ok;
}

/* Lanes along r where there are lanes already: one range is the lanes of a loop nest. */
static bool lanes_meet(const UOpVec *order, const UOp *r) {
  uint64_t vec = 0;
  for (size_t i = 0; i < order->len; i++) {
    const UOp *u = order->at[i];
    if (u->op == OPS_RANGE && (u->arg.range.type == AXIS_VEC || u->arg.range.type == AXIS_GROUP))
      vec |= u->ranges;
  }
  for (size_t i = 0; vec && i < order->len; i++) {
    const UOp *u = order->at[i];
    if (u->op != OPS_STORE && u->op != OPS_REDUCE) continue;
    uint64_t own = 0;
    for (int s = list_start(u); s < u->nsrc; s++)
      own |= u->src[s]->ranges;
    for (int s = 0; s < list_start(u); s++)
      own |= u->src[s]->ranges;
    if ((own & vec) && (own & r->ranges)) return true;
  }
  return false;
}

static bool opt_apply(Kernel *k, const Opt *o) {
  UOpVec order = {0};
  UOp *r[MAX_RANGES];
  int n = 0;
  bool ok = uop_toposort(k->st, k->mem, &k->sink, 1, &order), reduce = false, local = false;
  for (size_t i = 0; ok && i < order.len; i++) {
    UOp *u = order.at[i];
    local |= u->op == OPS_DEFINE_LOCAL;
    if (u->op != OPS_RANGE || root_of(k, u) != o->r || u->src[0]->ranges ||
        (k->ren->has_local && !is_const(u->src[0])) || u->arg.range.type >= AXIS_UPCAST || n == MAX_RANGES)
      continue;
    r[n++] = u, reduce |= in_reduce(k, &order, u);
  }
  bool meet = false, threads_meet = false, ordered = false;
  int ngrid_axes = 0;
  for (size_t i = 0; i < order.len; i++)
    if (order.at[i]->op == OPS_RANGE && order.at[i]->arg.range.type == AXIS_ORDERED)
      ordered |= root_of(k, order.at[i]) == o->r || (o->op == OPT_SWAP && root_of(k, order.at[i]) == o->n);
  for (size_t i = 0; i < order.len; i++) { /* inner LOCAL loops share one axis: one length, once in a nest */
    UOp *u = order.at[i];
    if (u->op != OPS_RANGE || u->arg.range.type != AXIS_LOCAL) continue;
    bool of_grid = root_of(k, u) == ROOT_GRID;
    ngrid_axes += of_grid;
    if (!of_grid && n && r[0]->arg.range.type != AXIS_GLOBAL) threads_meet |= u->src[0]->arg.v.i != o->n;
    for (size_t j = 0; !of_grid && j < order.len && n; j++)
      for (int l = 0; l < n; l++)
        threads_meet |=
            lists(order.at[j], u) && (lists(order.at[j], r[l]) || (order.at[j]->ranges & r[l]->ranges));
  }
  threads_meet |= n && r[0]->arg.range.type == AXIS_GLOBAL && ngrid_axes >= 2;
  for (int i = 0; i < n; i++)
    meet |= lanes_meet(&order, r[i]);
  vec_free(k->mem, &order);
  if (!ok) return false;
  if (ordered) return refuse(k, o, "its turns run in order, one after another");
  if (meet && (o->op == OPT_VEC || (o->op == OPT_GROUP && k->ren->has_threads)))
    return refuse(k, o, "this loop nest has its lanes already");
  if (!n) return refuse(k, o, "no such loop is left");
  bool grid = r[0]->arg.range.type == AXIS_GLOBAL;
  AxisType inner = AXIS_UPCAST;
  switch (o->op) {
  case OPT_THREAD:
    if (!k->ren->has_threads) return refuse(k, o, "the device has no threads of this kind");
    if (o->n < 2 || o->n > 1024 || k->nthread > 1) return refuse(k, o, "one THREAD, of 2 to 1024");
    return reduce ? refuse(k, o, "a loop of a reduction") : thread(k, o);
  case OPT_SWAP: {
    Swap w = {k, (int)o->r, (int)o->n};
    Rewrite rw = {.st = k->st, .mem = k->mem, .ctx = &w};
    UOp *sink = graph_rewrite(&rw, pm_swap, k->sink);
    if (sink == k->sink) return refuse(k, o, "no loop nest has both, the first outside");
    return (k->sink = sink) != NULL;
  }
  case OPT_LOCAL:
    inner = AXIS_LOCAL;
    if (threads_meet)
      return refuse(k, o, "the threads of a block go along this loop nest already, or are another number");
    if (!k->ren->has_local) return refuse(k, o, "the device has no blocks of threads");
    if (grid && local) return refuse(k, o, "threads along the grid would need local memory for each row");
    if (reduce) return refuse(k, o, "a loop of a reduction: GROUP deals it to the threads");
    break;
  case OPT_VEC:
    inner = AXIS_VEC;
    if (grid && local) return refuse(k, o, "lanes along the grid would need local memory for each lane");
    break;
  case OPT_UPCAST:
    if (grid && local) return refuse(k, o, "a tile of the grid would need local memory for each row");
    break;
  case OPT_UNROLL:
    inner = AXIS_UNROLL;
    if (!reduce) return refuse(k, o, "not a loop of a reduction");
    break;
  case OPT_GROUP:
    inner = k->ren->has_local ? AXIS_LOCAL : AXIS_GROUP;
    if (k->ren->has_local && threads_meet)
      return refuse(k, o, "the threads of a block go along this loop nest already, or are another number");
    if (!reduce) return refuse(k, o, "not a loop of a reduction");
    break;
  case OPT_TILE: break;
  }
  for (int i = 0; i < n; i++)
    if (!ranges_recycle(k) || !split(k, o, r[i], inner)) return false;
  return true;
}

bool opts_apply(Kernel *k, const OptVec *v) {
  static const int rank[] = {[OPT_TILE] = 0, [OPT_SWAP] = 1,   [OPT_LOCAL] = 2, [OPT_UPCAST] = 2,
                             [OPT_VEC] = 2,  [OPT_UNROLL] = 2, [OPT_GROUP] = 2};
  int last = 0;
  for (size_t i = 0; i < v->len; i++) { /* a list reads from the outer loops to the inner ones */
    if (v->at[i].op == OPT_THREAD) continue;
    if (rank[v->at[i].op] < last)
      return refuse(k, &v->at[i], "TILE comes before SWAP, and SWAP before what shapes the inner loops");
    last = rank[v->at[i].op];
  }
  for (int late = 0; late < 2; late++) /* THREAD is the outermost loop: it is made when the others stand */
    for (size_t i = 0; i < v->len; i++)
      if ((v->at[i].op == OPT_THREAD) == (late == 1) && !opt_apply(k, &v->at[i])) return false;
  for (size_t i = 0; i < v->len; i++)
    opt_print(&k->opts, &v->at[i]);
  return true;
}

/* A grid has a number of blocks that is known here: loops of symbolic length that would be of it run to their
 * largest length, and what lies past their end is gated. */
static bool pad_grid(Kernel *k) {
  UOpVec order = {0};
  bool ok = uop_toposort(k->st, k->mem, &k->sink, 1, &order);
  for (size_t i = 0; ok && i < order.len; i++) {
    UOp *r = order.at[i];
    if (r->op != OPS_RANGE || r->arg.range.type != AXIS_GLOBAL || is_const(r->src[0]) || r->src[0]->ranges)
      continue;
    UOp *e = kernel_range(k, uop_index_const(k->st, r->src[0]->vmax), AXIS_GLOBAL, root_of(k, r));
    ok = e && replace_range(k, r, e, simp(k, uop_alu2(k->st, OPS_CMPLT, e, r->src[0])));
  }
  vec_free(k->mem, &order);
  return ok;
}

/* The last n opts but THREAD, which costs nothing and gains most, are left out. */
static void leave_out(OptVec *list, int n) {
  size_t kept = 0, shaping = 0, i;
  for (i = 0; i < list->len; i++)
    shaping += list->at[i].op != OPT_THREAD;
  size_t most = shaping > (size_t)n ? shaping - (size_t)n : 0, taken = 0;
  for (i = 0; i < list->len; i++) {
    bool stays = list->at[i].op == OPT_THREAD || taken++ < most;
    if (stays) list->at[kept++] = list->at[i];
  }
  list->len = kept;
}

bool apply_opts(Kernel *k, const CodegenOptions *opt) {
  OptVec list = {0};
  bool ok = true;
  if (!k->ren) return true;
  if (k->ren->has_local && !opt->noopt && !pad_grid(k)) return false;
  if (opt->opts)
    k->strict = true, ok = opts_parse(opt->opts, k->mem, &list, k->err);
  else if (!opt->noopt)
    ok = k->ren->has_local ? heuristic_gpu(k, &list) : heuristic_cpu(k, opt->ncores, &list);
  k->nopt = (int)list.len;
  if (ok && !opt->opts && opt->leave_out) leave_out(&list, opt->leave_out);
  ok = ok && opts_apply(k, &list);
  vec_free(k->mem, &list);
  return ok;
}
