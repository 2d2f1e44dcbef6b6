/* cache.c: compiled kernels on disk. The tables are kernel(key -> digest), object(digest -> bytes) and
 * compiler(path, mtime, size -> version). Objects are named by the SHA-256 of their bytes, which is checked
 * on every load; a row that does not match is a miss. Nothing here can make a realize fail: without SQLite,
 * without a private directory of our own, or with a broken file, there is simply no cache. */
#define _GNU_SOURCE
#include "runtime/cpu.h"
#include "base/os.h"
#ifdef TG_HAVE_SQLITE
#include <fcntl.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct Cache {
  TgMem *mem;
  const TgOs *os;
  sqlite3 *db;
  /* a file descriptor; -1: not open. The process that makes a kernel holds a lock on the byte whose number is
   * the beginning of the kernel's key */
  int marks;
  char marked[448];
};

static bool exec(Cache *c, const char *sql) {
  return sqlite3_exec(c->db, sql, NULL, NULL, NULL) == SQLITE_OK;
}

static sqlite3_stmt *prepare(Cache *c, const char *sql) {
  sqlite3_stmt *s = NULL;
  return sqlite3_prepare_v2(c->db, sql, -1, &s, NULL) == SQLITE_OK ? s : NULL;
}

/* Creates every missing part of a path, accessible to the owner alone. */
static bool make_dirs(const TgOs *os, char *path) {
  for (char *p = path + 1;; p++) {
    if (*p && *p != '/') continue;
    char keep = *p;
    *p = 0;
    if (os->mkdir(path, 0700) && errno != EEXIST && errno != EROFS && errno != EACCES) return false;
    if (!(*p = keep)) return true;
  }
}

static bool private_dir(const TgOs *os, const TgEnv *env, char *dir, size_t cap) {
  const char *xdg = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
  int n = env->cache_dir[0]        ? snprintf(dir, cap, "%s", env->cache_dir)
          : xdg && xdg[0] == '/'   ? snprintf(dir, cap, "%s/tinygrad-c", xdg)
          : home && home[0] == '/' ? snprintf(dir, cap, "%s/.cache/tinygrad-c", home)
                                   : -1;
  struct stat s;
  if (n <= 0 || (size_t)n >= cap || !make_dirs(os, dir) || os->lstat(dir, &s)) return false;
  /* If the directory were open to other users, they could plant machine code in it. */
  return S_ISDIR(s.st_mode) && s.st_uid == geteuid() && !(s.st_mode & 077);
}

bool cache_facts(TgMem *mem, const TgOs *os, const TgEnv *env, char *dir, size_t cap, int64_t *nbytes,
                 int64_t *entries) {
  static const char *const ends[] = {"", "-wal", "-shm"};
  char path[512];
  struct stat s;
  *nbytes = *entries = 0;
  Cache *c = cache_open(mem, os, env);
  if (!c || !private_dir(os, env, dir, cap)) {
    cache_close(c);
    return false;
  }
  for (size_t i = 0; i < TG_COUNT(ends); i++)
    if (snprintf(path, sizeof path, "%s/kernels-1.db%s", dir, ends[i]) < (int)sizeof path &&
        !os->stat(path, &s))
      *nbytes += s.st_size;
  sqlite3_stmt *q = prepare(c, "SELECT count(*) FROM kernel");
  if (q && sqlite3_step(q) == SQLITE_ROW) *entries = sqlite3_column_int64(q, 0);
  sqlite3_finalize(q);
  cache_close(c);
  return true;
}

Cache *cache_open(TgMem *mem, const TgOs *os, const TgEnv *env) {
  char dir[400], path[448];
  if (!env || !env->cache || !private_dir(os, env, dir, sizeof dir)) return NULL;
  snprintf(path, sizeof path, "%s/kernels-1.db", dir);
  struct stat s;
  if (os->lstat(path, &s) == 0 && (!S_ISREG(s.st_mode) || s.st_uid != geteuid())) return NULL;
  Cache *c = mem_alloc(mem, sizeof *c);
  if (!c) return NULL;
  c->mem = mem;
  c->os = os;
  c->marks = -1;
  snprintf(c->marked, sizeof c->marked, "%s/kernels-1.marks", dir);
  bool ok = sqlite3_open_v2(path, &c->db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX,
                            NULL) == SQLITE_OK;
  if (ok) sqlite3_busy_timeout(c->db, 250);
  ok = ok && exec(c, "PRAGMA journal_mode=WAL") && exec(c, "PRAGMA synchronous=NORMAL") &&
       exec(c, "CREATE TABLE IF NOT EXISTS kernel(key BLOB PRIMARY KEY, digest BLOB NOT NULL) WITHOUT ROWID;"
               "CREATE TABLE IF NOT EXISTS object(digest BLOB PRIMARY KEY, bytes BLOB NOT NULL);"
               "CREATE TABLE IF NOT EXISTS compiler(path TEXT PRIMARY KEY, mtime INTEGER, size INTEGER, "
               "version TEXT)");
  if (ok) return c;
  cache_close(c);
  return NULL;
}

void cache_close(Cache *c) {
  if (!c) return;
  cache_unclaim(c);
  sqlite3_close(c->db);
  mem_free(c->mem, c);
}

