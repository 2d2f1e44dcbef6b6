/* ggml_types.h: what the gguf reader must know of ggml's types: the sizes of their blocks. */
#ifndef TG_GGML_TYPES_H
#define TG_GGML_TYPES_H
#include "tg.h"
#define NO_VALUES ((TgDType)-1) /* the type's blocks are known, but their values cannot be computed */

enum {
  T_Q4_0 = 2,
  T_Q4_1,
  T_Q5_0 = 6,
  T_Q5_1,
  T_Q8_0,
  T_Q2_K = 10,
  T_Q3_K,
  T_Q4_K,
  T_Q5_K,
  T_Q6_K,
  T_IQ4_NL = 20,
  T_IQ4_XS = 23,
  T_TQ1_0 = 34,
  T_TQ2_0,
  T_MXFP4 = 39,
  T_NVFP4,
  T_Q1_0,
  T_Q2_0
};

/* block: elements of a block; nbytes: bytes of a block; dtype 0: quantised */
typedef struct GgmlType {
  int id;
  const char *name;
  int block, nbytes;
  TgDType dtype;
} GgmlType;

const GgmlType *ggml_type(int id); /* NULL: unknown */
/* Q4_K and Q5_K: takes the 12 bytes, u8 (m, 12), and returns the eight 6-bit scales (which 0) or minima
 * (which 1), u8 (m, 8). */
TgTensor *ggml_six_bits(TgTensor *s, int which);
TgTensor *
ggml_q3_scales(TgTensor *s); /* Q3_K: from 12 bytes the sixteen scales, each with 32 added, u8 (m, 16) */
TgTensor *
ggml_xs_scales(TgTensor *b);        /* IQ4_XS: from the blocks the eight scales, each with 32 added, (m, 8) */
TgTensor *ggml_powers(TgTensor *e); /* MXFP4: 2^(e - 128), f32 */
/* the values of the codes of IQ4_NL and IQ4_XS, and of MXFP4 */
extern const int8_t ggml_nl[16], ggml_e2m1[16];
#endif
