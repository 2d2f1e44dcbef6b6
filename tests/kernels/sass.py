"""sass.py NVDISASM CUBIN..: machine code of NVIDIA's assembler, looked at for one kind of mistake: a uniform register or predicate that an instruction
may read before any instruction has written it, on some way from the kernel's begin. Such a value is whatever another kernel left there. In: object
files. Out: a line for each such read; exit 1 if there is one, or if the seeded mistake below is not found.

The key fact: a register is surely written at an instruction if it is on every way there. That is the usual analysis of definite assignment, forward,
where ways meet the intersection; code that nothing leads to is not looked at. Kernels have no functions, so a branch or a next instruction is a way.

The assembler (ptxas 12.1 to 13.5) made this mistake for sm_90 and sm_100 where a loop's bound was the negation of a uniform value: it computed the
value again at the loop's end and left it out at its begin, so the loop ended after one iteration. See rules/symbolic.rules, less-of-two."""
import re
import subprocess
import sys

seeded = """
.text.seeded:
        /*0000*/                   ULEA UR5, UR4, -UR7, 0x4 ;
        /*0010*/                   USEL UR5, UR5, 0xfffffff0, !UP0 ;
.L_x_4:
        /*0020*/                   UIADD3 UR5, -UR6, URZ, URZ ;
        /*0030*/                   ISETP.GE.AND P0, PT, R72, UR5, PT ;
        /*0040*/                   USEL UR6, UR5, 0xfffffff0, !UP0 ;
        /*0050*/              @!P0 BRA `(.L_x_4) ;
        /*0060*/                   EXIT ;
"""
SETS_TWO = ("UISETP", "UPLOP3")                    # results of an instruction: the first operand, of these two
SETS_CARRY = ("UIADD3", "ULEA", "UIMAD")           # .. and of these where the second is a predicate
UNIFORM = ("U", "LDCU", "S2UR", "R2UR", "CS2UR", "VOTEU", "REDUX")   # what writes uniform registers


def kernels(text):
    """Of each kernel: its name, its instructions in order, and the number of the instruction after each label."""
    found = []
    for line in text.splitlines():
        name = re.match(r"\.text\.(\S+):", line)
        label = re.match(r"(\.L_\S+):", line)
        instruction = re.match(r"\s*/\*[0-9a-f]+\*/\s+(.*?)\s*;", line)
        if name:
            found.append((name.group(1), [], {}))
        elif label and found:
            found[-1][2][label.group(1)] = len(found[-1][1])
        elif instruction and found:
            found[-1][1].append(instruction.group(1))
    return found


def several(register, n):
    return {"UR%d" % (int(register[2:]) + i) for i in range(n)} if register.startswith("UR") else {register}


def read_and_written(instruction):
    """-> operation, whether it has a condition, registers that it reads, that it writes, the label it leads to"""
    condition = re.match(r"@!?(U?P\w+)\s+", instruction)
    rest = instruction[condition.end():] if condition else instruction
    operation, _, operands = rest.partition(" ")
    operands = [o.strip() for o in operands.split(",")]
    base = operation.split(".")[0]
    results = 0
    if base.startswith(UNIFORM):
        carry = len(operands) > 1 and re.fullmatch(r"UP\d", operands[1])
        results = 2 if base in SETS_TWO or (base in SETS_CARRY and carry) else 1
    size = re.search(r"\.(64|128|256)\b", operation)
    words = int(size.group(1)) // 32 if size else 2 if ".WIDE" in operation else 1
    reads, writes = set(), set()
    if condition and re.fullmatch(r"UP\d", condition.group(1)):
        reads.add(condition.group(1))
    for i, operand in enumerate(operands):
        for register, wide in re.findall(r"\b(UR\d+|UP\d)\b(\.64)?", operand):
            if i < results and re.fullmatch(register + r"(\.\w+)*", operand):
                writes |= several(register, max(words, 2 if wide else 1))
            else:
                reads |= several(register, 2 if wide else 1)
    label = re.search(r"`\((\.L_\S+)\)", rest)
    return base, bool(condition), reads, writes, label.group(1) if label else None


def unwritten(instructions, labels):
    """Reads of what may not be written: (instruction, register)."""
    parts = [read_and_written(i) for i in instructions]
    before = [None] * len(parts)
    ways = [(0, frozenset())]
    while ways:
        at, written = ways.pop()
        while at < len(parts):
            met = written if before[at] is None else before[at] & written
            if met == before[at]:
                break
            before[at] = written = met
            base, condition, _, writes, label = parts[at]
            written = written | writes
            if base in ("BRA", "JMP", "CALL") and label in labels:
                ways.append((labels[label], written))
                if base != "CALL" and not condition and not re.search(r"BRA\S* !?U?P\d", instructions[at]):
                    break
            if base in ("EXIT", "RET") and not condition:
                break
            at += 1
    return [(instructions[i], r) for i, known in enumerate(before) if known is not None for r in sorted(parts[i][2] - known)]


def main(nvdisasm, files):
    _, instructions, labels = kernels(seeded)[0]
    if {r for _, r in unwritten(instructions, labels)} != {"UR4", "UR7", "UP0", "UR6"}:
        print("the seeded mistake is not found")
        return 1
    looked = bad = 0
    for file in files:
        text = subprocess.run([nvdisasm, "-c", file], capture_output=True, text=True, check=True).stdout
        for name, instructions, labels in kernels(text):
            looked += 1
            for instruction, register in unwritten(instructions, labels)[:1]:
                bad += 1
                print(f"{file}: {name}: {register} may not be written: {instruction}")
    print(f"{looked} kernels, {bad} read what may not be written")
    return bad > 0 or not looked


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
