/* program_read.h: a program's text while it is read: what program_read.c, program_check.c and
 * program_bind.c share. */
#ifndef TG_PROGRAM_READ_H
#define TG_PROGRAM_READ_H
#include "engine/jit.h"
#include "uop/dims.h"

enum { MOST_ELEMENTS_LOG2 = 48, NO_MEMORY = -1 };

typedef enum Kind { INPUT, OUTPUT, DRAW, MEMORY, SCRATCH } Kind;

/* at: the number among the declarations of its kind. device: number in the text. parts: for the first part
 * of an input or output, the number of its parts, otherwise 0. axis: the axis along which it is split; -1:
 * it is not split. */
typedef struct Declared {
  Kind kind;
  DType dtype;
  int n, at, device, parts, axis;
  int64_t dims[TG_MAX_RANK], nelem, words;
  char *name;
  bool stored, written; /* a graph stores to it; a step has written it, at least in part */
  uint64_t step;        /* the last step that names it, counted from 1 */
  Buffer *buffer;
  size_t offset;
} Declared;

typedef struct Place {
  int memory; /* NO_MEMORY: a root without memory */
  int64_t start;
} Place;

typedef struct Reader {
  TgContext *ctx;
  TgJit *j;
  const char *at, *end;
  int line;
  Vec(Declared) memory;
  Map names;     /* hashes of the memories' names */
  uint64_t step; /* the current step, counted from 1 */
  Vec(Place) slots, roots;
  int version, ndevice; /* a text of version 1 has one device, number 0 */
  char *device_name[MOST_DEVICES];
  int device[MOST_DEVICES]; /* number in the context of each device */
  int here;                 /* the device of the current step */
  int parts, axis;          /* number of parts of an input or output that are still to come */
  size_t whole;             /* the first of them */
  /* some memory may be read before it is completely written, so it begins as zeros */
  bool clear;
  bool drawing;
  uint64_t seed;
  Draws draws[MOST_DEVICES]; /* order 0: the device does not draw */
  int count[SCRATCH + 1];    /* declarations of each kind */
  DimTable *dims;            /* the variables of the text, by their number there */
  UOpStore *sizes;           /* sizes over these variables */
  int nvars;
} Reader;

/* Records status s with the line and the text. Returns false. */
bool program_bad(Reader *r, TgStatus s, const char *fmt, ...) TG_PRINTF(3, 4);
bool program_no_memory(Reader *r);
/* number in the context of the text's variable i; -1: there is none */
int program_variable(void *reader, int i);
/* program_check.c: whether the graph of the current step, which is well formed by uop/spec.c, is one that
 * the front end could have built over the step's memories. Notes which memories it stores to. Returns
 * false if an error was recorded. */
bool program_graph_fits(Reader *r, UOpStore *st, const UOpVec *roots);
/* program_bind.c: finds devices and tensors for the declarations, after all of them were read. Returns
 * false if an error was recorded. */
bool program_bound(Reader *r, const char *const *device, int ndevice, const char *const *names,
                   TgTensor *const *tensors, int n);
#endif
