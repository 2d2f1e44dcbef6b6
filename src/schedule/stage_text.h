/* stage_text.h: the stages as text, between two passes. Comments (lines that begin with "#| ") follow the
 * graph that a dump shows. The first is a graph of all that the stages are made of: its roots are the value,
 * loops and target of each stage, and the grid of each kernel. Then each stage and each kernel has a line
 * with the fields that no graph shows. Fields that can be computed from the values (reads, weights) are not
 * written. The text is written here, and read by emu/stages.c for tg and the tests. */
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

/* A field that is missing from a line is 0. */
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

/* Appends the stages to `out`. pass: the last pass that ran. Returns false if out of memory. */
bool stages_print(Sched *s, const char *pass, Str *out);
#endif
