/* export.h: a captured function as C, for the files of src/engine that write it. export.c finds what each
 * kernel runs on, export_order.c finds an order, export_place.c and arena.c find where each value lies,
 * and export_text.c and export_values.c write the text. */
#ifndef TG_EXPORT_H
#define TG_EXPORT_H
#include "engine/jit.h"

/* A value that is needed during the launches first .. last, counted from 0. in: 1 + the number of the item
 * in whose place it lies; 0: it has a place of its own. banded: each band of rows makes it anew. */
typedef struct ArenaItem {
  int64_t nbytes, offset;
  int first, last, in;
  bool banded;
} ArenaItem;

/* At launch `call`, item `to` may take the place of item `from`. param: their parameter numbers in that
 * launch. joined: `to` does take the place. */
typedef struct ArenaPair {
  int call, from, to, param[2];
  bool joined;
} ArenaPair;

/* Finds offsets, multiples of `align`, such that items that live at the same time do not overlap. *bytes
 * is the size of the whole arena. *bound is the largest number of bytes that live at once, a lower bound
 * for any arrangement. Returns false if out of memory. */
bool arena_placed(TgMem *mem, ArenaItem *item, size_t n, int64_t align, int64_t *bytes, int64_t *bound);

/* IN_*: where a memory of a launch lies. The number that goes with it is that of an input, an output, a
 * memory or an item of the arena. IN_NOTHING: a parameter that the kernel does not use. */
typedef enum PlaceKind { IN_INPUT, IN_OUTPUT, IN_WEIGHT, IN_STATE, IN_ARENA, IN_NOTHING } PlaceKind;

/* offset: bytes. dtype: of the elements. stored: the launch stores to it. */
typedef struct ExportPlace {
  PlaceKind kind;
  int number;
  int64_t offset;
  DType dtype;
  bool stored;
} ExportPlace;

/* kernel: the number of a kernel, with narg places from `arg` on, or one of CALL_*. CALL_COPY copies
 * nbytes from the second of its two places to the first. CALL_CLEAR clears its one place. CALL_BRING is a
 * copy that the host makes from the file of weights. scratch: the item that is the kernel's local memory;
 * -1: it has none. */
typedef struct ExportCall {
  int kernel;
  size_t arg;
  int narg, scratch, shares;
  int64_t nbytes; /* of a copy; of the scratch of one share */
  const SchedKernel *sched;
  const SchedBand *band; /* NULL, or the loop over bands that the launch is in */
} ExportCall;

/* CALL_BANDS, CALL_BANDS_END: begin and end of a loop over bands of rows */
enum { CALL_COPY = -1, CALL_CLEAR = -2, CALL_BRING = -3, CALL_BANDS = -4, CALL_BANDS_END = -5 };

/* A memory that lasts from run to run. name: an identifier. packed: NULL, or the prepacked copies that
 * replace the capture's memory. state: a kernel stores to it. unused: no launch is given it. offset: in
 * the state, or in the file of weights. value: its current contents. */
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

/* value: the identifiers of the inputs, then of the outputs, then of the variables. */
typedef struct Export {
  TgContext *ctx, *planning; /* planning: a context whose device only renders, for the target machine */
  TgJit *jit, *planned;
  TgCOptions o;
  const char *name;
  char *upper;
  const char *from;  /* prefix of the values that a run has: "", or "q->" in a share */
  bool shares;       /* some kernel is split into shares */
  bool gnu;          /* the text uses vectors of GNU C */
  Target target;     /* what is planned for */
  const char *flags; /* compiler flags for it */
  char **value;
  Vec(CachedProgram *) kernels;
  Vec(ExportPlace) args;
  Vec(ExportCall) calls;
  Vec(ArenaItem) items;
  Vec(ArenaPair) pairs;
  Vec(ExportMemory) memories;
  Vec(char *) names; /* identifiers that are taken */
  Map helpers;       /* hashes of the helpers of GNU C kernels that were written */
  Map places;        /* address of a place in a step -> kind and number + 1 of what is there */
  size_t first_draw; /* number of the first item that is a key of a draw */
  int64_t arena, bound, state, weights, operations;
  bool alike; /* two values share a place only if they have about as many bytes */
  bool bands; /* some kernels run in bands */
} Export;

enum { ALIGN = 8, ALIGN_VECTORS = 64 }; /* items of the arena begin at multiples of this many bytes */

/* export_place.c: orders the calls and lays out the arena. Returns false if out of memory. */
bool export_placed(Export *x);
/* export_order.c: puts all calls in another order. Returns false if out of memory. */
bool export_order(const Export *x, ExportCall *out);
/* export_text.c: return false if out of memory or if an error was recorded */
bool export_header(Export *x, Str *out);
bool export_source(Export *x, Str *out);
int64_t export_stack(const Export *x); /* the most bytes of stack that a run takes; 0: not known */
/* export_values.c */
const char *export_type(DType d); /* C type of an element, as the source spells it */
/* writes a constant w_NAME, whose member `at` is the value */
void export_memory(Str *out, const ExportMemory *m);
bool export_written(const Export *x, const ExportMemory *m); /* whether the source has such a constant */
bool export_weights(Export *x, Str *out); /* the bytes of all weights, then of the initial state */
#endif
