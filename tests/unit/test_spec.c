/* test_spec.c: each wrong graph is refused for the reason it is wrong; right ones pass; a pass that spoils a
 * graph is named with its rule. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>
#include "uop/pass.h"
#include "uop/rules.h"
#include "uop/text.h"

#define T GRAPH_TENSOR
#define S GRAPH_STAGES
#define K GRAPH_KERNEL
#define H GRAPH_NEST
#define L GRAPH_LOOPS
#define P GRAPH_LINEAR
#define HEAD                                                                                                 \
  "p0 = PARAM[f32, 0, 64]\np1 = PARAM[i32, 1, 64]\nr0 = RANGE[0, LOOP](8)\nr1 = RANGE[1, REDUCE](4)\n"
#define SINK(store) "s = " store "\nroots SINK(s)\n"
#define PROG                                                                                                 \
  "program k: 2 params, 1 threads, grid 1 1 1, block 1 1 1\np0 = PARAM[f32, 0, 64]\np1 = PARAM[i32, 1, "     \
  "64]\n"

/* says: part of the reason; NULL: well formed */
typedef struct Case {
  GraphKind kind;
  const char *text, *says;
} Case;

static const Case cases[] = {
    /* tensor graphs */
    {T, "b = BUFFER[f32, 0, 6]\nADD(RESHAPE[(2, 3)](b), RESHAPE[(2, 3)](b))\n", NULL},
    {T, "b = BUFFER[f32, 0, 6]\nADD(RESHAPE[(2, 3)](b), RESHAPE[(3, 2)](b))\n",
     "ADD: source 1 has another shape"},
    {T, "b = BUFFER[f32, 0, 6]\nADD(b, CAST[f64](b))\n", "ADD: source 1 is f64, not f32"},
    {T, "b = BUFFER[f32, 0, 6]\nADD[f64](b, b)\n", "ADD: gives f64, not f32"},
    {T, "b = BUFFER[f32, 0, 6]\nCMPLT[f32](b, b)\n", "CMPLT: gives f32, not bool"},
    {T, "b = BUFFER[f32, 0, 6]\nWHERE(b, b, b)\n", "WHERE: source 0 is f32, not bool"},
    {T, "b = BUFFER[f32, 0, 6]\nRESHAPE[f64, (2, 3)](b)\n", "RESHAPE: the source is f32, the result f64"},
    {T, "b = BUFFER[f32x4, 0, 6]\nroots b\n", "BUFFER: has 4 lanes"},
    {T, "b = BUFFER[index, 0, 6]\nroots b\n", "BUFFER: dtype index"},
    {T, "b = BUFFER[f32, -1, 6]\nroots b\n", "BUFFER: slot -1 of 6 elements"},
    {T, "b = BUFFER[f32, 0, 6]\nREDUCE_AXIS[SUB, (0)](b)\n", "REDUCE_AXIS: not a reduction"},
    {T, "b = BUFFER[f32, 0, 6]\nRECIPROCAL(CAST[i32](b))\n", "RECIPROCAL: on i32"},
    {T, "b = BUFFER[f32, 0, 6]\nAND(b, b)\n", "AND: on f32"},
    {T, "b = BUFFER[f32, 0, 6]\nCDIV(b, b)\n", "CDIV: on f32"},
    {T, "b = BUFFER[bool, 0, 6]\nCDIV(b, b)\n", "CDIV: on bool"},
    {T, "b = BUFFER[bool, 0, 6]\nSHL(b, b)\n", "SHL: on bool"},
    {T, "b = BUFFER[f32, 0, 6]\nTHREEFRY(CAST[i64](b), CAST[i64](b))\n", "THREEFRY: on i64"},
    {T, "b = BUFFER[f32, 0, 6]\nBITCAST[i64](b)\n", "BITCAST: f32 to i64: sizes differ"},
    {T, "b = BUFFER[f32, 0, 6]\nSTORE(b, CAST[f64](b))\n", "STORE: f64 into f32"},
    {T, "ARANGE[f32, (4)]\n", "ARANGE: dtype f32"},
    /* sizes and axes of movements */
    {T, "b = BUFFER[f32, 0, 6]\nPERMUTE[(1, 0)](RESHAPE[(2, 3)](b))\n", NULL},
    {T, "b = BUFFER[f32, 0, 6]\nPERMUTE[(0, 2)](RESHAPE[(2, 3)](b))\n", "PERMUTE: axis 1 of size 3: 2 0"},
    {T, "b = BUFFER[f32, 0, 6]\nPERMUTE[(0, 0)](RESHAPE[(2, 3)](b))\n", "PERMUTE: axis 1 of size 3: 0 0"},
    {T, "b = BUFFER[f32, 0, 6]\nPERMUTE[(0)](RESHAPE[(2, 3)](b))\n", "1 numbers for a source of rank 2"},
    {T, "b = BUFFER[f32, 0, 6]\nEXPAND[(7)](b)\n", "EXPAND: axis 0 of size 6: 7 0"},
    {T, "b = BUFFER[f32, 0, 6]\nSHRINK[(2, 7)](b)\n", "SHRINK: axis 0 of size 6: 2 7"},
    {T, "b = BUFFER[f32, 0, 6]\nSHRINK[(3, 2)](b)\n", "SHRINK: axis 0 of size 6: 3 2"},
    {T, "b = BUFFER[f32, 0, 6]\nFLIP[(2)](b)\n", "FLIP: axis 0 of size 6: 2 0"},
    {T, "b = BUFFER[f32, 0, 6]\nRESHAPE[(7)](b)\n", "RESHAPE: 6 elements into 7"},
    {T, "b = BUFFER[f32, 0, 6]\nPAD[(0, 281474976710651)](b)\n", "PAD: more than 2^48 elements"},
    {T, "b = BUFFER[f32, 0, 6]\nPAD[(-1, 0)](b)\n", "PAD: -1"},
    {T, "PAD[(0, 1)](2:f32)\n", "PAD: of a number, which has no axes"},
    {T, "ARANGE[i32, (4, 4)]\n", "ARANGE: takes one length"},
    {T, "ARANGE[i32, (-4)]\n", "ARANGE: takes one length"},
    {T, "b = BUFFER[f32, 0, 6]\nSTORE(b, RESHAPE[(2, 3)](b))\n", "STORE: a value of another shape"},
    {T, "b = BUFFER[f32, 0, 6]\nCOPY[64](b)\n", "COPY: device 64"},
    {T, "b = BUFFER[f32, 0, 6]\nCOPY[-1](b)\n", "COPY: device -1"},
    {T, "b = BUFFER[f32, 0, 6]\nCONTIGUOUS[f64](b)\n", "CONTIGUOUS: the source is f32, the result f64"},
    {T, "b = BUFFER[f32, 0, 6]\nCUSTOM_GRADIENT[-1](b)\n", "CUSTOM_GRADIENT: function -1"},
    {T, "b = BUFFER[f32, 0, 6]\nCUSTOM_GRADIENT[0](b, 1:f32)\n", "source 1 has"},
    {T, "b = BUFFER[f32, 0, 36]\nSCAN_AXIS[ADD, (0, 1)](RESHAPE[(6, 6)](b))\n", "SCAN_AXIS: along 2 axes"},
    {T, HEAD "roots p0\n", "PARAM does not stand in a tensor graph"},
    {T, "x = 2:f32\nSCALE(x, x, x)\n", "SCALE does not stand in a tensor graph"},
    {T, "VAR[5, 2]\n", "VAR: no value between 5 and 2"},
    {T, "VAR[f32, 1, 2]\n", "VAR: dtype f32"},
    /* matrix units: before lanes are made, a value of each side */
    {H, "a = 1:f16\nWMMA[f32, m16n8k16_f16_f32](a, a)\n", "the root of a kernel is WMMA"},
    {H, "a = 1:f16\nb = 1:f32\nWMMA[f32, m16n8k16_f16_f32](b, a)\n", "WMMA: source 1 is no fragment of f16"},
    {H, "a = 1:f16\nb = 1:f32\nWMMA[f32, m16n8k16_f16_f32](a, b)\n", "WMMA: source 2 is no fragment of f16"},
    {H, "a = 1:f16\nWMMA[f16, m16n8k16_f16_f32](a, a)\n", "WMMA: gives f16"},
    {H, "a = 1:f16\nWMMA[f32, m16n8k16_f16_f32](a, a, a)\n", "WMMA: 3 values"},
    {L,
     "a = VECTORIZE[f16x2](1:f16)\nb = VECTORIZE[f16x4](1:f16)\nc = VECTORIZE[f32x4](1:f32)\n"
     "WMMA[f32x4, m16n8k16_f16_f32](a, a, a, b, a, c)\n",
     "WMMA: source 4 is no fragment of f16"},
/* and of operands in memory, a block of them */
#define BLOCK      "a = PARAM[bf16, 0, 4096]\nb = PARAM[bf16, 1, 4096]\ni = INDEX(a, 0)\nj = INDEX(b, 0)\n"
#define TILE(args) BLOCK "WMMA[f32, m16n16k32_bf16_f32](" args ")\n"
    {L, TILE("i, j, 16, 16, 32, 4, 4"), "the root of a kernel is WMMA"},
    {L, TILE("i, j, 8, 16, 32, 4, 4"), "WMMA: is no block of this unit"},
    {L, TILE("i, j, 0, 16, 32, 4, 4"), "WMMA: is no block of this unit"},
    {L, TILE("i, j, 16, 8, 32, 4, 4"), "WMMA: is no block of this unit"},
    {L, TILE("i, j, 16, 0, 32, 4, 4"), "WMMA: is no block of this unit"},
    {L, TILE("i, j, 16, 16, 0, 4, 4"), "WMMA: is no block of this unit"},
    {L, TILE("i, j, 64, 64, 32, 4, 4"), "WMMA: is no block of this unit"},
    {L, TILE("i, j, 16, 16, 32, 4"), "WMMA: 6 sources"},
    {L, TILE("i, j, 16, 16, 32, 4, i"), "WMMA: source 6 is not constant"},
    {L, TILE("i, 1:bf16, 16, 16, 32, 4, 4"), "WMMA: source 1 is no place of bf16"},
    {H, TILE("i, j, 4"), "WMMA: source 2 is no loop"},
    /* stages */
    {S, HEAD "REDUCE[ADD](INDEX(p0, r0, r1), r1)\n", NULL},
    {S, "b = BUFFER[f32, 0, 6]\nroots b\n", "BUFFER does not stand in a stages graph"},
    {S, HEAD "INDEX(p0, CAST[i32](r0))\n", "INDEX: an offset is i32, not index"},
    {S, HEAD "INDEX[i32](p0, r0)\n", "INDEX: i32 in a buffer of f32"},
    {S, HEAD "INDEX(r0, r0)\n", "INDEX: into RANGE, not memory"},
    {S, HEAD "REDUCE[SUB](INDEX(p0, r1), r1)\n", "REDUCE: not a reduction"},
    {S, HEAD "REDUCE[ADD](INDEX(p0, r1), r1, 4)\n", "REDUCE: source 2 is CONST, not RANGE"},
    {S, HEAD "REDUCE[ADD](INDEX(p0, r1), INDEX(p0, r1))\n", "REDUCE: 2 values"},
    {S, HEAD "STORE(INDEX(p0, r0), 1:f32)\n", "STORE does not stand in a stages graph"},
    {S, HEAD "SHIFT(INDEX(p0, r0), INDEX(p0, r0), 1:f32)\n", "SHIFT does not stand in a stages graph"},
    {S, "RANGE[0, UPCAST](4)\n", "RANGE: a loop of type 6 in a stages graph"},
    {S, "RANGE[0, LOOP](4:i64)\n", "RANGE: the loop variable is i64, not index"},
    {S, "RANGE[-1, LOOP](4)\n", "RANGE: id -1, type 3"},
    {S, "RANGE[0, LOOP](-4)\n", "RANGE: extent below 0"},
    /* kernels */
    {K, HEAD SINK("STORE(INDEX(p0, r0), REDUCE[ADD](INDEX(p0, r0 * 4 + r1), r1), r0)"), NULL},
    {K, HEAD SINK("STORE(INDEX(p0, r0), INDEX(p0, r0 * 4 + r1), r0)"),
     "STORE: uses loop r1 but does not close it"},
    {K, HEAD SINK("STORE(INDEX(p0, r0), 1:f32)"), "STORE: uses loop r0 but does not close it"},
    {K, HEAD "q = RANGE[0, LOOP](9)\n" SINK("STORE(INDEX(p0, r0), INDEX(p0, q), r0, q)"),
     "RANGE: two loops have the id 0"},
    {K, HEAD "q = RANGE[2, LOOP](r0)\n" SINK("STORE(INDEX(p0, r0), INDEX(p0, q), q, r0)"),
     "STORE: loop r2 depends on r0, which is not outside it"},
    {K, HEAD SINK("STORE(INDEX(p0, r0, r1), 1:f32, r0, r1)"), "INDEX: 2 offsets"},
    {K, HEAD SINK("STORE(INDEX(p0, r0), 1:i32, r0)"), "STORE: i32 x1 into f32 x1"},
    {K, HEAD SINK("STORE(p0, 1:f32, r0)"), "STORE: into PARAM"},
    {K, HEAD SINK("STORE(INDEX(p0, r0), 1:f32, r0, p1)"), "STORE: source 3 is PARAM, not RANGE"},
    {K, HEAD SINK("STORE(INDEX[gated](p0, r0, r0), 1:f32, r0)"), "INDEX: the gate is index of 1 lanes"},
    {K, HEAD SINK("STORE(INDEX[f32x4](p0, r0), VECTORIZE[f32x4](1:f32), r0)"), "INDEX: has 4 lanes"},
    {K, HEAD SINK("STORE(INDEX(p0, r0), LOAD(INDEX(p0, r0)), r0)"), "LOAD does not stand in a kernel graph"},
    {K, HEAD "roots STORE(INDEX(p0, r0), 1:f32, r0)\n", "STORE: the root of a kernel is STORE, not SINK"},
    {K, HEAD "roots SINK(r0)\n", "SINK: source 0 is RANGE, not STORE"},
    {K, "r0 = RANGE[0, VEC](4)\np0 = PARAM[f32, 0, 4]\n" SINK("STORE(INDEX(p0, r0), 1:f32, r0)"),
     "RANGE: a loop of type 7 in a kernel graph"},
    {H, "r0 = RANGE[0, VEC](4)\np0 = PARAM[f32, 0, 4]\n" SINK("STORE(INDEX(p0, r0), 1:f32, r0)"), NULL},
    {H,
     "r9 = RANGE[9, LOOP](4)\nr0 = RANGE[0, VEC](r9)\np0 = PARAM[f32, 0, 4]\n" SINK(
         "LOOP(r9, STORE(INDEX(p0, r0), 1:f32, r0))"),
     "the extent of an unrolled loop must be a constant"},
    {H, "g = DEFINE_REG[f32, 0, 4](4)\nr0 = RANGE[0, UPCAST](4)\n" SINK("ACC[ADD](INDEX(g, r0), 1:f32, r0)"),
     NULL},
    {H, "g = DEFINE_REG[f32, 0, 4](4)\n" SINK("ACC[ADD](INDEX(g), 1:f32)"), "INDEX: 0 offsets"},
    {H, HEAD SINK("ACC[ADD](INDEX(p0, 0), 1:f32)"), "ACC: into INDEX, not a register"},
    {H, HEAD SINK("LOOP(r0, LOOP(r0, STORE(INDEX(p0, r0), 1:f32)))"), "LOOP: loop r0 stands inside itself"},
    {H, HEAD SINK("LOOP(r1, STORE(INDEX(p0, r0), 1:f32))"), "STORE: uses loop r0 but does not close it"},
    {H, HEAD SINK("LOOP(r0, p0)"), "LOOP: source 1 is PARAM, not a statement"},
    {H, HEAD SINK("STORE(INDEX(p0, r0), 1:f32, r0)"), "STORE: lists the loop r0"},
    {H, HEAD SINK("STORE(INDEX(p0, 0), REDUCE[ADD](INDEX(p0, r1), r1))"),
     "REDUCE does not stand in a nest graph"},
    {K, HEAD SINK("LOOP(r0, STORE(INDEX(p0, r0), 1:f32))"), "LOOP does not stand in a kernel graph"},
/* in order */
#define ORDER "r0 = RANGE[0, GLOBAL](4)\nr1 = RANGE[1, ORDERED](8)\np0 = PARAM[f32, 0, 32]\n"
    {K, ORDER SINK("STORE(INDEX(p0, r0 * 8 + r1), SCAN[ADD](INDEX(p0, r1), r1), r0, r1)"), NULL},
    {K, ORDER SINK("STORE(INDEX(p0, r0 * 8 + r1), SCAN[ADD](INDEX(p0, r1), r1), r1, r0)"),
     "STORE: carries a value along a loop that is not its innermost"},
    {K, ORDER SINK("STORE(INDEX(p0, r0), SCAN[ADD](INDEX(p0, r0), r0), r0)"),
     "SCAN: along RANGE, not an ordered loop"},
    {K, ORDER SINK("STORE(INDEX(p0, r1), SCAN[SUB](INDEX(p0, r1), r1), r1)"),
     "SCAN: not a running reduction"},
    {K, ORDER SINK("STORE(INDEX(p0, r0), REDUCE[ADD](INDEX(p0, r1), r1), r0)"),
     "REDUCE: over the ordered loop r1"},
    {T, "b = BUFFER[f32, 0, 6]\ni = BUFFER[i32, 1, 6]\nGATHER(b, i)\n", NULL},
    {T, "b = BUFFER[f32, 0, 6]\nGATHER(b, b)\n", "GATHER: index 0 is f32"},
    {T, "b = BUFFER[f32, 0, 6]\ni = BUFFER[i32, 1, 6]\nGATHER(b, i, i)\n", "GATHER: 2 indices into rank 1"},
    {T, "b = BUFFER[f32, 0, 6]\ni = BUFFER[i32, 1, 3]\nSCATTER[ADD](b, b, i)\n",
     "SCATTER: index 0 has another shape"},
    {T, "b = BUFFER[f32, 0, 6]\ni = BUFFER[i32, 1, 6]\nSCATTER[SUB](b, b, i)\n",
     "SCATTER: combines by nothing known"},
    {T, "b = BUFFER[f32, 0, 6]\nSCAN_AXIS[ADD, (1)](b)\n", "SCAN_AXIS: axis 1"},
    /* expanded */
    {L, HEAD SINK("LOOP(r0, STORE(INDEX[f32x4](p0, r0 * 4), LOAD(INDEX[f32x4](p0, r0 * 4))))"), NULL},
    {L, HEAD SINK("LOOP(r0, STORE(INDEX[f32x4](p0, r0 * 4), 1:f32))"), "STORE: f32 x1 into f32 x4"},
    {L, HEAD "v = VECTORIZE[f32x4](1:f32)\n" SINK("LOOP(r0, STORE(INDEX[f32x4](p0, r0 * 4), ADD(v, 1:f32)))"),
     "ADD: source 1 has 1 lanes, the result 4"},
    {L, HEAD "v = VECTORIZE[f32x4](1:f32, 2:f32)\n" SINK("LOOP(r0, STORE(INDEX[f32x4](p0, r0 * 4), v))"),
     "VECTORIZE: 2 sources for 4 lanes"},
    {L, HEAD "v = VECTORIZE(1:f32, 2:i32)\n" SINK("LOOP(r0, STORE(INDEX[f32x2](p0, r0 * 4), v))"),
     "VECTORIZE: source 1 is i32 x1"},
    {L, HEAD "v = VECTORIZE(1:f32, 2:f32)\n" SINK("LOOP(r0, STORE(INDEX(p0, r0), GEP[2](v)))"),
     "GEP: lanes 2 and on, 1 of 2"},
    {L, HEAD SINK("LOOP(r0, STORE(INDEX(p0, r0), LOAD(INDEX(p0, r0), 1:f32)))"),
     "LOAD: a value for a gate that is not there"},
    {L, HEAD SINK("LOOP(r0, STORE(INDEX(p0, r0), LOAD(INDEX[gated](p0, r0, r0 < 3), 1:i32)))"),
     "LOAD: the other value is i32, the result f32"},
    {L, HEAD SINK("LOOP(r0, STORE(INDEX(p0, r0), LOAD[f64](INDEX(p0, r0))))"),
     "LOAD: the source is f32, the result f64"},
    {L, HEAD SINK("LOOP(r0, STORE(INDEX(p0, r0), LOAD(p0)))"), "LOAD: of PARAM"},
    {L, "r0 = RANGE[0, UNROLL](4)\np0 = PARAM[f32, 0, 4]\n" SINK("STORE(INDEX(p0, r0), 1:f32)"),
     "RANGE: a loop of type 8 in a loops graph"},
    {L, HEAD SINK("LOOP(r0, STORE(INDEX(p0, r0), 1:f32, r0))"), "STORE: 3 sources"},
    {L,
     "g = DEFINE_REG[f32x4, 0, 1]\nv = VECTORIZE[f32x4](1:f32)\n"
     "a = STORE(g, v)\nb = ACC[ADD](g, SHUFFLEVECTOR[f32x4, (0, 7, 2, 5)](v, v))\nroots SINK(a, b)\n",
     NULL},
    {L, "g = DEFINE_REG[f32, 0, 1]\n" SINK("ACC[SUB](g, 1:f32)"), "ACC: not a reduction"},
    {L, "t = VECTORIZE[i8x16](1:i8)\nv = VECTORIZE[u8x4](1:u8)\nLOOKUP[i8x4](t, v)\n",
     "the root of a kernel is LOOKUP"},
    {L, "t = VECTORIZE[i8x8](1:i8)\nv = VECTORIZE[u8x4](1:u8)\nLOOKUP[i8x4](t, v)\n", "LOOKUP: of i8 x8"},
    {L, "t = VECTORIZE[i16x16](1:i16)\nv = VECTORIZE[u8x4](1:u8)\nLOOKUP[i16x4](t, v)\n",
     "LOOKUP: of i16 x16"},
    {L, "t = VECTORIZE[i8x16](1:i8)\nv = VECTORIZE[i8x4](1:i8)\nLOOKUP[i8x4](t, v)\n",
     "LOOKUP: 4 lanes by i8 x4"},
    {L, "t = VECTORIZE[i8x16](1:i8)\nv = VECTORIZE[u8x4](1:u8)\nLOOKUP[i8x8](t, v)\n",
     "LOOKUP: 8 lanes by u8 x4"},
    {L, "v = VECTORIZE[f32x4](1:f32)\nSHUFFLEVECTOR[f32x2, (0, 7)](v, v)\n",
     "the root of a kernel is SHUFFLEVECTOR"},
    {L, "v = VECTORIZE[f32x4](1:f32)\nSHUFFLEVECTOR[f32x2, (0, 8)](v, v)\n",
     "SHUFFLEVECTOR: lane 8 of two vectors of 4"},
    {L, "v = VECTORIZE[f32x4](1:f32)\nSHUFFLEVECTOR[f32x2, (-1, 3)](v, v)\n",
     "SHUFFLEVECTOR: lane -1 of two vectors of 4"},
    {L, "v = VECTORIZE[f32x4](1:f32)\nSHUFFLEVECTOR[f32x4, (0, 1)](v, v)\n",
     "SHUFFLEVECTOR: 2 numbers for 4 lanes"},
    {L, "v = VECTORIZE[f32x4](1:f32)\nw = VECTORIZE[i32x4](1:i32)\nSHUFFLEVECTOR[f32x2, (0, 1)](v, w)\n",
     "SHUFFLEVECTOR: of f32 x4 and i32 x4"},
    {L, "v = VECTORIZE[f32x4](1:f32)\nw = VECTORIZE[f32x2](1:f32)\nSHUFFLEVECTOR[f32x2, (0, 1)](v, w)\n",
     "SHUFFLEVECTOR: of f32 x4 and f32 x2"},
    {L, "SHUFFLEVECTOR[f32x2, (0, 1)](1:f32, 1:f32)\n", "SHUFFLEVECTOR: of f32 x1 and f32 x1"},
    {L, "v = VECTORIZE[f32x4](1:f32)\nSHUFFLE[32](v)\n", "SHUFFLE: 32 threads apart"},
    {L, "SHUFFLE[0](1:f32)\n", "SHUFFLE: 0 threads apart"},
    {L, "SHUFFLE[f64, 1](1:f32)\n", "SHUFFLE: the source is f32, the result f64"},
    {L, "v = VECTORIZE[f16x8](1:f16)\nFRAGMENT[f16x8, 0](v)\n", "the root of a kernel is FRAGMENT"},
    {L, "v = VECTORIZE[f16x8](1:f16)\nFRAGMENT[f16x8, 2](v)\n", "FRAGMENT: turned 2"},
    {L, "v = VECTORIZE[f32x4](1:f32)\nFRAGMENT[f32x4, 1](v)\n", "FRAGMENT: turned 1"},
    {L, "v = VECTORIZE[f16x4](1:f16)\nFRAGMENT[f16x8, 0](v)\n", "FRAGMENT: of a row of f16 x4"},
    {L, "v = VECTORIZE[f16x8](1:f16)\nFRAGMENT[f16x6, 0](v)\n", "FRAGMENT: has 6 lanes"},
    /* programs */
    {P, PROG "r = RANGE[0, LOOP](8:i64)\ni = INDEX(p0, r)\nl = LOAD(i)\ns = STORE(i, l)\ne = END(r)\n", NULL},
    {P, PROG "r = RANGE[0, LOOP](8)\nEND(r)\n", "RANGE: index is not lowered"},
    {P, PROG "r = RANGE[0, LOOP](8:i64)\n", "RANGE: is never closed"},
    {P, PROG "r = RANGE[0, LOOP](8:i64)\nq = RANGE[1, LOOP](8:i64)\nEND(r)\nEND(q)\n",
     "END: closes something else than the innermost block"},
    {P, PROG "r = RANGE[0, LOOP](8:i64)\nl = LOAD(INDEX(p0, r))\nEND(r)\nSTORE(INDEX(p0, 0:i64), l)\n",
     "STORE: source 1 (LOAD) was defined in a block that is closed"},
    {P, PROG "r = RANGE[0, LOOP](8:i64)\nEND(r)\nSTORE(INDEX(p0, 0:i64), 1:f32, r)\n", "STORE: 3 sources"},
    {P, PROG "STORE(INDEX(p0, 1:u8), 1:f32)\n", "INDEX: an offset is u8, not i32 or i64"},
    {P, PROG "PARAM[f32, 2, 9]\n", "PARAM: slot 2 of 2"},
    {P, PROG "REDUCE[ADD](LOAD(INDEX(p0, 0:i64)), RANGE[0, LOOP](8:i64))\n",
     "REDUCE does not stand in a linear graph"},
    {P, PROG "x = CMPLT(LOAD(INDEX(p0, 0:i64)), 1:f32)\nIF(x)\n", "IF: is never closed"},
    {P, PROG "IF(LOAD(INDEX(p0, 0:i64)))\n", "IF: the condition is f32 of 1 lanes"},
    {P, PROG "SPECIAL[3, 0](8:i32)\n", "SPECIAL: dim 3, local 0"},
};

