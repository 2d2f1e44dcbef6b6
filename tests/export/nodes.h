/* nodes.h: the node cases of the ONNX project as C. In: their archive. Out: how many were written, compiled
 * and gave the bits of the interpreter, which runs the same plan. */
#ifndef EXPORT_NODES_H
#define EXPORT_NODES_H

/* same: exported, with the same bits; [1]: after inputs that decide a shape were fixed. refused: with a
 * message that names the node. wrong: the rest, each printed. */
typedef struct NodeCounts {
  int same[2], refused, wrong;
} NodeCounts;

/* Each `every`-th case of the archive; folder: for files. False: no archive unpacks. */
int nodes_exported(const char *archive, const char *folder, int every, NodeCounts *counts);
#endif
