/* graph_copy.h: the live graph, copied: what engine/graph_copy.c gives engine/realize.c. */
#ifndef TG_GRAPH_H
#define TG_GRAPH_H
#include "engine/engine.h"

typedef struct GraphNode { /* what is known of a node of the live store during a copy */
  uint32_t graph;     /* number of the graph that all below is of; another one's means nothing is known */
  UOp *to, *place_to; /* its copy as a value; as a place, which is memory whatever is known about its value */
  uint32_t user;      /* id + 1 of the one node that reads it, MANY: several */
  int generation;     /* of the values in memory below */
  bool value, place, grad; /* reached as a value, as a place; a tensor below requires a gradient */
} GraphNode;

/* The array of them, kept from one graph to the next: to clear it would take as long as the store is large,
 * however small the graph is. */
typedef struct GraphNodes {
  GraphNode *at;
  size_t n;
  uint32_t graphs; /* numbers given out */
  bool lent;
} GraphNodes;

typedef struct Reached {
  UOp *u;
  bool place;
} Reached;

typedef struct Graph {
  TgContext *ctx;
  int device;      /* of all its memories; what another one holds is copied first */
  UOpVec copies;   /* the COPY nodes that stand for that, in the live store */
  UOpStore *st;    /* the copy's */
  GraphNode *node; /* by id in the live store: graph_node */
  size_t nnode;
  uint32_t number_of_graph;
  bool borrowed;           /* node is the context's */
  Vec(Reached) order;      /* sources first */
  UOpVec roots;            /* of the live store, as they were asked for; then as values */
  Vec(Buffer *) stored;    /* the memories that a store in the graph writes */
  Map is_stored;           /* which those are, too */
  Vec(BufferPart) buffers; /* by slot of the copy */
  Map slots;               /* uid -> slot + 1 */
  Map pieces;              /* uid -> the one view through which the graph sees that memory */
  Str key;                 /* the copy as bytes, the same for equal graphs */
  UOpMap *number;          /* of copied nodes in the key */
  uint32_t count;
  bool apart; /* what a memory holds before its store is read from another one */
} Graph;

bool graph_init(Graph *g, TgContext *ctx, int device);
void graph_free(Graph *g);
bool graph_reach(Graph *g, UOp *root);               /* adds a root, and all it needs; false: recorded */
bool graph_copy(Graph *g);                           /* then: the copy of all roots, and the key */
UOp *graph_root(const Graph *g, size_t i);           /* the copy of root i */
GraphNode *graph_node(const Graph *g, const UOp *u); /* of a node that was reached; NULL: it was not */

/* Variables of one store's sizes as another's: number(user, i) is what variable i is there, -1: out of
 * memory.
 */
typedef struct Renumber {
  UOpStore *from;
  int (*number)(void *user, int var);
  void *user;
} Renumber;

/* u with other sources, in another store; NULL: out of memory. */
UOp *node_moved(UOpStore *st, const UOp *u, UOp *const *src, const Renumber *r);
/* The graph that a key tells of, made again: key[..] of a plan, the roots in their order. False: out of
 * memory. */
bool graph_of_key(TgMem *mem, const uint8_t *key, size_t nkey, UOpStore *st, const Renumber *r,
                  UOpVec *roots);
/* Instead of reaching and copying: the roots are nodes of g's own store, its BUFFERs numbered by slot. */
bool graph_given(Graph *g, UOp *const *roots, size_t n);
/* What u's value is to be read from: u itself, or what is known to hold it, whose sources may again stand for
 * others. NULL: nothing holds it any more. */
UOp *value_of_node(TgContext *ctx, UOp *u);
/* an AFTER whose store has run: the view of the next version that it is; one that waits: itself */
UOp *stored_value(TgContext *ctx, UOp *after);
/* a node without its sources, as bytes that mean the same in every store */
/* The graph whose nodes, each followed by the numbers of its sources, stand in a key, the root last. NULL: out of
 * memory. */
UOp *key_graph(UOpStore *st, TgMem *mem, const uint8_t *key, size_t nkey);
void key_put(Str *key, const UOp *u);
#endif
