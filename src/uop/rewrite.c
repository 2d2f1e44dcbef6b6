/* rewrite.c: graph_rewrite, the engine under every pass. In: a root and a matcher. Out: the root with every
 * rule applied to the fixed point, sources before users. A node is rebuilt from its rewritten sources and
 * then matched. A rule's result is walked again. Memory is an explicit stack and a dense memo by node id, so
 * depth never costs C stack. */
#include "uop/uop_private.h"

UOp *rule_fired(Rewrite *rw, const char *name, const char *where, UOp *self, UOp *result) {
  if (!result || result == self) return NULL;
  RewriteEnv *env = store_env(rw->st);
  if (env) {
    if (env->limit == 0 && !rw->required) return NULL;
    if (env->limit > 0 && !rw->required) env->limit--;
    env->firings++;
    if (env->on_fire && !env->on_fire(env, rw, name, where, self, result)) {
      rw->failed = true;
      return NULL;
    }
  }
  rw->firings++;
  return result;
}

static UOp *result_of(const Rewrite *rw, const UOpMap *memo, UOp *u) {
  return u->mark & rw->mark ? u : map_node(memo, u);
}

static UOp *apply(Rewrite *rw, RewriteEnv *env, Matcher m, UOp *u) {
  if (env) {
    env->visits++;
    env->nested += env->in_rule > 0;
    env->in_rule++;
  }
  UOp *r = m(rw, u);
  if (env) env->in_rule--;
  return r;
}

/* u, rebuilt from the results of its sources; u itself if none has changed. NULL: out of memory. */
static UOp *rebuilt(Rewrite *rw, const UOpMap *memo, UOp *u) {
  UOp *room[16], **src = u->nsrc <= 16 ? room : mem_alloc(rw->mem, u->nsrc * sizeof *src);
  if (!src) return NULL;
  bool same = true;
  for (int i = 0; i < u->nsrc; i++) {
    src[i] = result_of(rw, memo, u->src[i]);
    same &= src[i] == u->src[i];
  }
  UOp *v = same ? u : uop_with_src(rw->st, u, src);
  if (src != room) mem_free(rw->mem, src);
  return v;
}

static WalkFrame *top_frame(UOpMap *memo) { return &memo->stack.at[memo->stack.len - 1]; }

static bool frame_push(Rewrite *rw, UOpMap *memo, UOp *u) {
  if (rw->ops && !(u->opmask & rw->ops)) return map_set(rw->st, memo, u, u->id); /* nothing to find below u */
  return vec_push(rw->st->mem, &memo->stack, ((WalkFrame){u, NULL, 0}));
}

/* Finishes the top frame: v is the result of its node. */
static bool frame_done(Rewrite *rw, UOpMap *memo, const UOp *v) {
  bool ok = map_set(rw->st, memo, top_frame(memo)->u, v->id);
  memo->stack.len--;
  return ok;
}

/* Called when all sources of the top frame's node have their results. Rebuilds the node and, unless the walk
 * is top-down, matches it. Returns false on failure. */
static bool node_match(Rewrite *rw, RewriteEnv *env, Matcher m, UOpMap *memo, uint64_t budget) {
  /* the limit suppresses rules that would fire, so no fixed point is known */
  bool limited = env && env->limit >= 0;
  UOp *u = top_frame(memo)->u, *v = rebuilt(rw, memo, u);
  if (!v) return false;
  UOp *done = v == u ? NULL : result_of(rw, memo, v);
  if (done) return frame_done(rw, memo, done);
  UOp *r = rw->top_down ? NULL : apply(rw, env, m, v);
  if (rw->firings > budget || rw->failed) return false;
  if (r && r != v) {
    top_frame(memo)->next = r; /* `top_frame` again, because the stack may have moved */
    return true;
  }
  if (!limited && !rw->top_down) v->mark |= rw->mark;
  return frame_done(rw, memo, v) && map_set(rw->st, memo, v, v->id);
}

/* Advances the top frame by one step. A frame waits for the sources of its node (top-down: after the matcher
 * has seen the node), and then for the result of `next`, which a rule returned for the node. */
static bool frame_step(Rewrite *rw, RewriteEnv *env, Matcher m, UOpMap *memo, uint64_t budget) {
  WalkFrame *f = top_frame(memo);
  if (f->next) {
    UOp *r = result_of(rw, memo, f->next);
    return r ? frame_done(rw, memo, r) : frame_push(rw, memo, f->next);
  }
  if (rw->top_down && !f->i) { /* in a top-down walk, i counts from 1 */
    f->i = 1;
    UOp *u = f->u, *r = apply(rw, env, m, u);
    if (rw->firings > budget || rw->failed) return false;
    f = top_frame(memo);
    if (r && r != u) {
      f->next = r;
      return true;
    }
  }
  if (f->i - rw->top_down < f->u->nsrc) {
    UOp *s = f->u->src[f->i++ - rw->top_down];
    return result_of(rw, memo, s) || frame_push(rw, memo, s);
  }
  return node_match(rw, env, m, memo, budget);
}

