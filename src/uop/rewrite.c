/* rewrite.c: graph_rewrite, the engine under every pass. In: a root and a matcher. Out: the root with every rule applied to the fixed
 * point, sources before users. A node is rebuilt from rewritten sources, then matched; what a rule returns is walked again.
 * Memory is an explicit stack and a dense memo by node id; depth never costs C stack. */
#include "uop/uop.h"
#include <string.h>

typedef struct Memo { TgMem *mem; UOp **at; size_t cap; } Memo;
static UOp *memo_get(const Memo *m, const UOp *u) { return u->id < m->cap ? m->at[u->id] : NULL; }
static bool memo_put(Memo *m, const UOp *u, UOp *v) {
  if (u->id >= m->cap && !vec_grow(m->mem, (void **)&m->at, &m->cap, (size_t)u->id + 1, sizeof *m->at)) return false;
  m->at[u->id] = v;
  return true;
}

UOp *rule_fired(Rewrite *rw, const char *name, const char *where, UOp *self, UOp *result) {
  if (!result || result == self) return NULL;
  RewriteEnv *env = store_env(rw->st);
  if (env) {
    if (env->limit == 0 && !rw->required) return NULL;
    if (env->limit > 0) env->limit--;
    env->firings++;
    if (env->on_fire && !env->on_fire(env, rw, name, where, self, result)) { rw->failed = true; return NULL; }
  }
  rw->firings++;
  return result;
}

/* A frame waits for node `u`'s sources, then for the result `next` of a rule that fired on it. */
typedef struct RFrame { UOp *u, *next; int i; } RFrame;
UOp *graph_rewrite(Rewrite *rw, Matcher m, UOp *root) {
  if (!root) return NULL;
  Memo memo = {.mem = rw->mem};
  RewriteEnv *env = store_env(rw->st);
  Vec(RFrame) st = {0};
  uint64_t budget = rw->firings + 2000000 + 64 * (uint64_t)store_count(rw->st);     /* a rule set that loops is an error, not a hang */
  bool ok = vec_push(rw->mem, &st, ((RFrame){root, NULL, 0}));
  while (ok && st.len) {
    RFrame *f = &st.at[st.len - 1];
    if (f->next) {
      UOp *next = f->next, *r = memo_get(&memo, next);
      if (r) { ok = memo_put(&memo, f->u, r); st.len--; continue; }
      ok = vec_push(rw->mem, &st, ((RFrame){next, NULL, 0}));          /* f moves when the stack grows */
      continue;
    }
    if (f->i < f->u->nsrc) {
      UOp *s = f->u->src[f->i++];
      if (!memo_get(&memo, s)) ok = vec_push(rw->mem, &st, ((RFrame){s, NULL, 0}));
      continue;
    }
    UOp *u = f->u, *buf[16], **src = u->nsrc <= 16 ? buf : mem_alloc(rw->mem, u->nsrc * sizeof *src);
    if (!src) { ok = false; break; }
    bool same = true;
    for (int i = 0; i < u->nsrc; i++) src[i] = memo_get(&memo, u->src[i]), same &= src[i] == u->src[i];
    UOp *v = same ? u : uop_with_src(rw->st, u, src);
    if (src != buf) mem_free(rw->mem, src);
    if (!v) { ok = false; break; }
    if (env) env->visits++, env->nested += env->in_rule > 0;
    UOp *done = v == u ? NULL : memo_get(&memo, v);
    if (done) { ok = memo_put(&memo, u, done); st.len--; continue; }
    if (env) env->in_rule++;
    UOp *r = m(rw, v);
    if (env) env->in_rule--;
    if (rw->firings > budget || rw->failed) { ok = false; break; }
    if (!r || r == v) { ok = memo_put(&memo, u, v) && memo_put(&memo, v, v); st.len--; continue; }
    f = &st.at[st.len - 1];
    f->next = r;
  }
  UOp *result = ok ? memo_get(&memo, root) : NULL;
  if (!ok) rw->failed = true;
  vec_free(rw->mem, &st);
  mem_free(rw->mem, memo.at);
  return result;
}
UOp *uop_substitute(UOpStore *st, TgMem *mem, UOp *root, int n, UOp *const *from, UOp *const *to) {
  if (!root) return NULL;
  Memo memo = {.mem = mem};
  UOpVec order = {0};
  UOp *result = NULL;
  uint64_t mask = 0, ranges = 0;
  bool only_ranges = true;
  for (int i = 0; i < n; i++) mask |= op_bit((Ops)from[i]->op), ranges |= from[i]->ranges, only_ranges &= from[i]->op == OPS_RANGE;
  if (only_ranges && root->op != OPS_REDUCE && !(root->opmask & mask)) return root;
  bool ok = uop_toposort(st, mem, &root, 1, &order);
  for (int i = 0; ok && i < n; i++) ok = memo_put(&memo, from[i], to[i]);
  for (size_t k = 0; ok && k < order.len; k++) {
    UOp *u = order.at[k], *buf[16];
    if (memo_get(&memo, u)) continue;
    bool same = true;
    for (int i = 0; i < u->nsrc; i++) same &= memo_get(&memo, u->src[i]) == u->src[i];
    if (same) { ok = memo_put(&memo, u, u); continue; }
    UOp **src = u->nsrc <= 16 ? buf : mem_alloc(mem, u->nsrc * sizeof *src);
    if (!src) { ok = false; break; }
    for (int i = 0; i < u->nsrc; i++) src[i] = memo_get(&memo, u->src[i]);
    UOp *v = uop_with_src(st, u, src);
    if (src != buf) mem_free(mem, src);
    ok = v && memo_put(&memo, u, v);
  }
  if (ok) result = memo_get(&memo, root);
  vec_free(mem, &order);
  mem_free(mem, memo.at);
  return result;
}
UOp *uop_simplify_top(UOpStore *st, TgMem *mem, UOp *u) {
  if (!u) return NULL;
  Rewrite rw = {.st = st, .mem = mem};
  UOp *r = pm_symbolic(&rw, u);
  return rw.failed ? NULL : !r || r == u ? u : uop_simplify(st, mem, r);
}
