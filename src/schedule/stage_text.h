/* stage_text.h: the stages as text, between two passes. Behind the graph that a dump shows stand comments, lines that begin
 * with "#| ": a graph of all that the stages are made of, whose roots are for each stage its value, loops and target, and
 * for each kernel its grid; then a line for each stage and each kernel with what no graph tells. What can be computed
 * from the values (reads, weights) is not written. Written here; read by emu/stages.c, for tg and the tests. */
#ifndef TG_STAGE_TEXT_H
#define TG_STAGE_TEXT_H
#include "schedule/stage.h"

#define STAGE_TEXT "#| "

typedef enum FieldKind { FIELD_BOOL, FIELD_INT, FIELD_BITS, FIELD_WIDE, FIELD_REAL, FIELD_INTS } FieldKind;

typedef struct StageField {
  const char *name;
  FieldKind kind;
  size_t offset;
} StageField;

/* A field that a line does not have is 0. */
#define STAGE_FIELDS(F)                                                                                      \
  F(root, INT)                                                                                               \
  F(nout, INT)                                                                                               \
  F(nred, INT)                                                                                               \
  F(is_reduce, BOOL)                                                                                         \
  F(is_store, BOOL)                                                                                          \
  F(keep, BOOL)                                                                                              \
  F(inlined, BOOL)                                                                                           \
  F(in_memory, BOOL)                                                                                         \
  F(update, BOOL)                                                                                            \
  F(fixed, BOOL)                                                                                             \
  F(parts, BOOL)                                                                                             \
  F(late, BOOL)                                                                                              \
  F(ordered, BITS)                                                                                           \
  F(buffer, WIDE)                                                                                            \
  F(near, INT)                                                                                               \
  F(near_bytes, REAL)                                                                                        \
  F(kernel, INT)                                                                                             \
  F(after, INTS)                                                                                             \
  F(war, INTS)                                                                                               \
  F(old, INTS)                                                                                               \
  F(fresh, INTS)                                                                                             \
  F(readers, INTS)
#define STAGE_FIELD(name, kind) {#name, FIELD_##kind, offsetof(Stage, name)},

/* Appended to `out`; pass: the last that ran. */
bool stages_print(Sched *s, const char *pass, Str *out);
#endif
