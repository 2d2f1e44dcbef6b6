"""perfetto_up.py: whether the trace processor starts, on an empty trace."""
import io

from perfetto.trace_processor import TraceProcessor

TraceProcessor(trace=io.BytesIO(b'[{"name":"a","ph":"X","pid":1,"tid":1,"ts":1,"dur":1}]')).close()
