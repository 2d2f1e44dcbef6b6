/* emulators.h: drivers that emulate their GPUs (TG_EMU=1), and what else `tg` alone has, where they are linked. `tg`
 * and the tests have those of emu/; the library that is installed has none. */
#ifndef TG_EMULATORS_H
#define TG_EMULATORS_H
#include "base/base.h"

struct CudaApi;
struct Sched;
struct Kernel;
struct MetalApi;
struct NcclApi;

typedef struct Emulators {
  TgStatus (*cuda_open)(const TgEnv *env, TgError *err, struct CudaApi *api);
  void (*cuda_close)(void);
  const char *(*cuda_ident)(void); /* what an object depends on besides its text; valid until the next call */
  TgStatus (*metal_open)(const TgEnv *env, TgError *err, struct MetalApi *api);
  void (*metal_close)(void);
  const struct NcclApi *nccl;
  /* the scheduler's state from its text (emu/stages.h): what `tg opt --from` needs, and programs do not */
  bool (*stages_read)(struct Sched *s, const char *text, const char *before);
  /* .. and the state of code generation (emu/kernel_text.h) */
  bool (*kernel_read)(struct Kernel *k, const char *text, bool opts);
} Emulators;

/* NULL: none are linked. Defined in emu/table.c, and in emu/none.c for the library alone. */
const Emulators *emulators(void);
#endif
