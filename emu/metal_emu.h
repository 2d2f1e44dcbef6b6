/* metal_emu.h: Apple's runtime and frameworks as far as metal_api.def goes, with GPUs that are emulated
 * (emulate.h), for tg and the tests. The library finds them by the table in runtime/emulators.h. */
#ifndef TG_METAL_EMU_H
#define TG_METAL_EMU_H
#include "emu/table.h"
#include "runtime/metal.h"

/* TG_ERR_COMPILE where Metal's compiler would refuse what C++ lets pass: what, and in which line. */
TgStatus metal_lint(TgMem *mem, const char *text, TgError *err);

/* For tests: what lives in the stand-in and was asked of it since it was opened. */
typedef struct MetalMockCounts {
  int objects, buffers, indirects, pools; /* that live */
  uint64_t launches, executions, commands_written, compiles, fast_compiles, messages, misuses;
} MetalMockCounts;

MetalMockCounts metal_mock_counts(void);
MetalMockCounts metal_mock_left(void); /* objects, pools and misuses by all who have closed it */
const char *metal_mock_misuse(void);   /* the first since it was opened; "": none */
/* The nth message from now on of that name, as in metal_api.def ("new_buffer"), fails as its kind does: it
 * answers 0, or the command buffer that it is for ends with an error. NULL: any that can fail. nth 0: none.
 * False: there is no such message. */
bool metal_mock_fail(const char *name, uint64_t nth);
/* The types of a message's result, receiver, name and arguments, as the runtime writes them: "@@:Q". */
const char *metal_mock_types(MetalMessage m);
#endif