UOp *graph_rewrite(Rewrite *rw, Matcher m, UOp *root) {
  if (!root) return NULL;
  UOpMap *memo = uop_map_begin(rw->st, rw->st);
  RewriteEnv *env = store_env(rw->st);
  /* a set of rules that loops forever is an error, not a hang */
  uint64_t budget = rw->firings + 2000000 + 64 * (uint64_t)store_count(rw->st);
  bool ok = memo && frame_push(rw, memo, root);
  while (ok && memo->stack.len)
    ok = frame_step(rw, env, m, memo, budget);
  UOp *result = ok ? result_of(rw, memo, root) : NULL;
  if (!ok) rw->failed = true;
  uop_map_end(rw->st, memo);
  return result;
}

/* What a substitution looks for. A node that contains none of it is unchanged and is not walked. Mostly the
 * op mask decides this. For ranges the set of free ranges decides, unless a REDUCE or local memory closes
 * one. */
typedef struct Sought {
  uint64_t ops, ranges;
  bool only_ranges;
} Sought;

static bool without(const Sought *s, const UOp *u) {
  const uint64_t closes = op_bit(OPS_REDUCE) | op_bit(OPS_AFTER) | op_bit(OPS_BARRIER);
  return !(u->opmask & s->ops) || (s->only_ranges && !(u->ranges & s->ranges) && !(u->opmask & closes));
}

static UOp *substituted(UOpStore *st, TgMem *mem, const Sought *s, const UOpMap *memo, UOp *u) {
  UOp *room[16], **src = u->nsrc <= 16 ? room : mem_alloc(mem, u->nsrc * sizeof *src);
  if (!src) return NULL;
  bool same = true;
  for (int i = 0; i < u->nsrc; i++) {
    src[i] = without(s, u->src[i]) ? u->src[i] : map_node(memo, u->src[i]);
    same &= src[i] == u->src[i];
  }
  UOp *v = same ? u : uop_with_src(st, u, src);
  if (src != room) mem_free(mem, src);
  return v;
}

UOp *uop_substitute(UOpStore *st, TgMem *mem, UOp *root, int n, UOp *const *from, UOp *const *to) {
  if (!root) return NULL;
  Sought sought = {.only_ranges = true};
  for (int i = 0; i < n; i++) {
    sought.ops |= op_bit((Ops)from[i]->op);
    sought.ranges |= from[i]->ranges;
    sought.only_ranges &= from[i]->op == OPS_RANGE;
  }
  if (without(&sought, root)) return root;
  UOpMap *memo = uop_map_begin(st, st);
  bool ok = memo != NULL;
  for (int i = 0; ok && i < n; i++)
    ok = to[i] && map_set(st, memo, from[i], to[i]->id);
  if (ok && !map_node(memo, root)) ok = vec_push(st->mem, &memo->stack, ((WalkFrame){root, NULL, 0}));
  while (ok && memo->stack.len) {
    WalkFrame *f = top_frame(memo);
    UOp *u = f->u;
    if (f->i < u->nsrc) {
      UOp *s = u->src[f->i++];
      if (!without(&sought, s) && !map_node(memo, s))
        ok = vec_push(st->mem, &memo->stack, ((WalkFrame){s, NULL, 0}));
      continue;
    }
    memo->stack.len--;
    if (map_node(memo, u)) continue; /* it was pushed twice before it was done */
    UOp *v = substituted(st, mem, &sought, memo, u);
    ok = v && map_set(st, memo, u, v->id);
  }
  UOp *result = ok ? map_node(memo, root) : NULL;
  uop_map_end(st, memo);
  return result;
}

UOp *uop_mapped(UOpStore *st, TgMem *mem, const UOp *u, const UOpMap *m) {
  UOp *room[16] = {NULL}, **src = u->nsrc <= 16 ? room : mem_alloc(mem, u->nsrc * sizeof *src);
  if (!src) return NULL;
  for (int i = 0; i < u->nsrc; i++)
    src[i] = map_node(m, u->src[i]);
  UOp *v = uop_with_src(st, u, src);
  if (src != room) mem_free(mem, src);
  return v;
}

UOp *uop_copy(UOpStore *to, UOpStore *from, UOpMap *m, TgMem *mem, UOp *root) {
  UOpVec order = {0};
  if (map_node(m, root)) return map_node(m, root);
  bool ok = uop_toposort(from, mem, &root, 1, &order);
  for (size_t i = 0; ok && i < order.len; i++) {
    UOp *u = order.at[i];
    UOp *v = map_node(m, u) ? NULL : uop_mapped(to, mem, u, m);
    ok = map_node(m, u) || (v && map_set(from, m, u, v->id));
  }
  vec_free(mem, &order);
  return ok ? map_node(m, root) : NULL;
}

UOp *uop_simplify_top(UOpStore *st, TgMem *mem, UOp *u) {
  if (!u || (u->mark & MARK_SIMPLE)) return u;
  Rewrite rw = {.st = st, .mem = mem};
  UOp *r = pm_symbolic(&rw, u);
  if (rw.failed) return NULL;
  if (r && r != u) return uop_simplify(st, mem, r);
  RewriteEnv *env = store_env(st);
  bool simple = !env || env->limit < 0;
  for (int i = 0; i < u->nsrc; i++)
    simple &= (u->src[i]->mark & MARK_SIMPLE) != 0;
  if (simple) u->mark |= MARK_SIMPLE;
  return u;
}
