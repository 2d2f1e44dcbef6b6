/* export_place.c: where the values of an exported run lie. In: its calls, and what each one reads and
 * stores. Out: the order of the calls, when each item of the arena is needed, which items share a place,
 * and their offsets. */
#include "engine/export.h"
#include <string.h>

/* Extends the life of an item to launch `now`. Scratch that may be read before it is written holds what
 * the last run left there, so nothing else may take its place. */
static void item_used(Export *x, const ExportPlace *p, int now) {
  if (p->kind != IN_ARENA) return;
  ArenaItem *it = &x->items.at[p->number];
  bool own = (size_t)p->number < x->first_draw + x->planned->draws.len + x->planned->own.len;
  if (it->first < 0) {
    bool stays = own && (!p->stored || x->planned->cleared);
    it->first = stays ? 0 : now;
    it->last = stays ? INT32_MAX : now;
  }
  it->last = TG_MAX(it->last, now);
}

/* Items that the calls begin .. end, a loop over bands, share with other calls are needed during the whole
 * loop. */
static void bands_kept(Export *x, int begin, int end) {
  for (int i = begin; i < end; i++)
    for (int a = 0; a < x->calls.at[i].narg; a++) {
      const ExportPlace *p = &x->args.at[x->calls.at[i].arg + (size_t)a];
      if (p->kind != IN_ARENA || x->items.at[p->number].banded) continue;
      ArenaItem *it = &x->items.at[p->number];
      it->first = TG_MIN(it->first, begin);
      it->last = TG_MAX(it->last, end);
    }
}

/* Notes what this launch reads and what it stores in pairs that may share a place. A kernel in bands has
 * none, because a later band reads rows again. */
static bool pairs_noted(Export *x, int call) {
  const ExportCall *c = &x->calls.at[call];
  if (c->kernel < 0) return true;
  const CachedProgram *prog = x->kernels.at[c->kernel];
  const KernelText *text = prog->dev->backend->text(prog->prog);
  for (int i = 0; i < TG_MIN(c->narg, LIST_SLOTS) && !c->band; i++)
    for (int k = 0; k < c->narg; k++) {
      const ExportPlace *from = &x->args.at[c->arg + (size_t)i], *to = &x->args.at[c->arg + (size_t)k];
      bool may = (text->in_place[i] >> k & 1) && from->kind == IN_ARENA && to->kind == IN_ARENA;
      may = may && from->offset == to->offset;
      ArenaPair p = {call, from->number, to->number, {i, k}, false};
      if (may && !vec_push(&x->ctx->mem, &x->pairs, p)) return false;
    }
  return true;
}

/* Whether a value may take a place of nbytes. It keeps all of the place, so under x->alike it may not be
 * much smaller. */
static bool fits_place(const Export *x, const ArenaItem *to, int64_t nbytes) {
  return !x->alike || 2 * to->nbytes >= nbytes;
}

static bool may_join(const Export *x, const ArenaPair *p) {
  const ArenaItem *from = &x->items.at[p->from], *to = &x->items.at[p->to];
  return from->last == p->call && to->first == p->call && p->from != p->to && fits_place(x, to, from->nbytes);
}

/* Counts the bytes that live at each launch. *most: the maximum, less what joining a pair would save
 * there. */
static bool lives_counted(const Export *x, int64_t *live, int64_t *most) {
  size_t n = x->calls.len;
  int64_t *spared = mem_alloc(&x->ctx->mem, (n + 1) * sizeof *spared);
  if (!spared) return false;
  for (size_t i = 0; i < x->items.len; i++) {
    const ArenaItem *it = &x->items.at[i];
    if ((size_t)it->first >= n) continue;
    live[it->first] += it->nbytes;
    if ((size_t)it->last + 1 < n) live[it->last + 1] -= it->nbytes;
  }
  for (size_t i = 0; i < x->pairs.len; i++) {
    const ArenaPair *p = &x->pairs.at[i];
    int64_t nbytes = TG_MIN(x->items.at[p->from].nbytes, x->items.at[p->to].nbytes);
    if (may_join(x, p)) spared[p->call] = TG_MAX(spared[p->call], nbytes);
  }
  *most = 0;
  for (size_t c = 0; c < n; c++) {
    live[c] += c ? live[c - 1] : 0;
    *most = TG_MAX(*most, live[c] - spared[c]);
  }
  mem_free(&x->ctx->mem, spared);
  return true;
}

