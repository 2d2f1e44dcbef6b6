/* multi.h: what the rules of rules/multi.rules call, and what they become: operations on MULTI nodes as
 * MULTI nodes of operations on one device each, and exchanges as copies. */
#ifndef TG_MULTI_H
#define TG_MULTI_H
#include "tensor/context.h"

/* Where the parts of a value lie: on n devices; split along an axis at bound[0..n], or, axis -1, all of it
 * on each. */
typedef struct Layout {
  int n, axis;
  int device[MOST_DEVICES];
  int64_t bound[MOST_DEVICES + 1];
} Layout;

UOp *pm_multi(Rewrite *rw, UOp *self);
UOp *pm_exchange(Rewrite *rw, UOp *self);

static inline bool is_multi(const UOp *u) { return u->op == OPS_MULTI; }

bool over_multi(const UOp *u); /* one of its sources is a MULTI */

/* ---- layouts */
Layout layout_of(const UOp *multi);
Layout layout_even(int n, const int *device, int axis, int64_t size); /* sizes differ by one at most */
Layout layout_whole_on(const Layout *at);                             /* all on each of these devices */
int64_t layout_largest(const Layout *at);                             /* the size of the largest part */
/* Where an operation on these is computed: as the one that is split lies, of several the most even one.
 * False: none is a MULTI. */
bool layout_among(UOp *const *src, int n, Layout *at);
/* The split axis in another shape: an axis with as many elements before it, whose steps begin where parts
 * do. False: there is none. */
bool layout_reshaped(UOpStore *st, const Ints *from, const Ints *to, Layout *at);
UOp *multi_new(UOpStore *st, const Layout *at, UOp *const *part); /* NULL: out of memory, or a part is NULL */
UOp *shard_new(UOpStore *st, UOp *x, const Layout *at);           /* SHARD */
/* u, a value on one device, on several or on none, as parts that lie so. False: recorded, or out of memory.
 */
bool parts_at(Rewrite *rw, UOp *u, const Layout *at, UOp **part);
/* All of u on every device, because self cannot be done on parts. */
bool parts_gathered(Rewrite *rw, const UOp *self, UOp *u, const Layout *at, UOp **part);
UOp *copy_for(UOpStore *st, const UOp *multi, int device);   /* of a value that is whole on some */
UOp *empty_of(UOpStore *st, const UOp *u, const int64_t *d); /* zeros of u's rank and dtype */
UOp *on_device(UOpStore *st, UOp *u, int device);            /* a COPY, where u is elsewhere or nowhere */
/* from .. to of one axis; nothing of another size is computed where u repeats a number */
UOp *slice_of(UOpStore *st, UOp *u, int axis, int64_t from, int64_t to);
/* the whole of exchange's part i on a device */
UOp *exchange_part(UOpStore *st, UOp *exchange, int64_t i, int device);

/* Where somebody looks at exchanges: u, the gradient of t, has its name. */
void gradient_named(TgContext *ctx, UOp *u, const TgTensor *t);

/* ---- the rules: NULL: out of memory, or recorded */
UOp *multi_shard(Rewrite *rw, UOp *self);
UOp *multi_part(Rewrite *rw, UOp *self);
UOp *multi_same(Rewrite *rw, UOp *self);
UOp *multi_reduce(Rewrite *rw, UOp *self);
UOp *multi_scan(Rewrite *rw, UOp *self);
UOp *multi_reshape(Rewrite *rw, UOp *self);
UOp *multi_permute(Rewrite *rw, UOp *self);
UOp *multi_expand(Rewrite *rw, UOp *self);
UOp *multi_pad(Rewrite *rw, UOp *self);
UOp *multi_shrink(Rewrite *rw, UOp *self);
UOp *multi_flip(Rewrite *rw, UOp *self);
UOp *multi_gather(Rewrite *rw, UOp *self);
UOp *multi_scatter(Rewrite *rw, UOp *self);
UOp *multi_copy(Rewrite *rw, UOp *self);

UOp *broadcast_part(Rewrite *rw, UOp *self);
UOp *gathered_part(Rewrite *rw, UOp *self);
UOp *resharded_part(Rewrite *rw, UOp *self);
UOp *scattered_part(Rewrite *rw, UOp *self);
UOp *reduced_part(Rewrite *rw, UOp *self);

/* ---- shard.c: handles */
/* u without MULTI below: itself; else a graph of one device, or a MULTI of such. NULL: recorded. */
UOp *multi_lowered(TgContext *ctx, UOp *u);

/* a handle of no scope, which its owner releases; NULL: out of memory */
TgTensor *shard_hidden(TgContext *ctx, UOp *u);

static inline bool on_several(const UOp *u) { return (u->devices & (u->devices - 1)) != 0; }

static inline bool has_multi(const UOp *u) { return uop_has(u, MULTI) || uop_has(u, SHARD); }

/* Memory of each of its devices for t, which then is it; value: what will be stored to it, or NULL. False:
 * recorded. */
bool shard_memory(TgTensor *t, UOp *value);
/* t, whose uop has just been set, becomes a place if all of its parts are views of memory. False: recorded.
 */
bool shard_place(TgTensor *t);
/* t's parts are these, hidden handles; places: of that very memory, else of the values. False: recorded. */
bool shard_parts(TgTensor *t, UOp *multi, bool places);
void shard_unlink(TgTensor *t);                                 /* t has no parts any more */
bool shard_ready(const char *op, TgTensor *t, bool keep_value); /* place_ready */
/* Whether each part of view, movements over t, is a view of that part's memory. */
bool shard_is_view(TgTensor *t, UOp *view);
bool shard_store(TgTensor *t, UOp *view, UOp *value);       /* store_to */
const char *devices_name(TgContext *ctx, uint64_t devices); /* "CPU,CPU:1" */
/* The devices of such a list, by number; 0: recorded. */
uint64_t devices_find(TgContext *ctx, const char *op, const char *names);
TgTensor *tensor_on_all(TgTensor *t, uint64_t devices); /* a copy on each, if it is not there */
#endif
