/* cstyle.h: private to src/renderer. A language is a table, with which cstyle.c turns linear UOps into
 * text. */
#ifndef TG_CSTYLE_H
#define TG_CSTYLE_H
#include "renderer/renderer.h"

struct C;

typedef struct CLang {
  const char *name;
  /* vectors have operators (GNU C); otherwise they are structs of up to 4 lanes, written lane by lane, .. */
  bool gnu_vec;
  bool lane_loops; /* .. or arrays of up to 4 lanes, with statements about each lane (lanes.c) */
  /* no vectors and no warnings: text that a kernel does not use is left out, local memory is a parameter */
  bool strict;
  const char *vec_open, *vec_close; /* around the lanes of a short vector: type OPEN a, b CLOSE */
  const char *long_suffix;          /* of 64-bit constants */
  const char *inf32, *nan32, *inf64, *nan64;
  const char *restrict_word; /* between * and the name of a buffer */
  const char *kernel;        /* before the name of a kernel; %d: the number of threads of a block */
  /* before the type that a pointer points to; "": the language has no address spaces */
  const char *device_space, *local_space;
  const char *local_array; /* before an array of local memory; %d: the alignment in bytes */
  const char *local_lines; /* the same, for arrays that units of four warps read (groups.c) */
  /* If all arrays of a kernel together have more than most_local bytes (0: no limit), they become parts of
   * one array whose size is given at launch. launch_local: its declaration, with %d as above; then its
   * name. */
  int most_local;
  const char *launch_local, *launch_local_name;
  /* expressions whose .x, .y, .z are the indices of the block and of the thread */
  const char *block_index, *thread_index;
  bool packed_vec; /* short vectors with only the alignment of an element have types of their own */
  /* param_place NULL: a parameter is only its declaration. Otherwise param_place follows the declaration,
   * with its number as %d, and more_params are the parameters after the buffers and variables. The variables
   * are then one array. More than most_params parameters become members of a struct, which is the only
   * parameter. */
  const char *param_place, *more_params, *value_space;
  int most_params;
  const char *prefetch;                 /* prefetches the line of p[i]; NULL: the language cannot */
  const char *barrier, *barrier_device; /* a barrier for local memory at least; one for device memory, too */
  /* %s: a value, %d: the distance of the thread that it comes from; the same for 64 bits */
  const char *shuffle, *shuffle_wide;
  /* A copy that the GPU makes by itself: %d bytes, to %s + %s from %s + %s; and a wait for all copies. NULL:
   * there is none. */
  const char *copy, *copies_wait;
  /* Ends a group of copies and waits for all but the last %d groups. */
  const char *copies_wait_some;
  /* Writes the statement of a FRAGMENT of a LOAD of shared memory, whose words are named v with this
   * number. */
  void (*rows)(struct C *c, const UOp *u, int id);
  /* Writes the statements of a WMMA, whose value is named v with this number. NULL: there are no matrix
   * units. */
  void (*matrix)(struct C *c, const UOp *u, int id);
  /* For units of four warps: defines the function that computes n steps side by side (groups.c). NULL: there
   * are none. */
  void (*group)(struct C *c, const UOp *u, int n);
  /* Writes the statement of a STORE of a WMMA whose operands are in memory. tiles_begin and tiles_end: the
   * first and last statement of a kernel that uses tiles. NULL: there are none. */
  void (*block)(struct C *c, const UOp *store);
  const char *tiles_begin, *tiles_end;
} CLang;

/* The alignment in bytes of memory that units of four warps read. */
enum { GROUP_LINES_BYTES = 1024 };

/* A kernel in C has this much DEFINE_LOCAL in its frame; the rest is in `scratch`. */
enum { LOCAL_STACK_BYTES = 16384 };

bool cstyle_render(Str *out, const Linear *lin, TgError *err, const CLang *lang);
/* Helpers written in the subset that C, CUDA C++ and MSL share. They need INL, the types and the bit
 * casts. */
extern const char cstyle_prelude[];
#define NATIVE(op) OP_IN_SET(OPS_##op)
#define NATIVE_BASE                                                                                          \
  (NATIVE(CAST) | NATIVE(BITCAST) | NATIVE(NEG) | NATIVE(SQRT) | NATIVE(RECIPROCAL) | NATIVE(TRUNC) |        \
   NATIVE(ADD) | NATIVE(SUB) | NATIVE(MUL) | NATIVE(FDIV) | NATIVE(CDIV) | NATIVE(CMOD) | NATIVE(FLOORDIV) | \
   NATIVE(FLOORMOD) | NATIVE(MAX) | NATIVE(CMPLT) | NATIVE(CMPNE) | NATIVE(CMPEQ) | NATIVE(AND) |            \
   NATIVE(OR) | NATIVE(XOR) | NATIVE(SHL) | NATIVE(SHR) | NATIVE(WHERE) | NATIVE(MULACC))
#define NATIVE_GPU                                                                                           \
  (NATIVE_BASE | NATIVE(EXP2) | NATIVE(LOG2) | NATIVE(EXP) | NATIVE(LOG) | NATIVE(SIN) | NATIVE(COS))
#endif