/* Lets a value take the place of one that is not needed any more, at launches where this can make the
 * arena smaller. Elsewhere the two stay apart, because compilers generate better code for distinct
 * pointers. */
static bool items_joined(Export *x) {
  ArenaItem *items = x->items.at;
  int64_t most = 0, *live = mem_alloc(&x->ctx->mem, (x->calls.len + 1) * sizeof *live);
  bool ok = live && lives_counted(x, live, &most);
  for (size_t i = 0; ok && i < x->pairs.len; i++) {
    ArenaPair *p = &x->pairs.at[i];
    int root = items[p->from].in ? items[p->from].in - 1 : p->from;
    ArenaItem *from = &items[root], *to = &items[p->to];
    if (live[p->call] <= most || from->last != p->call || to->first != p->call || to->in || root == p->to ||
        !fits_place(x, to, from->nbytes))
      continue;
    from->nbytes = TG_MAX(from->nbytes, to->nbytes);
    from->last = to->last;
    to->nbytes = 0;
    to->in = root + 1;
    p->joined = true;
  }
  mem_free(&x->ctx->mem, live);
  return ok;
}

/* Finds the lives of all items. The keys of draws are there before the first launch. */
static bool lives_found(Export *x) {
  bool ok = true;
  for (size_t i = 0; i < x->items.len; i++)
    x->items.at[i].first = -1;
  for (int i = 0, begin = 0; ok && i < (int)x->calls.len; i++) {
    const ExportCall *c = &x->calls.at[i];
    for (int a = 0; a < c->narg; a++)
      item_used(x, &x->args.at[c->arg + (size_t)a], i);
    if (c->scratch >= 0) item_used(x, &(ExportPlace){IN_ARENA, c->scratch, 0, DT_U8, true}, i);
    if (c->kernel == CALL_BANDS) begin = i;
    if (c->kernel == CALL_BANDS_END) bands_kept(x, begin, i);
    ok = pairs_noted(x, i);
  }
  for (size_t i = 0; i < x->planned->draws.len; i++)
    x->items.at[x->first_draw + i].first = 0;
  for (size_t i = 0; i < x->items.len; i++) /* belongs to a memory that no launch is given */
    if (x->items.at[i].first < 0) x->items.at[i] = (ArenaItem){.nbytes = 0};
  return ok;
}

static bool items_placed(Export *x) {
  int64_t align = x->gnu ? ALIGN_VECTORS : ALIGN;
  x->pairs.len = 0;
  if (!lives_found(x) || !items_joined(x)) return false;
  if (!arena_placed(&x->ctx->mem, x->items.at, x->items.len, align, &x->arena, &x->bound)) return false;
  for (size_t i = 0; i < x->items.len; i++)
    if (x->items.at[i].in) x->items.at[i].offset = x->items.at[x->items.at[i].in - 1].offset;
  return true;
}

/* Tries the scheduler's order and the order in which few bytes live; for each, joins all values that can
 * be joined, or only those of similar size. Keeps the smallest arena. */
bool export_placed(Export *x) {
  enum { WAYS = 4 };

  TgMem *m = &x->ctx->mem;
  size_t calls = x->calls.len * sizeof *x->calls.at, items = x->items.len * sizeof *x->items.at;
  ExportCall *order[2] = {mem_alloc(m, calls + 1), mem_alloc(m, calls + 1)};
  ArenaItem *unplaced = mem_alloc(m, items + 1);
  bool ok = order[0] && order[1] && unplaced;
  if (ok && calls) memcpy(order[0], x->calls.at, calls);
  if (ok && items) memcpy(unplaced, x->items.at, items);
  int64_t least = INT64_MAX;
  for (int turn = 0, best = 0, way = 0; ok && turn <= WAYS; turn++) {
    way = turn < WAYS ? turn : best;
    if (turn == WAYS && best == WAYS - 1) break; /* that combination was placed last */
    x->alike = way & 1;
    if (calls) memcpy(x->calls.at, order[way / 2], calls);
    if (items) memcpy(x->items.at, unplaced, items);
    ok = items_placed(x);
    if (ok && !turn) ok = export_order(x, order[1]);
    if (x->arena < least) least = x->arena, best = way;
  }
  mem_free(m, order[0]), mem_free(m, order[1]), mem_free(m, unplaced);
  return ok;
}
