/* export.h: a captured function as C, as the files of src/engine see it: export.c finds what runs on what,
 * export_order.c an order, export_place.c and arena.c where each value lies, export_text.c and export_values.c write it. */
#ifndef TG_EXPORT_H
#define TG_EXPORT_H
#include "engine/jit.h"

/* A value that is needed for a while: of the launches first .. last, counted from 0. in: 1 + the number of
 * the item in whose place it lies; 0: it has one of its own. banded: each band of rows makes it anew. */
typedef struct ArenaItem {
  int64_t nbytes, offset;
  int first, last, in;
  bool banded;
} ArenaItem;

/* At launch `call`, item `to` may lie in the place of item `from`. param: their numbers there. joined: it
 * does. */
typedef struct ArenaPair {
  int call, from, to, param[2];
  bool joined;
} ArenaPair;

/* Offsets, multiples of `align`, so that items that live at the same time do not overlap. In *bytes: of all;
 * in *bound: of what lives at once where that is most, below which no plan can be. False: out of memory. */
bool arena_placed(TgMem *mem, ArenaItem *item, size_t n, int64_t align, int64_t *bytes, int64_t *bound);

/* IN_*: where a memory of a launch lies. number: of an input, output or memory; of an item of the arena.
 * IN_NOTHING: a parameter that the kernel does not use. */
typedef enum PlaceKind { IN_INPUT, IN_OUTPUT, IN_WEIGHT, IN_STATE, IN_ARENA, IN_NOTHING } PlaceKind;

/* offset: bytes. dtype: of its elements. stored: the launch stores to it */
typedef struct ExportPlace {
  PlaceKind kind;
  int number;
  int64_t offset;
  DType dtype;
  bool stored;
} ExportPlace;

/* kernel: its number, with narg places from `arg` on; -1: a copy of nbytes from the second of two places to
 * the first; -2: the first of one is cleared; -3: as -1, from the file of weights by the host. scratch: the
 * item that is its local memory, -1: it has none. */
typedef struct ExportCall {
  int kernel;
  size_t arg;
  int narg, scratch, shares;
  int64_t nbytes; /* of a copy; of the scratch of a share */
  const SchedKernel *sched;
  const SchedBand *band; /* NULL, or what the launch is one of */
} ExportCall;

/* CALL_BANDS, CALL_BANDS_END: around launches that are done for each of some bands of rows. */
enum { CALL_COPY = -1, CALL_CLEAR = -2, CALL_BRING = -3, CALL_BANDS = -4, CALL_BANDS_END = -5 };

/* A memory that stays. name: an identifier. packed: the copies that it is, in the place of what the capture has.
 * state: a kernel stores to it. unused: no launch is given it. offset: in the state, or among the weights
 * where they are in a file. value: as it is now */
typedef struct ExportMemory {
  char *name;
  const char *called;
  const Prepacked *packed;
  DType dtype;
  int n;
  int64_t dims[TG_MAX_RANK];
  int64_t nelem, offset;
  bool state, unused;
  void *value;
} ExportMemory;

/* value: by number of the inputs, then the outputs, then the variables: its identifier. */
typedef struct Export {
  TgContext *ctx, *planning; /* planning: a context of a device that renders alone, for the text's machine */
  TgJit *jit, *planned;
  TgCOptions o;
  const char *name;
  char *upper;
  const char *from;  /* what stands before a value that a run has: "", or "q->" in a share */
  bool shares;       /* some kernel is split */
  bool gnu;          /* vectors of GNU C */
  Target target;     /* what is planned for .. */
  const char *flags; /* .. and what a compiler is told of it */
  char **value;
  Vec(CachedProgram *) kernels;
  Vec(ExportPlace) args;
  Vec(ExportCall) calls;
  Vec(ArenaItem) items;
  Vec(ArenaPair) pairs;
  Vec(ExportMemory) memories;
  Vec(char *) names; /* identifiers that are taken */
  Map helpers;       /* those of kernels of GNU C that are written */
  Map places;        /* address of a place in a step -> what stands there, and 1 */
  size_t first_draw; /* items of the draws' keys */
  int64_t arena, bound, state, weights, operations;
  bool alike; /* two values are one memory only if both have about as many bytes */
  bool bands; /* some kernels run in bands */
} Export;

enum { ALIGN = 8, ALIGN_VECTORS = 64 }; /* bytes that items of the arena begin at multiples of */

/* export_place.c: the calls in their order, the arena. False: out of memory */
bool export_placed(Export *x);
/* export_order.c: all calls, in another order. False: out of memory */
bool export_order(const Export *x, ExportCall *out);
/* export_text.c: false: out of memory, or recorded */
bool export_header(Export *x, Str *out);
bool export_source(Export *x, Str *out);
int64_t export_stack(const Export *x); /* bytes that a run takes at most; 0: not known */
/* export_values.c */
const char *export_type(DType d);                    /* of an element, in the source */
void export_memory(Str *out, const ExportMemory *m); /* a constant w_NAME, whose member `at` is its value */
bool export_written(const Export *x, const ExportMemory *m); /* whether the source has such a constant */
bool export_weights(Export *x, Str *out); /* the bytes of all weights and of the state at first */
#endif
