"""context.py: the one context of this process, its errors, and how Ctrl-C stops what it does.

All threads share the context, and a lock has their calls go one at a time, because a library's context is for one thread
at a time: a tensor may be used in any thread, and computing in two does not go faster. What Python drops is put in a queue
and released at the next call, because Python drops things in any thread and in the middle of a call. A child that was
forked gets a context of its own; tensors of its parent are an error there."""
import atexit
import collections
import contextlib
import ctypes
import os
import signal
import sys
import threading

from . import abi

STATUS = abi.ENUMS["TgStatus"]


class TinygradError(RuntimeError):
    """What the library refused, with its own words; .status is its TgStatus."""
    status = STATUS["TG_ERR_INTERNAL"]


class ShapeError(TinygradError, ValueError):
    """Shapes that do not go together (TG_ERR_SHAPE)."""


class OutOfRangeError(ShapeError, IndexError):
    """An index outside of its axis, or too many of them."""


class DTypeError(TinygradError, TypeError):
    """A dtype that the operation does not take (TG_ERR_DTYPE)."""


class ArgumentError(TinygradError, ValueError):
    """A value that cannot be (TG_ERR_VALUE)."""


class OutOfMemoryError(TinygradError, MemoryError):
    """No memory, or a limit of it (TG_ERR_NOMEM)."""


class FileError(TinygradError, OSError):
    """A file that cannot be read or written (TG_ERR_IO)."""


class DeviceError(TinygradError):
    """A device that is not there, or tensors of two (TG_ERR_DEVICE)."""


class CompileError(TinygradError):
    """A kernel that did not compile (TG_ERR_COMPILE)."""


class StateError(TinygradError):
    """A call at the wrong time (TG_ERR_STATE)."""


class LimitError(TinygradError):
    """More than the library goes to (TG_ERR_LIMIT)."""


class Cancelled(TinygradError):
    """tg_cancel was called (TG_ERR_CANCELLED); of Ctrl-C it is a KeyboardInterrupt."""


KINDS = {"SHAPE": ShapeError, "DTYPE": DTypeError, "VALUE": ArgumentError, "NOMEM": OutOfMemoryError, "IO": FileError, "DEVICE": DeviceError,
         "COMPILE": CompileError, "STATE": StateError, "LIMIT": LimitError, "CANCELLED": Cancelled}
CLASSES = {STATUS[f"TG_ERR_{name}"]: kind for name, kind in KINDS.items()}
CANCELLED = STATUS["TG_ERR_CANCELLED"]
for kind in (TinygradError, OutOfRangeError, *CLASSES.values()):
    kind.__module__ = __package__  # what a traceback calls it: tinygrad_c.ShapeError
BASIC = ("tg_open", "tg_close", "tg_error", "tg_errmsg", "tg_clear_error", "tg_scope_begin", "tg_scope_end", "tg_keep", "tg_release",
         "tg_cancel", "tg_cancelled", "tg_set_error", "tg_grad", "tg_origin", "tg_status_name")
c = {name: abi.function(abi.FUNCTIONS[name]) for name in BASIC}  # what a call itself needs
LOCK = threading.RLock()


def of_status(status, text=None):
    """The exception that a status is; without a text, as of an argument that is NULL, it says no more than that."""
    error = CLASSES.get(status, TinygradError)(text or c["tg_status_name"](status).decode())
    error.status = status
    return error


