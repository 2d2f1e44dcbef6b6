/* table.h: the functions that the emulated drivers contribute to the table of runtime/emulators.h. */
#ifndef TG_TABLE_H
#define TG_TABLE_H
#include "runtime/emulators.h"

TgStatus cuda_mock_open(const TgEnv *env, TgError *err, struct CudaApi *api);
void cuda_mock_close(void);
const char *cuda_mock_ident(void);
TgStatus metal_mock_open(const TgEnv *env, TgError *err, struct MetalApi *api);
void metal_mock_close(void);
#endif
