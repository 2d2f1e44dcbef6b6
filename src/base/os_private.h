/* os_private.h: private to src/base. Declares what each system does in its own way (os_linux.c,
 * os_macos.c). os.def describes each call. */
#ifndef TG_OS_PRIVATE_H
#define TG_OS_PRIVATE_H
#include "base/os.h"

char **os_environment(void);
int os_memory_file(const char *name);
int os_zero_pages(void *p, size_t n);
int os_large_pages(void *p, size_t n);
int os_process_watch(pid_t pid);
int os_process_limit(pid_t pid, int cpu_s);
int os_process_wait(int watch, pid_t pid, bool at_once);
int os_sockets(int fd[2]); /* connected streams that are closed on exec; os_send to one raises no SIGPIPE */
ssize_t os_send(int fd, const void *p, size_t n);
int os_word_wait(uint32_t *at, uint32_t value);
int os_word_wake(uint32_t *at);
int os_shared_wait(uint32_t *at, uint32_t value, long us);
int os_shared_wake(uint32_t *at);
int os_thread_pin(pthread_t t, int core);
int os_tiles_ask(void);
#endif
