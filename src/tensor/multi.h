/* multi.h: the functions that the rules of rules/multi.rules call, and the functions that these rules
 * become. They turn operations on MULTI nodes into MULTI nodes of operations on one device each, and
 * exchanges into copies. */
#ifndef TG_MULTI_H
#define TG_MULTI_H
#include "tensor/context.h"

/* Where the parts of a value are: on n devices, split along an axis at bound[0..n]; axis -1: each device
 * has the whole value. */
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
/* the sizes of the parts differ by at most one */
Layout layout_even(int n, const int *device, int axis, int64_t size);
/* the whole value on each of these devices */
Layout layout_whole_on(const Layout *at);
int64_t layout_largest(const Layout *at); /* the size of the largest part */
/* Finds the layout in which an operation on these sources is computed: that of the source that is split,
 * or of several the most even one. Returns false if none is a MULTI. */
bool layout_among(UOp *const *src, int n, Layout *at);
/* Finds the split axis in another shape: an axis with the same number of elements before it, and with a
 * step boundary at each bound of a part. Returns false if there is none. */
bool layout_reshaped(UOpStore *st, const Ints *from, const Ints *to, Layout *at);
UOp *multi_new(UOpStore *st, const Layout *at, UOp *const *part); /* NULL: out of memory, or a part is NULL */
UOp *shard_new(UOpStore *st, UOp *x, const Layout *at);           /* SHARD */
/* Returns u, a value on one device, on several or on none, as parts with this layout. Returns false if an
 * error was recorded or out of memory. */
bool parts_at(Rewrite *rw, UOp *u, const Layout *at, UOp **part);
/* Puts all of u on every device, because self cannot be done on parts. */
bool parts_gathered(Rewrite *rw, const UOp *self, UOp *u, const Layout *at, UOp **part);
/* u's copy for a device; the value is whole on some devices */
UOp *copy_for(UOpStore *st, const UOp *multi, int device);
UOp *empty_of(UOpStore *st, const UOp *u, const int64_t *d); /* zeros of u's rank and dtype */
UOp *on_device(UOpStore *st, UOp *u, int device);            /* a COPY, unless u is on that device */
/* from .. to of one axis. If u repeats a number, the smaller size is made directly. */
UOp *slice_of(UOpStore *st, UOp *u, int axis, int64_t from, int64_t to);
/* Returns the whole of part i of an exchange on a device. */
UOp *exchange_part(UOpStore *st, UOp *exchange, int64_t i, int device);

/* If somebody looks at exchanges: notes that u is the gradient of t. */
void gradient_named(TgContext *ctx, UOp *u, const TgTensor *t);

/* ---- the rules. NULL: out of memory, or an error was recorded */
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
/* Returns u without a MULTI below it: u itself, or a graph of one device, or a MULTI of such graphs. NULL:
 * an error was recorded. */
UOp *multi_lowered(TgContext *ctx, UOp *u);

/* Makes a handle without a scope, which its owner releases. NULL if out of memory. */
TgTensor *shard_hidden(TgContext *ctx, UOp *u);

static inline bool on_several(const UOp *u) { return (u->devices & (u->devices - 1)) != 0; }

static inline bool has_multi(const UOp *u) { return uop_has(u, MULTI) || uop_has(u, SHARD); }

/* Makes memory on each of its devices for t, and t becomes this memory. value: what will be stored to it,
 * or NULL. Returns false if an error was recorded. */
bool shard_memory(TgTensor *t, UOp *value);
/* t, whose uop has just been set, becomes a place if all of its parts are views of memory. Returns false
 * if an error was recorded. */
bool shard_place(TgTensor *t);
/* Gives t hidden handles for these parts. places: the handles are places in this memory, otherwise values.
 * Returns false if an error was recorded. */
bool shard_parts(TgTensor *t, UOp *multi, bool places);
void shard_unlink(TgTensor *t);                                 /* removes t's parts */
bool shard_ready(const char *op, TgTensor *t, bool keep_value); /* like place_ready */
/* Whether each part of view, movements over t, is a view of that part's memory. */
bool shard_is_view(TgTensor *t, UOp *view);
bool shard_store(TgTensor *t, UOp *view, UOp *value);       /* like store_to */
const char *devices_name(TgContext *ctx, uint64_t devices); /* "CPU,CPU:1" */
/* Returns the devices in such a list, as bits by number. 0: an error was recorded. */
uint64_t devices_find(TgContext *ctx, const char *op, const char *names);
TgTensor *tensor_on_all(TgTensor *t, uint64_t devices); /* copies it to each device where it is not yet */
#endif
