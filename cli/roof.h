/* roof.h: the peak speed of a device, measured. */
#ifndef TG_CLI_ROOF_H
#define TG_CLI_ROOF_H

/* Operations and bytes per us. 0: not measured, because an emulated or interpreting device has no roof. */
typedef struct Roof {
  double flops_us, bytes_us;
} Roof;

/* device: its name, "CPU", or the name of its track in a trace, "CUDA queue". */
Roof roof_measured(const char *device);
#endif
