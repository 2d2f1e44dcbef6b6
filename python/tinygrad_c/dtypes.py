"""dtypes.py: the dtypes of the library by tinygrad's names: dtypes.float32, dtypes.half, dtypes.bool."""
from . import abi

# our name, theirs, the format of struct and memoryview ("" where Python has none), bytes
TABLE = {"BOOL": ("bool", "?"), "I8": ("int8", "b"), "U8": ("uint8", "B"), "I16": ("int16", "h"), "U16": ("uint16", "H"),
         "I32": ("int32", "i"), "U32": ("uint32", "I"), "I64": ("int64", "q"), "U64": ("uint64", "Q"), "F16": ("float16", "e"),
         "BF16": ("bfloat16", ""), "F32": ("float32", "f"), "F64": ("float64", "d"), "FP8E4M3": ("fp8e4m3", ""), "FP8E5M2": ("fp8e5m2", "")}
ALIASES = {"float": "float32", "half": "float16", "double": "float64", "int": "int32", "long": "int64", "short": "int16", "char": "int8",
           "uchar": "uint8", "ushort": "uint16", "uint": "uint32", "ulong": "uint64", "default_float": "float32", "default_int": "int32"}


class DType:
    """A dtype: .name, .itemsize in bytes, .format as struct has it, .id as the library has it."""

    def __init__(self, id, short, name, format, itemsize):
        self.id, self.short, self.name, self.format, self.itemsize = id, short, name, format, itemsize
        self.is_bool = name == "bool"
        self.is_float = "f" in short
        self.is_unsigned = short.startswith("u")

    def __repr__(self):
        return f"dtypes.{self.name}"

    def __reduce__(self):  # so that it is itself after a copy or a pickle
        return (dtypes.of, (self.name,))


class dtypes:
    """dtypes.float32 and so on; dtypes.of takes what names one: its name, NumPy's or PyTorch's dtype, float, int, bool."""
    by_id, by_name = {}, {}

    @classmethod
    def of(cls, v):
        if isinstance(v, DType):
            return v
        if isinstance(v, int) and v in cls.by_id:
            return cls.by_id[v]
        name = v if isinstance(v, str) else {float: "float32", int: "int32", bool: "bool"}.get(v) or getattr(v, "name", None) or getattr(v, "__name__", None) or str(v)
        name = name.split(".")[-1]
        if name not in cls.by_name:
            raise TypeError(f"{v!r} is no dtype of tinygrad_c; there are: {', '.join(n for _, (n, _) in TABLE.items())}")
        return cls.by_name[name]

    @classmethod
    def of_format(cls, format, itemsize):
        """By the buffer protocol: "<f4"'s "f", and "l", whose size is the machine's."""
        letter = format.lstrip("@=<>|!")
        if format[:1] in ">!" and itemsize > 1:
            raise TypeError(f"numbers whose high byte comes first ({format!r}) are not taken")
        if letter in "lLnN":
            letter = {4: "i", 8: "q"}[itemsize].upper() if letter in "LN" else {4: "i", 8: "q"}[itemsize]
        letter = "B" if letter == "c" else letter
        for d in cls.by_id.values():
            if d.format == letter and d.format and d.itemsize == itemsize:
                return d
        raise TypeError(f"elements of the format {format!r} are no dtype of tinygrad_c")

    @staticmethod
    def is_float(d):
        return d.is_float

    @staticmethod
    def is_int(d):
        return not d.is_float and not d.is_bool

    @staticmethod
    def is_unsigned(d):
        return d.is_unsigned


def _fill():
    size = abi.function(abi.FUNCTIONS["tg_dtype_size"])
    for short, (name, format) in TABLE.items():
        number = abi.ENUMS["TgDType"][f"TG_{short}"]
        d = DType(number, short.lower(), name, format, size(number))
        dtypes.by_id[number] = dtypes.by_name[name] = dtypes.by_name[d.short] = d
        setattr(dtypes, name, d)
    for alias, name in ALIASES.items():
        setattr(dtypes, alias, dtypes.by_name[name])
        dtypes.by_name.setdefault(alias, dtypes.by_name[name])
    dtypes.by_name["bool_"] = dtypes.by_name["bool"]  # NumPy's older name


_fill()
