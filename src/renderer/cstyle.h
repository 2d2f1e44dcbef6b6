/* cstyle.h: private to src/renderer. A language is a table; cstyle.c turns linear UOps into text with it. */
#ifndef TG_CSTYLE_H
#define TG_CSTYLE_H
#include "renderer/renderer.h"

struct C;

typedef struct CLang {
  const char *name;
  bool gnu_vec; /* vectors have operators (GNU C); else structs of up to 4 lanes, written out per lane */
  bool msl;     /* address spaces are written out, thread indices are parameters */
  const char *vec_open, *vec_close; /* value of a short vector: type OPEN a, b CLOSE */
  const char *long_suffix;          /* of 64-bit constants */
  const char *inf32, *nan32, *inf64, *nan64;
  const char *restrict_word; /* between * and the name of a buffer */
  const char *barrier;
  const char *shuffle,
      *shuffle_wide; /* %s: a value, %d: how far the thread is that it comes from; of 64 bits */
  /* A copy that the GPU makes by itself: %d bytes, to %s + %s from %s + %s; and to wait for all. NULL: none.
   */
  const char *copy, *copies_wait;
  /* The statements of a WMMA, whose value is v with this number; NULL: there are no matrix units. */
  void (*matrix)(struct C *c, const UOp *u, int id);
} CLang;

/* a C kernel keeps this much DEFINE_LOCAL in its frame; the rest comes from `scratch` */
enum { LOCAL_STACK_BYTES = 16384 };

bool cstyle_render(Str *out, const Linear *lin, TgError *err, const CLang *lang);
/* helpers written in the subset that C, CUDA C++ and MSL share; needs INL, types, bit casts */
extern const char cstyle_prelude[];
#define NATIVE(op) (1ull << (OPS_##op % 64))
#define NATIVE_BASE                                                                                          \
  (NATIVE(CAST) | NATIVE(BITCAST) | NATIVE(NEG) | NATIVE(SQRT) | NATIVE(RECIPROCAL) | NATIVE(TRUNC) |        \
   NATIVE(ADD) | NATIVE(SUB) | NATIVE(MUL) | NATIVE(FDIV) | NATIVE(CDIV) | NATIVE(CMOD) | NATIVE(FLOORDIV) | \
   NATIVE(FLOORMOD) | NATIVE(MAX) | NATIVE(CMPLT) | NATIVE(CMPNE) | NATIVE(CMPEQ) | NATIVE(AND) |            \
   NATIVE(OR) | NATIVE(XOR) | NATIVE(SHL) | NATIVE(SHR) | NATIVE(WHERE) | NATIVE(MULACC))
#define NATIVE_GPU                                                                                           \
  (NATIVE_BASE | NATIVE(EXP2) | NATIVE(LOG2) | NATIVE(EXP) | NATIVE(LOG) | NATIVE(SIN) | NATIVE(COS))
#endif
