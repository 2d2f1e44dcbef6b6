/* nccl_mock.c: NCCL between emulated GPUs. In: sends and receives, in groups, on streams of the driver's
 * mock. Out: each message as a file that the sender's stream writes and the receiver's stream waits for. The
 * mock refuses what NCCL would refuse, or what would hang: calls outside a group; a stream that does not
 * exist or is not the one that the communicator used before; bytes that are not in memory of the stream's
 * GPU; a group that is interrupted by the end of its communicator; and a message whose size, number between
 * the two ranks, or group number is not what its receiver expects. Bytes that are sent must not change until
 * somebody waits for the stream. */
#define _GNU_SOURCE
#include "emu/nccl_mock.h"
#include "emu/cuda_mock.h"
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum {
  OK,
  SYSTEM_ERROR = 2,
  INTERNAL_ERROR,
  INVALID_ARGUMENT,
  INVALID_USAGE,
  MOST_RANKS = 64,
  MOST_GROUP = 65536
};

enum { WAITS_S = 60 };

struct NcclGroup {
  char folder[100];
  int rank, size;
  uint64_t sent[MOST_RANKS], received[MOST_RANKS];
  uint64_t groups[MOST_RANKS]; /* number of groups with that rank */
  /* the stream of everything that it is given */
  void *stream;
  int error;
};

/* One message, which a stream has to send or receive. */
typedef struct Message {
  NcclComm comm;
  int peer;
  bool out;
  uint64_t number, group;
  CUstream stream;
  void *p;
  size_t nbytes;
} Message;

static struct {
  int depth, n;
  Message *given; /* messages of the open group */
  NcclMockCounts counts;
} mock;

NcclMockCounts nccl_mock_counts(void) { return mock.counts; }

static int unique_id(NcclId *id) {
  memset(id, 0, sizeof *id);
  const char *tmp = getenv("TMPDIR");
  snprintf(id->bytes, sizeof id->bytes, "%.80s/tg-nccl-XXXXXX", tmp && *tmp ? tmp : "/tmp");
  return mkdtemp(id->bytes) ? OK : SYSTEM_ERROR;
}

/* The file of a message, or of a rank that has joined. */
typedef struct Path {
  char text[200];
} Path;

static Path path_of(const struct NcclGroup *c, int from, int to, uint64_t number, const char *end) {
  Path p;
  snprintf(p.text, sizeof p.text, "%s/%d-%d-%llu%s", c->folder, from, to, (unsigned long long)number, end);
  return p;
}

static Path rank_path(const struct NcclGroup *c, int rank) { return path_of(c, rank, rank, 0, ".rank"); }

static bool appears(const char *path) {
  double begin = time_now_s();
  while (access(path, F_OK)) {
    if (time_now_s() - begin > WAITS_S) return false;
    nanosleep(&(struct timespec){.tv_nsec = 200000}, NULL);
  }
  return true;
}

static bool written(const char *path, const void *p, size_t n) {
  int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  bool ok = fd >= 0 && write(fd, p, n) == (ssize_t)n;
  if (fd >= 0) close(fd);
  return ok;
}

static int join(NcclComm *out, int size, NcclId id, int rank) {
  if (!cuda_mock_now || mock.depth || rank < 0 || rank >= size || size > MOST_RANKS) return INVALID_USAGE;
  NcclComm c = calloc(1, sizeof *c);
  if (!c) return SYSTEM_ERROR;
  snprintf(c->folder, sizeof c->folder, "%.99s", id.bytes);
  c->rank = rank;
  c->size = size;
  bool ok = written(rank_path(c, rank).text, "", 0);
  for (int r = 0; r < size && ok; r++)
    ok = appears(rank_path(c, r).text);
  if (!ok) free(c);
  if (!ok) return SYSTEM_ERROR;
  mock.counts.comms++;
  return *out = c, OK;
}

/* Ends a communicator. The last rank's call removes the folder. */
static int ended(NcclComm c, bool well) {
  bool idle = !mock.depth;
  unlink(rank_path(c, c->rank).text);
  /* messages that were sent but not received */
  if (!well)
    for (int r = 0; r < c->size; r++)
      for (uint64_t k = 0; k < c->sent[r]; k++)
        unlink(path_of(c, c->rank, r, k, "").text);
  rmdir(c->folder);
  mock.counts.comms--;
  free(c);
  return idle ? OK : INVALID_USAGE;
}

static int destroy(NcclComm c) { return ended(c, true); }

static int abort_comm(NcclComm c) { return ended(c, false); }

static int async_error(NcclComm c, int *error) { return *error = c->error, OK; }

/* ---- work of streams */
/* The number of the group precedes the bytes of a message. */
enum { HEAD = sizeof(uint64_t) };

