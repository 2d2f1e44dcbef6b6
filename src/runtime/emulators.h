/* emulators.h: drivers that emulate their GPUs (TG_EMU=1), and other code that only `tg` needs. `tg` and the
 * tests are linked with those of emu/; the installed library has none. */
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
  /* what an object depends on besides its text; valid until the next call */
  const char *(*cuda_ident)(void);
  TgStatus (*metal_open)(const TgEnv *env, TgError *err, struct MetalApi *api);
  void (*metal_close)(void);
  const struct NcclApi *nccl;
  /* Reads the scheduler's state from its text (emu/stages.h). `tg opt --from` needs this, programs do not. */
  bool (*stages_read)(struct Sched *s, const char *text, const char *before);
  /* Reads the state of code generation from its text (emu/kernel_text.h). */
  bool (*kernel_read)(struct Kernel *k, const char *text, bool opts);
} Emulators;

/* Returns NULL if none are linked. Defined in emu/table.c, and for the library alone in emu/none.c. */
const Emulators *emulators(void);
#endif
