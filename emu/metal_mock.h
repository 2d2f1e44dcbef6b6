/* metal_mock.h: private to the mock of Apple's runtime and frameworks: its objects. */
#ifndef TG_METAL_MOCK_H
#define TG_METAL_MOCK_H
#include "emu/emulate.h"
#include "emu/metal_emu.h"

enum { GPUS = 4, MOST_BINDINGS = 31, MOST_USED = 1024 };

typedef enum MockKind {
  ANY_KIND,
  A_CLASS,
  A_STRING,
  A_LIST,
  AN_ERROR,
  A_DEVICE,
  A_QUEUE,
  AN_EVENT,
  A_BUFFER,
  OPTIONS,
  A_LIBRARY,
  A_FUNCTION,
  A_PIPELINE_DESCRIPTOR,
  A_PIPELINE,
  A_COMMAND_BUFFER,
  AN_ENCODER,
  A_BLIT_ENCODER,
  AN_INDIRECT_DESCRIPTOR,
  AN_INDIRECT,
  A_COMMAND
} MockKind;

/* The head of every object. An object that nobody holds any more is kept for a while, so that a late message
 * to it is noticed. */
struct MetalObject {
  uint64_t magic;
  MockKind kind;
  int refs;
  bool dead;
  /* neighbours in the list of live objects or in that of dead ones */
  struct MetalObject *before, *after;
};

typedef struct MetalObject Object;

typedef struct MockClass {
  Object object;
  const char *name;
  MockKind makes;
} MockClass;

typedef struct MockText { /* a string, or an error and its description */
  Object object;
  char text[];
} MockText;

typedef struct MockDevice {
  Object object;
  int index;
  uint64_t allocated;
  Emu *emu;
} MockDevice;

typedef struct MockList {
  Object object;
  int n;
  MockDevice *at[GPUS];
} MockList;

typedef struct MockQueue {
  Object object;
  MockDevice *device;
  struct MockCommandBuffer *first, *last; /* committed but not run */
  struct MockQueue *next;
} MockQueue;

typedef struct MockEvent {
  Object object;
  uint64_t value;
} MockEvent;

typedef struct MockBuffer {
  Object object;
  MockDevice *device;
  char *at;
  size_t nbytes;
  bool is_private;
  /* the buffer of another device that `device` accesses through this one; NULL: it is `device`'s own */
  struct MockBuffer *of;
} MockBuffer;

typedef struct MockOptions {
  Object object;
  bool safe;
} MockOptions;

typedef struct MockLibrary {
  Object object;
  MockDevice *device;
  EmuModule *module;
} MockLibrary;

typedef struct MockFunction {
  Object object;
  MockLibrary *library;
  EmuKernel *kernel;
} MockFunction;

/* A pipeline, or the descriptor that one is made from. */
typedef struct MockPipeline {
  Object object;
  MockFunction *function;
  MetalUint most_threads;
  bool indirect;
} MockPipeline;

/* What is bound to a number: a buffer, or bytes by value. */
typedef struct Binding {
  MockBuffer *buffer;
  size_t offset;
  char *bytes;
  size_t nbytes;
} Binding;

/* A kernel with everything that it needs to run. */
typedef struct Dispatch {
  MockPipeline *pipeline;
  Binding at[MOST_BINDINGS];
  MetalSize grid, block;
  bool barrier; /* an indirect command that runs after those before it */
} Dispatch;

typedef struct MockIndirect {
  Object object;
  MockDevice *device;
  MetalUint n, most_buffers;
  int in_flight; /* how often it still has to run */
  struct MockCommand *command;
} MockIndirect;

typedef struct MockCommand {
  Object object;
  MockIndirect *of;
  Dispatch d;
} MockCommand;

typedef struct MockIndirectDescriptor {
  Object object;
  MetalUint types, most_buffers;
  bool inherit_buffers, inherit_pipeline;
} MockIndirectDescriptor;

typedef enum OpKind { OP_DISPATCH, OP_EXECUTE, OP_COPY, OP_FILL, OP_SIGNAL, OP_WAIT } OpKind;

/* One thing that a command buffer does. used: buffers that were named because kernels reach them by
 * address. */
typedef struct Op {
  OpKind kind;
  struct Op *next;
  Dispatch dispatch;
  MockBuffer **used;
  size_t nused;
  MockIndirect *indirect;
  MetalRange range;
  MockBuffer *to, *from;
  size_t to_offset, from_offset, nbytes;
  uint8_t byte;
  MockEvent *event;
  uint64_t value;
} Op;

typedef struct MockCommandBuffer {
  Object object;
  MockQueue *queue;
  Op *first, *last;
  MetalUint status;
  bool committed, fails;
  struct MockEncoder *encoder; /* the open one */
  double began_s, ended_s;
  TgError why;
  struct MockCommandBuffer *next; /* next in the queue */
} MockCommandBuffer;

typedef struct MockEncoder {
  Object object;
  MockCommandBuffer *buffer;
  bool ended;
  Dispatch d; /* what was set so far */
  Vec(MockBuffer *) used;
  /* pipelines that were dispatched, even for no threads */
  Vec(MockPipeline *) resident;
} MockEncoder;

typedef struct Mock {
  int opened;
  TgMem mem;
  TgEnv env;
  Compiler cc;
  bool identified;
  Cache *cache; /* texts that were compiled */
  MockDevice device[GPUS];
  MockQueue *queues;
  Object *live, *dead_first, *dead_last;
  size_t ndead;
  Vec(Object *) pool;
  /* the index in `pool` where each pool begins */
  Vec(size_t) pools;
  uint64_t seed;
  TgError misuse;
  bool misuse_told;
  MetalMockCounts counts;
  MetalMessage fails;
  bool any_fails;
  uint64_t fails_in;
} Mock;

extern Mock metal_mock;

/* A method: what a message does to an object of a kind. types: in the runtime's notation. */
typedef struct Method {
  MockKind kind;
  MetalMessage message;
  const char *types;
  void (*fn)(void);
} Method;

/* ---- metal_mock.c */
/* Records a misuse, which the next command buffer reports. */
void metal_misused(const char *fmt, ...) TG_PRINTF(1, 2);
void *mock_new(MockKind kind, size_t nbytes); /* held once; NULL: out of memory */
void mock_hold(void *object);
void mock_let_go(void *object);
/* Makes the pool let go of the object at its end. */
void *mock_pooled(void *object);
/* Returns the object if it is of that kind, otherwise NULL. It is a misuse unless the object is NULL. */
void *mock_of_kind(MetalId object, MockKind kind, const char *what);
MockText *mock_text(MockKind kind, const char *text); /* held by the pool */

/* ---- metal_mock_queue.c */
extern const Method mock_queue_methods[];
extern const size_t mock_queue_nmethod;
/* Lets go of what an object of a queue held. */
void mock_object_end(Object *o);
/* Sometimes runs something that was committed. */
void mock_some_done(void);
/* Returns the command buffer that an object works for, or NULL. */
MockCommandBuffer *mock_buffer_of(Object *o);
#endif