static void test_cases(void **state) {
  (void)state;
  int wrong = 0;
  for (size_t i = 0; i < TG_COUNT(cases); i++) {
    const Case *c = &cases[i];
    TgMem mem = {0};
    UOpStore *st = store_new(&mem);
    UOpText t;
    TgError err = {0};
    SpecError bad = {0};
    char said[700];
    if (!uop_parse(&t, st, &mem, c->text, strlen(c->text), &err))
      snprintf(said, sizeof said, "%s", err.msg);
    else if (c->kind == P ? spec_linear(&t.program, &mem, &bad)
                          : spec_graph(st, &mem, c->kind, t.roots.at, t.roots.len, &bad))
      *said = 0;
    else {
      assert_non_null(bad.node);
      snprintf(said, sizeof said, "%s: %s", op_name((Ops)bad.node->op), bad.why);
    }
    if (c->says ? !strstr(said, c->says) : *said) {
      print_error("%s\nsays '%s', not '%s'\n", c->text, said, c->says ? c->says : "nothing");
      wrong++;
    }
    uop_text_free(&t);
    store_free(st);
    assert_int_equal(mem.live, 0);
  }
  assert_int_equal(wrong, 0);
}

/* What the builders of text cannot say: constants outside their dtype, args that no op takes. */
static void test_made_by_hand(void **state) {
  (void)state;
  TgMem mem = {0};
  UOpStore *st = store_new(&mem);
  SpecError bad;
  UOp *c = uop_new(st, OPS_CONST, DT_I8, 1, 0, NULL, (Arg){.v = {.i = 300}});
  assert_false(spec_graph(st, &mem, T, &c, 1, &bad));
  assert_string_equal(bad.why, "is no value of i8");
  c = uop_new(st, OPS_CONST, DT_F32, 1, 0, NULL, (Arg){.v = {.f = 0.1}});
  assert_false(spec_graph(st, &mem, T, &c, 1, &bad));
  UOp *two = uop_index_const(st, 2), *n = UNEW(st, OPS_NEG, DT_INDEX, 1, ((Arg){.i = 7}), two);
  assert_ptr_equal(n, uop_alu1(st, OPS_NEG, two)); /* a node has of an arg what its op takes */
  assert_true(spec_graph(st, &mem, S, &n, 1, &bad));
  n->arg.i = 7; /* as a stray store would */
  assert_false(spec_graph(st, &mem, S, &n, 1, &bad));
  assert_string_equal(bad.why, "takes no arg");
  n->arg.i = 0;
  n = uop_new(st, OPS_ADD, DT_INDEX, 1, 2, (UOp *[]){two, two}, ARG0);
  assert_true(spec_graph(st, &mem, S, &n, 1, &bad));
  Linear lin = {.at = (UOp *[]){n, uop_alu1(st, OPS_NEG, n)}, .n = 2, .nparam = 0};
  assert_false(spec_linear(&lin, &mem, &bad));
  UOp *p = uop_new(st, OPS_PARAM, DT_F32, 1, 0, NULL, (Arg){.param = {4, 0}});
  UOp *ix = UNEW(st, OPS_INDEX, DT_F32, 1, ARG0, p, uop_const_int(st, DT_I64, 1));
  UOp *ld = UNEW(st, OPS_LOAD, DT_F32, 1, ARG0, ix);
  lin = (Linear){.at = (UOp *[]){p, ld, ix}, .n = 3, .nparam = 1};
  assert_false(spec_linear(&lin, &mem, &bad));
  assert_string_equal(bad.why, "source 0 (INDEX) is not defined before");
  lin = (Linear){.at = (UOp *[]){p, ix, ld, ld}, .n = 4, .nparam = 1};
  assert_false(spec_linear(&lin, &mem, &bad));
  assert_string_equal(bad.why, "stands twice in the program");
  store_free(st);
  assert_int_equal(mem.live, 0);
}

