/* graph_copy.h: a copy of the live graph: what engine/graph_copy.c offers to engine/realize.c. */
#ifndef TG_GRAPH_H
#define TG_GRAPH_H
#include "engine/engine.h"

/* Facts about a node of the live store during a copy. */
typedef struct GraphNode {
  /* number of the graph that the fields below belong to; if it is another graph's, nothing is known */
  uint32_t graph;
  /* the node's copy as a value, and as a place: memory, whatever is known about its value */
  UOp *to, *place_to;
  uint32_t user;           /* id + 1 of the only node that reads it; MANY: several nodes */
  int generation;          /* of the values in memory below */
  bool value, place, grad; /* reached as a value; reached as a place; a tensor below requires a gradient */
} GraphNode;

/* The array of GraphNodes, kept from one graph to the next, because clearing it would take time in
 * proportion to the store, however small the graph is. */
typedef struct GraphNodes {
  GraphNode *at;
  size_t n;
  uint32_t graphs; /* number of graphs numbered so far */
  bool lent;
} GraphNodes;

typedef struct Reached {
  UOp *u;
  bool place;
} Reached;

typedef struct Graph {
  TgContext *ctx;
  int device;      /* the device of all its memories; the contents of other devices are copied here first */
  UOpVec copies;   /* the COPY nodes that do this, in the live store */
  UOpStore *st;    /* the store of the copy */
  GraphNode *node; /* by id in the live store: see graph_node */
  size_t nnode;
  uint32_t number_of_graph;
  bool borrowed;           /* node is the array of the context */
  Vec(Reached) order;      /* sources first */
  UOpVec roots;            /* nodes of the live store as the caller gave them, then their values */
  Vec(Buffer *) stored;    /* the memories that a store in the graph writes */
  Map is_stored;           /* the same memories as a set */
  Vec(BufferPart) buffers; /* by slot of the copy */
  Map slots;               /* uid -> slot + 1 */
  Map pieces;              /* uid -> the only view through which the graph sees this memory */
  Str key;                 /* the copy as bytes; equal graphs have equal keys */
  UOpMap *number;          /* number in the key of each copied node */
  uint32_t count;
  bool apart; /* what a memory held before its store is read from another memory */
} Graph;

bool graph_init(Graph *g, TgContext *ctx, int device);
void graph_free(Graph *g);
/* adds a root and all that it needs; false: an error was recorded */
bool graph_reach(Graph *g, UOp *root);
bool graph_copy(Graph *g);                           /* then copies all roots and makes the key */
UOp *graph_root(const Graph *g, size_t i);           /* the copy of root i */
GraphNode *graph_node(const Graph *g, const UOp *u); /* of a reached node; NULL: it was not reached */

/* Translates the variables in the sizes of one store to those of another. number(user, i) returns what
 * variable i is there, or -1 if out of memory. */
typedef struct Renumber {
  UOpStore *from;
  int (*number)(void *user, int var);
  void *user;
} Renumber;

/* Returns u with other sources, in another store. NULL if out of memory. */
UOp *node_moved(UOpStore *st, const UOp *u, UOp *const *src, const Renumber *r);
/* Makes the graph again that the key of a plan describes, and returns its roots in their order. Returns
 * false if out of memory. */
bool graph_of_key(TgMem *mem, const uint8_t *key, size_t nkey, UOpStore *st, const Renumber *r,
                  UOpVec *roots);
/* Replaces reaching and copying if the roots are nodes of g's own store, with BUFFERs that are numbered by
 * slot. */
bool graph_given(Graph *g, UOp *const *roots, size_t n);
/* Returns the node from which u's value is to be read: u itself, or what is known to hold the value. The
 * sources of the result may have to be looked up too. NULL: nothing holds the value any more. */
UOp *value_of_node(TgContext *ctx, UOp *u);
/* For an AFTER whose store has run, returns the view of the memory's next version. An AFTER that waits is
 * returned as it is. */
UOp *stored_value(TgContext *ctx, UOp *after);
/* Makes the graph of a key that lists nodes, each followed by the numbers of its sources, with the root
 * last. Returns NULL if out of memory. */
UOp *key_graph(UOpStore *st, TgMem *mem, const uint8_t *key, size_t nkey);
void key_put(Str *key, const UOp *u);
/* Appends a node without its sources, as bytes that mean the same in every store. */
#endif
