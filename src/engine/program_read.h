/* program_read.h: a program's text as it is read: what program_read.c, program_check.c and program_bind.c
 * share. */
#ifndef TG_PROGRAM_READ_H
#define TG_PROGRAM_READ_H
#include "engine/jit.h"
#include "uop/dims.h"

enum { MOST_ELEMENTS_LOG2 = 48, NO_MEMORY = -1 };

typedef enum Kind { INPUT, OUTPUT, DRAW, MEMORY, SCRATCH } Kind;

/* at: its number among those of its kind. device: by number in the text. parts, axis: of the first part of an
 * input or output that is on so many devices, 0: of the others; axis -1: it is not split. */
typedef struct Declared {
  Kind kind;
  DType dtype;
  int n, at, device, parts, axis;
  int64_t dims[TG_MAX_RANK], nelem, words;
  char *name;
  bool stored, written; /* a graph stores to it; a step has written it, perhaps a part */
  uint64_t step;        /* the last that names it, from 1 on */
  Buffer *buffer;
  size_t offset;
} Declared;

typedef struct Place {
  int memory; /* NO_MEMORY: of a root that has none */
  int64_t start;
} Place;

typedef struct Reader {
  TgContext *ctx;
  TgJit *j;
  const char *at, *end;
  int line;
  Vec(Declared) memory;
  Map names;     /* hashes of memories' names */
  uint64_t step; /* the one at hand, from 1 on */
  Vec(Place) slots, roots;
  int version, ndevice; /* of a text of version 1 its one device is 0 */
  char *device_name[MOST_DEVICES];
  int device[MOST_DEVICES]; /* the context's number of each */
  int here;                 /* the device of the step at hand */
  int parts, axis;          /* so many parts are to come of an input or output */
  size_t whole;             /* the first of them */
  bool clear;               /* some memory may be read before all of it was written: it is zeros then */
  bool drawing;
  uint64_t seed;
  Draws draws[MOST_DEVICES]; /* order 0: it does not draw */
  int count[SCRATCH + 1];    /* of each kind */
  DimTable *dims;            /* of the text: variables by their number there */
  UOpStore *sizes;           /* over these */
  int nvars;
} Reader;

/* Records s with the line and the text; false. */
bool program_bad(Reader *r, TgStatus s, const char *fmt, ...) TG_PRINTF(3, 4);
bool program_no_memory(Reader *r);
int program_variable(void *reader, int i); /* the context's number of the text's variable i; -1: none */
/* program_check.c: whether the graph of the step at hand, well formed by uop/spec.c, is one that the front
 * end could have built over the step's memories; notes which of them it stores to. false: recorded */
bool program_graph_fits(Reader *r, UOpStore *st, const UOpVec *roots);
/* program_bind.c: devices and tensors for what is declared, which all was read. false: recorded */
bool program_bound(Reader *r, const char *const *device, int ndevice, const char *const *names,
                   TgTensor *const *tensors, int n);
#endif
