/* cstyle.h: private to src/renderer. A language is a table; cstyle.c iterations linear UOps into text with
 * it. */
#ifndef TG_CSTYLE_H
#define TG_CSTYLE_H
#include "renderer/renderer.h"

struct C;

typedef struct CLang {
  const char *name;
  bool gnu_vec;    /* vectors have operators (GNU C); else structs of up to 4 lanes, written out per lane */
  bool lane_loops; /* .. or arrays of up to 4 lanes, with statements about each lane (lanes.c) */
  bool
      strict; /* no vectors and no warnings: what a kernel does not use is said, local memory is a parameter */
  const char *vec_open, *vec_close; /* value of a short vector: type OPEN a, b CLOSE */
  const char *long_suffix;          /* of 64-bit constants */
  const char *inf32, *nan32, *inf64, *nan64;
  const char *restrict_word; /* between * and the name of a buffer */
  const char *kernel;        /* before the name of a kernel; %d: the threads of a block */
  const char *device_space,
      *local_space;        /* before the type that a pointer leads to; "": spaces have no words */
  const char *local_array; /* before an array of local memory; %d: a multiple that it begins at */
  const char *local_lines; /* the same, where units of four warps read it (groups.c) */
  /* Where all arrays of a kernel have more bytes than most_local (0: any number), they are parts of one whose
   * size the launch says: its declaration, with %d as above, and its name. */
  int most_local;
  const char *launch_local, *launch_local_name;
  const char *block_index, *thread_index; /* their .x, .y, .z are the place in the grid and in the block */
  bool packed_vec; /* short vectors that begin where their elements do are types of their own */
  /* NULL: a parameter is its declaration alone. Else what follows it, with %d its number, and the parameters
   * behind the buffers and variables; the variables are an array, and more than most_params are members of a
   * struct, by that one parameter. */
  const char *param_place, *more_params, *value_space;
  int most_params;
  const char *prefetch;                 /* asks for the line of p[i]; NULL: nothing does */
  const char *barrier, *barrier_device; /* of local memory at least; of device memory too */
  const char *shuffle,
      *shuffle_wide; /* %s: a value, %d: how far the thread is that it comes from; of 64 bits */
  /* A copy that the GPU makes by itself: %d bytes, to %s + %s from %s + %s; and to wait for all. NULL: none.
   */
  const char *copy, *copies_wait;
  /* To end a group of them and wait for all but the last %d groups. */
  const char *copies_wait_some;
  /* The statement of a FRAGMENT of a LOAD of shared memory, whose words are v with this number. */
  void (*rows)(struct C *c, const UOp *u, int id);
  /* The statements of a WMMA, whose value is v with this number; NULL: there are no matrix units. */
  void (*matrix)(struct C *c, const UOp *u, int id);
  /* Units of four warps: what defines the function %s for so many steps side by side, as text that begins
   * with a name for it; and what they wait with: see groups.c. NULL: there are none. */
  void (*group)(struct C *c, const UOp *u, int n);
  /* The statement of a STORE of a WMMA whose operands are memory, and what a kernel with one on tiles begins
   * and ends with; NULL: as above. */
  void (*block)(struct C *c, const UOp *store);
  const char *tiles_begin, *tiles_end;
} CLang;

/* Memory that units of four warps read begins at a multiple of so many bytes. */
enum { GROUP_LINES_BYTES = 1024 };

/* a C kernel keeps this much DEFINE_LOCAL in its frame; the rest comes from `scratch` */
enum { LOCAL_STACK_BYTES = 16384 };

bool cstyle_render(Str *out, const Linear *lin, TgError *err, const CLang *lang);
/* helpers written in the subset that C, CUDA C++ and MSL share; needs INL, types, bit casts */
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
