/* roof.h: what a device can do, measured. */
#ifndef TG_CLI_ROOF_H
#define TG_CLI_ROOF_H

/* Operations and bytes in a us. 0: not measured, as a device that is emulated or interprets has no roof. */
typedef struct Roof {
  double flops_us, bytes_us;
} Roof;

/* device: its name, "CPU", or that of its track in a trace, "CUDA queue". */
Roof roof_measured(const char *device);
#endif