class Context:
    """A TgContext. dead: tensors that were dropped; ended: other things, which go first, because they may use tensors."""

    def __init__(self):
        self.dead, self.ended = collections.deque(), collections.deque()
        self.handles = {}  # what has to end before the context: address -> function
        self.callbacks = []  # what the library may still call
        self.used = False  # a call is under way, or one was left in the middle by an exception
        self.inside = 0    # of a callback: calls in calls are as they should be
        self.interrupted = False
        self.refused = None  # an exception within a callback, on its way to who made the call
        options = abi.struct("TgOpenOptions")(size=ctypes.sizeof(abi.struct("TgOpenOptions")))
        self.p = c["tg_open"](ctypes.byref(options))
        if not self.p:
            raise OutOfMemoryError("no memory for a context")
        if c["tg_error"](self.p):
            error = self.error()
            c["tg_close"](self.p)
            raise error

    def error(self):
        """The error that the context has, as an exception; it is cleared, so that the context goes on."""
        status, text = c["tg_error"](self.p), c["tg_errmsg"](self.p).decode(errors="replace")
        c["tg_clear_error"](self.p)
        if not status:
            return None
        if self.refused is not None:
            refused, self.refused = self.refused, None
            return refused
        if status == CANCELLED and self.interrupted:
            self.interrupted = False
            return KeyboardInterrupt(text)
        return of_status(status, text)

    def recover(self):
        """After an exception that came from outside, as Ctrl-C does, in the middle of a call: no scope stays open, and
        neither an error nor a wish to stop is left for the next one."""
        while not c["tg_scope_end"](self.p):
            pass
        c["tg_cancelled"](self.p)
        c["tg_clear_error"](self.p)
        self.used = self.interrupted = False
        self.refused = None

    def refuse(self, e):
        """What a callback returns after an exception: a status; the call that led there raises the exception again."""
        self.refused = e
        return c["tg_set_error"](self.p, STATUS["TG_ERR_STATE"], b"a callback raised an exception")

    def bury(self):
        """Releases what Python dropped; within a callback tensors alone, because a captured function is at work."""
        while self.ended and not self.inside:
            address = self.ended.popleft()
            end = self.handles.pop(address, None)
            if end:
                end(address)
        while self.dead:
            c["tg_release"](self.dead.popleft())

    @contextlib.contextmanager
    def in_callback(self):
        self.inside += 1
        try:
            yield
        finally:
            self.inside -= 1

    def close(self):
        self.bury()
        for address in reversed(list(self.handles)):
            self.handles.pop(address)(address)
        c["tg_close"](self.p)
        self.p = None


_now = None


def context():
    """The process's context, opened by the first that asks."""
    global _now
    if _now is None or _now.p is None:
        with LOCK:
            if _now is None:
                _now = Context()
            elif _now.p is None:
                raise StateError("the interpreter is ending, and the context was closed")
    return _now


def _forked():
    global _now, LOCK, _watch
    _now, LOCK, _watch = None, threading.RLock(), None


def _ending():
    """At the interpreter's end; a thread that still computes is asked to stop, and not waited for without end."""
    if _now is None or not _now.p:
        return
    if not LOCK.acquire(blocking=False):
        c["tg_cancel"](_now.p)
        if not LOCK.acquire(timeout=10):
            return
    _now.close()


atexit.register(_ending)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)


class _Watch:
    """Ctrl-C while the library computes. Python's own handler waits until the call returns; but it writes the signal's
    number to a file at once, which a thread reads that calls tg_cancel, so that the call returns."""

    def __init__(self):
        self.read, self.write = os.pipe()
        os.set_blocking(self.write, False)
        self.before = -1
        threading.Thread(target=self.loop, name="tinygrad_c-interrupt", daemon=True).start()

    def loop(self):
        while True:
            numbers = os.read(self.read, 64)
            if self.before >= 0:  # whoever listened before still hears it
                with contextlib.suppress(OSError):
                    os.write(self.before, numbers)
            if signal.SIGINT in numbers and _now is not None and _now.used:
                _now.interrupted = True
                c["tg_cancel"](_now.p)


_watch = None
_main = threading.main_thread().ident


@contextlib.contextmanager
def interruptible():
    """Around what may take long, in the thread that gets signals; a handler of the user's own is left alone."""
    global _watch
    if threading.get_ident() != _main or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield
        return
    if _watch is None:
        _watch = _Watch()
    before = signal.set_wakeup_fd(_watch.write, warn_on_full_buffer=False)
    if before != _watch.write:
        _watch.before = before
    try:
        yield
    finally:
        signal.set_wakeup_fd(before)


# ---- origins: where in a Python program an operation was asked for
ORIGINS = any(os.environ.get(f"TG_{name}") for name in ("DEBUG", "PROFILE", "EXPLAIN", "VIZ"))
_places = {}  # texts that the library points to live as long as the process


def place(name):
    """'relu (net.py:12)': the innermost line outside of this package."""
    frame = sys._getframe(2)
    while frame and frame.f_code.co_filename.startswith(str(abi.HERE)):
        frame = frame.f_back
    key = (name, frame.f_code, frame.f_lineno) if frame else name
    if key not in _places:
        where = f"{os.path.basename(frame.f_code.co_filename)}:{frame.f_lineno}" if frame else ""
        _places[key] = f"{name} ({where})".encode()
    return _places[key]