static const char *message_sent(const Message *m) {
  Path part = path_of(m->comm, m->comm->rank, m->peer, m->number, ".part"),
       path = path_of(m->comm, m->comm->rank, m->peer, m->number, "");
  char *host = mock_take(HEAD + m->nbytes), *own = mock_take(m->nbytes);
  bool read =
      host && own && !emu_read(cuda_mock.emu[m->stream->device], own, m->p, m->nbytes, &cuda_mock.why);
  if (read) memcpy(host, &m->group, HEAD), memcpy(host + HEAD, own, m->nbytes);
  bool ok = read && written(part.text, host, HEAD + m->nbytes) && !rename(part.text, path.text);
  mock_drop(host);
  ok = ok && !mock_sent(m->stream, m->p, own, m->nbytes);
  return ok     ? NULL
         : read ? "NCCL: a message cannot be written"
                : "NCCL: what is sent is no memory of its GPU";
}

static const char *message_received(const Message *m) {
  Path path = path_of(m->comm, m->peer, m->comm->rank, m->number, "");
  struct stat s;
  if (!appears(path.text)) return "NCCL: a message does not come: ranks send and receive in another order";
  char *host = malloc(HEAD + m->nbytes);
  int fd = open(path.text, O_RDONLY | O_CLOEXEC);
  bool same = fd >= 0 && !fstat(fd, &s) && (size_t)s.st_size == HEAD + m->nbytes;
  bool ok = same && host && read(fd, host, HEAD + m->nbytes) == (ssize_t)(HEAD + m->nbytes);
  bool grouped = ok && !memcmp(host, &m->group, HEAD);
  ok = grouped && !emu_write(cuda_mock.emu[m->stream->device], m->p, host + HEAD, m->nbytes, &cuda_mock.why);
  if (fd >= 0) close(fd);
  unlink(path.text);
  free(host);
  return ok        ? NULL
         : grouped ? "NCCL: where a message goes is no memory of its GPU"
         : same    ? "NCCL: ranks send and receive in other groups"
                   : "NCCL: a message has another size than its receiver expects";
}

static CUresult message_done(const Op *op) {
  const Message *m = (const Message *)(const void *)op->call.args;
  const char *wrong = m->out ? message_sent(m) : message_received(m);
  if (wrong) m->comm->error = INTERNAL_ERROR;
  return wrong ? mock_misused(wrong) : CUDA_OK;
}

/* ---- groups */
static bool stream_lives(const void *stream) {
  for (CUstream s = cuda_mock.streams; s; s = s->next)
    if (s == stream) return true;
  return false;
}

static int given(const void *p, size_t n, int type, int peer, NcclComm c, void *stream, bool out) {
  if (!mock.depth || !stream_lives(stream)) return INVALID_USAGE;
  if (!c || !p || !n || type != NCCL_BYTES || peer < 0 || peer >= c->size || peer == c->rank)
    return INVALID_ARGUMENT;
  if (mock.n == MOST_GROUP) return INVALID_USAGE;
  if (!mock.given && !(mock.given = calloc(MOST_GROUP, sizeof *mock.given))) return SYSTEM_ERROR;
  if (c->stream && c->stream != stream) return INVALID_USAGE;
  c->stream = stream;
  uint64_t *number = out ? &c->sent[peer] : &c->received[peer];
  mock.given[mock.n++] = (Message){c, peer, out, (*number)++, c->groups[peer], stream, (void *)p, n};
  return OK;
}

static int send_bytes(const void *p, size_t n, int type, int to, NcclComm c, void *stream) {
  mock.counts.sends++;
  return given(p, n, type, to, c, stream, true);
}

static int receive_bytes(void *p, size_t n, int type, int from, NcclComm c, void *stream) {
  mock.counts.receives++;
  return given(p, n, type, from, c, stream, false);
}

static int group_begin(void) { return mock.depth++, OK; }

/* Within a group nothing waits for another part of the group. So sends come first, and are done at once,
 * because a GPU goes on while the host of another GPU waits for it. */
static int group_end(void) {
  int result = mock.depth ? OK : INVALID_USAGE;
  if (!mock.depth || --mock.depth) return result;
  mock.counts.groups++;
  /* number of the next group with each of these ranks */
  for (int i = 0; i < mock.n; i++)
    mock.given[i].comm->groups[mock.given[i].peer] = mock.given[i].group + 1;
  for (int out = 1; out >= 0; out--)
    for (int i = 0; i < mock.n && !result; i++) {
      Message m = mock.given[i], *own = m.out == out ? mock_take(sizeof m) : NULL;
      if (m.out != out) continue;
      if (!own) return SYSTEM_ERROR;
      *own = m;
      Op op = {.kind = OP_OTHER, .other = message_done, .call = {.args = (uint64_t *)(void *)own}};
      op.to = out ? NULL : m.p;
      op.from = out ? m.p : NULL;
      op.nbytes = m.nbytes;
      op.to_device = op.from_device = m.stream->device;
      if (mock_op_given(m.stream, op) || (out && mock_stream_done(m.stream))) result = INTERNAL_ERROR;
    }
  mock.n = 0;
  free(mock.given);
  mock.given = NULL;
  return result;
}

const NcclApi nccl_mock = {.unique_id = unique_id,
                           .join = join,
                           .destroy = destroy,
                           .abort = abort_comm,
                           .async_error = async_error,
                           .send = send_bytes,
                           .receive = receive_bytes,
                           .group_begin = group_begin,
                           .group_end = group_end};