/* ---- the runner */
static UOp *pm_wrong_type(Rewrite *rw, UOp *u) {
  return u->op == OPS_MUL ? rule_fired(rw, "mul-cast", "wrong.rules:3", u,
                                       UNEW(rw->st, OPS_CAST, DT_F64, 1, ARG0, u->src[0]))
                          : NULL;
}

static UOp *pm_wrong_inside(Rewrite *rw, UOp *u) { /* the right type over a node that is wrong */
  if (u->op != OPS_MUL) return NULL;
  return rule_fired(rw, "mul-and", "wrong.rules:4", u,
                    uop_alu1(rw->st, OPS_NEG, UNEW(rw->st, OPS_AND, DT_F32, 1, ARG0, u->src[0], u->src[1])));
}

static bool run_wrong(void *state) {
  UOp **root = *(UOp ***)state;
  *root = (*root)->src[0]; /* the sink is lost */
  return true;
}

typedef struct Hold {
  UOp **root;
  TgMem *mem;
} Hold;

static bool graph_of(void *state, UOpVec *roots) {
  Hold *h = state;
  return vec_push(h->mem, roots, *h->root);
}

static void test_runner(void **state) {
  (void)state;

  static const struct {
    Pass pass;
    const char *says;
  } is[] = {
      {{"right", pm_symbolic, .makes = K}, NULL},
      {{"wrong type", pm_wrong_type, .makes = K},
       "spec: stage k: after wrong type, rule mul-cast: wrong.rules:3: f32 becomes f64: "},
      {{"wrong inside", pm_wrong_inside, .makes = K},
       "spec: stage k: after wrong inside, rule mul-and: on f32: AND[f32]: (INDEX"},
      {{"no sink", .run = run_wrong, .makes = K},
       "spec: stage k: after no sink: the root of a kernel is STORE, not SINK: STORE[void]: STORE("},
  };

  for (size_t i = 0; i < TG_COUNT(is); i++) {
    TgMem mem = {0};
    TgEnv env = {.rule_limit = -1, .opt_limit = -1, .fuse_limit = -1, .spec = 1};
    PassEnv pe;
    UOpText t;
    TgError err = {0};
    pass_env_init(&pe, &env, &tg_os_default, &mem, NULL, NULL);
    UOpStore *st = store_new(&mem);
    store_set_env(st, &pe.rewrites);
    const char *text = HEAD SINK("STORE(INDEX(p0, r0), MUL(INDEX(p0, r0 + 0), 3:f32), r0)");
    assert_true(uop_parse(&t, st, &mem, text, strlen(text), &err));
    UOp *root = t.roots.at[0];
    Hold h = {&root, &mem};
    PassRun run = {.env = &pe,
                   .st = st,
                   .mem = &mem,
                   .err = &err,
                   .stage = "stage",
                   .letter = 'k',
                   .takes = K,
                   .subject = "k",
                   .state = &h,
                   .root = &root,
                   .graph = graph_of};
    bool ok = passes_run(&run, &is[i].pass, 1);
    assert_int_equal(ok, !is[i].says);
    if (!ok && strncmp(err.msg, is[i].says, strlen(is[i].says)))
      fail_msg("says '%s'\nnot  '%s'", err.msg, is[i].says);
    assert_int_equal(err.status, ok ? TG_OK : TG_ERR_INTERNAL);
    uop_text_free(&t);
    pass_env_free(&pe);
    store_free(st);
    assert_int_equal(mem.live, 0);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_cases), cmocka_unit_test(test_made_by_hand),
                                     cmocka_unit_test(test_runner)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