bool cache_get(Cache *c, const uint8_t key[32], uint8_t digest[32], Blob *out) {
  *out = (Blob){0};
  sqlite3_stmt *s =
      c ? prepare(
              c,
              "SELECT o.bytes, o.digest FROM kernel k JOIN object o ON o.digest = k.digest WHERE k.key = ?")
        : NULL;
  if (!s) return false;
  bool ok = sqlite3_bind_blob(s, 1, key, 32, SQLITE_STATIC) == SQLITE_OK && sqlite3_step(s) == SQLITE_ROW &&
            sqlite3_column_bytes(s, 1) == 32;
  if (ok) {
    const void *p = sqlite3_column_blob(s, 0);
    int n = sqlite3_column_bytes(s, 0);
    if (p && n > 0) sha256(p, (size_t)n, digest);
    ok = p && n > 0 && !memcmp(digest, sqlite3_column_blob(s, 1), 32) &&
         (out->at = mem_alloc(c->mem, (size_t)n));
    if (ok) memcpy(out->at, p, out->nbytes = (size_t)n);
  }
  sqlite3_finalize(s);
  return ok;
}

static bool put_pair(Cache *c, const char *sql, const void *a, const void *b, size_t nb) {
  sqlite3_stmt *s = prepare(c, sql);
  bool ok = s && nb <= INT32_MAX && sqlite3_bind_blob(s, 1, a, 32, SQLITE_STATIC) == SQLITE_OK &&
            sqlite3_bind_blob(s, 2, b, (int)nb, SQLITE_STATIC) == SQLITE_OK && sqlite3_step(s) == SQLITE_DONE;
  sqlite3_finalize(s);
  return ok;
}

void cache_put(Cache *c, const uint8_t (*keys)[32], int n, const Blob *obj) {
  if (!c || !exec(c, "BEGIN IMMEDIATE")) return;
  uint8_t digest[32];
  sha256(obj->at, obj->nbytes, digest);
  bool ok = put_pair(c, "INSERT OR REPLACE INTO object VALUES(?, ?)", digest, obj->at, obj->nbytes);
  for (int i = 0; i < n && ok; i++)
    ok = put_pair(c, "INSERT OR REPLACE INTO kernel VALUES(?, ?)", keys[i], digest, 32);
  if (!ok || !exec(c, "COMMIT")) exec(c, "ROLLBACK");
}

int cache_claim(Cache *c, const uint8_t key[32]) {
  int32_t at;
  memcpy(&at, key, sizeof at);
  if (!c) return -1;
  if (c->marks < 0) c->marks = c->os->open(c->marked, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (c->marks < 0) return -1;
  if (!c->os->file_mark(c->marks, at & INT32_MAX, true)) return 0;
  return errno == EAGAIN || errno == EACCES ? 1 : -1;
}

void cache_unclaim(Cache *c) {
  if (!c || c->marks < 0) return;
  c->os->close(c->marks);
  c->marks = -1;
}

bool cache_ident_get(Cache *c, const char *path, int64_t mtime_ns, int64_t nbytes, char *out, size_t cap) {
  sqlite3_stmt *s =
      c ? prepare(c, "SELECT version FROM compiler WHERE path = ? AND mtime = ? AND size = ?") : NULL;
  if (!s) return false;
  sqlite3_bind_text(s, 1, path, -1, SQLITE_STATIC);
  sqlite3_bind_int64(s, 2, mtime_ns);
  sqlite3_bind_int64(s, 3, nbytes);
  bool ok = sqlite3_step(s) == SQLITE_ROW && sqlite3_column_text(s, 0);
  if (ok) snprintf(out, cap, "%s", (const char *)sqlite3_column_text(s, 0));
  sqlite3_finalize(s);
  return ok;
}

void cache_ident_put(Cache *c, const char *path, int64_t mtime_ns, int64_t nbytes, const char *text) {
  sqlite3_stmt *s = c ? prepare(c, "INSERT OR REPLACE INTO compiler VALUES(?, ?, ?, ?)") : NULL;
  if (!s) return;
  sqlite3_bind_text(s, 1, path, -1, SQLITE_STATIC);
  sqlite3_bind_int64(s, 2, mtime_ns);
  sqlite3_bind_int64(s, 3, nbytes);
  sqlite3_bind_text(s, 4, text, -1, SQLITE_STATIC);
  sqlite3_step(s);
  sqlite3_finalize(s);
}
#else
Cache *cache_open(TgMem *mem, const TgOs *os, const TgEnv *env) {
  return (void)mem, (void)os, (void)env, NULL;
}

void cache_close(Cache *c) { (void)c; }

int cache_claim(Cache *c, const uint8_t key[32]) { return (void)c, (void)key, -1; }

void cache_unclaim(Cache *c) { (void)c; }

bool cache_facts(TgMem *mem, const TgOs *os, const TgEnv *env, char *dir, size_t cap, int64_t *nbytes,
                 int64_t *entries) {
  return (void)mem, (void)os, (void)env, (void)dir, (void)cap, (void)nbytes, (void)entries, false;
}

bool cache_get(Cache *c, const uint8_t key[32], uint8_t digest[32], Blob *out) {
  return (void)c, (void)key, (void)digest, *out = (Blob){0}, false;
}

void cache_put(Cache *c, const uint8_t (*keys)[32], int n, const Blob *obj) {
  (void)c, (void)keys, (void)n, (void)obj;
}

bool cache_ident_get(Cache *c, const char *path, int64_t mtime_ns, int64_t nbytes, char *out, size_t cap) {
  return (void)c, (void)path, (void)mtime_ns, (void)nbytes, (void)out, (void)cap, false;
}

void cache_ident_put(Cache *c, const char *path, int64_t mtime_ns, int64_t nbytes, const char *text) {
  (void)c, (void)path, (void)mtime_ns, (void)nbytes, (void)text;
}
#endif
