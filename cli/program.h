/* program.h: starts programs for a command and waits for them (program.c). */
#ifndef TG_CLI_PROGRAM_H
#define TG_CLI_PROGRAM_H
#include <stdbool.h>
#include <sys/types.h>

enum { PROGRAM_ABSENT = 127 }; /* the exit code of a program that cannot be started, as in shells */

enum { ASKED_BY_TERMINAL = 1, ASKED_BY_PROCESS };

/* As fork. Until program_awaited(pid) ends, a SIGINT, SIGTERM or SIGHUP that another process sends to this
 * one is passed on to the program. */
pid_t program_fork(void);
int program_awaited(pid_t pid); /* waits for the program; returns its exit code */
/* From now on SIGINT, SIGTERM and SIGHUP do not end this process (program_fork does this too). program_asked
 * returns who has asked for its end, or 0. */
void program_catch(void);
int program_asked(void);
/* Between the two calls (true, then false), a reader of stdout that leaves (`| head`) does not end this
 * process, which has a folder to remove. If the reader has left, the second call ends it. */
void program_outlives_reader(bool begins);

/* Runs a program (argument[0], ..), or `tg run` of an ONNX model, with the variable set. Its output is
 * redirected to stderr. Returns its exit code. */
int program_with(char **argument, const char *command, const char *variable, const char *value);
/* If a program was started and failed, prints how it ended. */
void program_ended(const char *command, const char *name, int code);
/* Called after exec failed: prints the reason, taken from errno. */
void program_absent(const char *command, const char *name);
int program_code(int status); /* status: from waitpid; 128 + the signal's number if a signal ended it */
#endif
