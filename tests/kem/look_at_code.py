#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Looks at what compilers have made of the kernels that work on secrets.

look_at_code.py ROOT BUILD BACKEND=FLAGS...

Each kernel is compiled by gcc and clang at several levels, and across files, and its
disassembly followed from instruction to instruction: what it loads through a pointer that
it was given is secret, and so is what comes of that. No conditional jump may depend on
it, no address, no division; and there are no gathers. planted_code.c has one function for
each rule, which every compiler has to be caught with. TAP. MLKEMD_LONG=1 takes all levels
(at -O0 vector kernels are looked through for division alone).

It sees one function and those that it calls, with what they are given; a secret that is
stored to the stack makes all of the stack secret but the slots that were written by name
since. It says nothing of what is not here: what libcrypto does, and what a CPU does.
"""

import collections
import concurrent.futures
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

PUBLIC, CONSTANTS, POINTERS, STACK, SECRET = range(5)  # CONSTANTS, ... point to these
ARGUMENTS = ["rdi", "rsi", "rdx", "rcx", "r8", "r9"]
# What a function is given where that is not plain pointers and numbers that are public.
GIVEN = {
    "select": {"r8": SECRET},
    "x25519_base8": {"rdi": POINTERS, "rsi": POINTERS},
    "x25519_shared8": {"rdi": POINTERS, "rsi": POINTERS, "rdx": POINTERS},
    "helper_barrier": {"rdi": SECRET},
    "helper_nonzero": {"rdi": SECRET},
    "helper_bit": {"rdi": SECRET},
    "helper_select": {"rdi": SECRET, "rsi": SECRET, "rdx": SECRET},
}
KERNELS = """keccak cbd2 cbd3 ntt invntt mulcache basemul tomont add rsub compress1 compress4
    compress5 compress10 compress11 decompress1 decompress4 decompress5 decompress10
    decompress11 pack12 unpack12 compare select""".split()
LANES = ["x25519_base8", "x25519_shared8"]
HELPERS = ["helper_barrier", "helper_nonzero", "helper_bit", "helper_select"]
PLANTED = {"planted_division": "division", "planted_branch": "jump",
           "planted_index": "address", "planted_store": "address",
           "planted_early_exit": "jump", "planted_mask": "jump", "planted_call": "jump"}
FOLDERS = {"generic": "generic", "avx2": "x86_64-avx2", "avx512": "x86_64-avx512"}

FUNCTION = re.compile(r"^[0-9a-f]+ <([^>]+)>:$")
LINE = re.compile(r"^ +([0-9a-f]+):\t(?:(?:bnd|notrack|rep|repz|repnz|lock|data16|cs|ds) )*"
                  r"(\S+)\s*([^#<]*?)\s*(?:<([^>+]+)(?:\+0x[0-9a-f]+)?>)?(?:\s*#.*)?$")
RELOCATION = re.compile(r"^\t+[0-9a-f]+: R_X86_64_\w+\t(?:\.text\.)?([\w.$]*)")
REGISTER = re.compile(r"%(\w+)")
MEMORY = re.compile(r"^\*?(?:%[fg]s:)?(-?(?:0x)?[0-9a-f]*)\(([^)]*)\)")
NARROW = {"al": "rax", "ah": "rax", "bl": "rbx", "bh": "rbx", "cl": "rcx", "ch": "rcx",
          "dl": "rdx", "dh": "rdx", "sil": "rsi", "dil": "rdi", "bpl": "rbp", "spl": "rsp"}
for long_name in ("ax", "bx", "cx", "dx", "si", "di", "bp", "sp"):
    NARROW[long_name] = NARROW["e" + long_name] = "r" + long_name
NO_RESULT = re.compile(r"^(cmp|test|ucomi|comi|vucomi|vcomi|bt[lqw]?$|ptest|vptest$|vtest"
                       r"|kortest|ktest)")
SETS_FLAGS = re.compile(r"^(cmp|test|add|sub|and|or|xor|neg|inc|dec|sh[lr]|sa[lr]|ro[lr]|bt"
                        r"|imul|mul|adc|sbb|ucomi|comi|vucomi|ptest|vptest|vtest|kortest"
                        r"|ktest|popcnt|lzcnt|tzcnt|bs[fr]|blsr|bzhi|andn|adox|adcx)")
READS_FLAGS = re.compile(r"^(set|cmov|adc|sbb|adox|adcx|rc[lr])")
KEEPS_TARGET = re.compile(r"^(mov|lea|set|pop|v(?!p?madd|fm|pternlog|perm[it]2|pshld|pshrd|pdp)"
                          r"|k|rorx|andn|pext|pdep|bextr|sarx|shlx|shrx|mulx|pshuf|cvt|bs"
                          r"|popcnt|lzcnt|tzcnt)")
JUMP = re.compile(r"^j(?!mp)")


def full(register):
    """The whole register that a name is a part of."""
    if re.fullmatch(r"[xyz]mm\d+", register):
        return "v" + register[3:]
    if re.fullmatch(r"r\d+[dwb]", register):
        return register[:-1]
    return NARROW.get(register, register)


class Instruction:
    def __init__(self, address, name, text, target):
        self.address, self.name, self.target = address, name, target
        self.called = None
        self.operands = self.split(text)

    @staticmethod
    def split(text):
        parts, depth, part = [], 0, ""
        for char in text:
            depth += (char == "(") - (char == ")")
            if char == "," and depth == 0:
                parts.append(part.strip())
                part = ""
            else:
                part += char
        return parts + [part.strip()] if part.strip() else parts


def disassemble(path):
    text = subprocess.run(["objdump", "-dr", "--no-show-raw-insn", str(path)], check=True,
                          capture_output=True, text=True).stdout
    functions, current = collections.OrderedDict(), None
    for line in text.splitlines():
        found = FUNCTION.match(line)
        if found:
            current = functions.setdefault(found.group(1), [])
            continue
        found = LINE.match(line)
        if found and current is not None:
            current.append(Instruction(int(found.group(1), 16), *found.groups()[1:]))
            continue
        found = RELOCATION.match(line)
        if found and current and current[-1].name.startswith(("call", "jmp")):
            current[-1].called = found.group(1)
    return functions


class State:
    """Kinds of registers and of named stack slots, and whether the stack holds secrets."""

    def __init__(self, registers=None):
        self.registers = dict(registers or {})
        self.registers.setdefault("rsp", STACK)
        self.slots = {}
        self.spilled = set()  # slots that were written from a register, whole
        self.stack = PUBLIC

    def copy(self):
        twin = State(self.registers)
        twin.slots, twin.stack = dict(self.slots), self.stack
        twin.spilled = set(self.spilled)
        return twin

    def join(self, other):
        """Takes in another way to the same place; whether that changed anything."""
        changed = other.stack > self.stack
        self.spilled &= other.spilled
        self.stack = max(self.stack, other.stack)
        for key, kind in other.registers.items():
            if kind > self.registers.get(key, PUBLIC):
                self.registers[key], changed = kind, True
        for key in set(self.slots) | set(other.slots):
            kind = max(self.slots.get(key, self.stack), other.slots.get(key, other.stack))
            if self.slots.get(key) != kind:
                self.slots[key], changed = kind, True
        return changed


class Walk:
    """One function of an object, and what it may not do."""

    def __init__(self, functions, report):
        self.functions, self.report = functions, report
        self.entries = {}
        self.todo = []

    def run(self, name, given):
        self.enter(name, State(given))
        while self.todo:
            self.function(self.todo.pop())

    def enter(self, name, state):
        entry = State({r: state.registers.get(r, PUBLIC) for r in ARGUMENTS
                       if state.registers.get(r, PUBLIC) != STACK})
        for i in range(32):
            entry.registers[f"v{i}"] = state.registers.get(f"v{i}", PUBLIC)
        entry.stack = state.stack
        if name not in self.entries:
            self.entries[name] = entry
        elif not self.entries[name].join(entry):
            return
        self.todo.append(name)

    def function(self, name):
        code = self.functions[name]
        at = {one.address: i for i, one in enumerate(code)}
        leaders = {at[int(one.operands[0], 16)] for one in code if one.name[0] == "j"
                   and one.operands and re.fullmatch("[0-9a-f]+", one.operands[0])
                   and int(one.operands[0], 16) in at}
        states, todo = {0: self.entries[name].copy()}, [0]
        while todo:
            i = todo.pop()
            state = states[i].copy()
            while i is not None:  # to the end of the block, by one state
                followers = self.step(name, code, i, at, leaders, state)
                i = None
                for follower in followers:
                    if follower not in leaders and len(followers) == 1:
                        i = follower
                    elif follower not in states:
                        states[follower] = state.copy()
                        todo.append(follower)
                    elif states[follower].join(state):
                        todo.append(follower)

    def say(self, name, one, what):
        self.report.add(f"{what} in {name}: {one.name} {', '.join(one.operands)}")

    def step(self, name, code, i, at, leaders, state):
        """Carries state over an instruction; where it may go on."""
        one, after = code[i], [i + 1] if i + 1 < len(code) else []
        if one.name.startswith("ret") or one.name in ("ud2", "hlt"):
            return []
        if one.name.startswith("call"):
            self.call(one, state)
            return after
        if one.name[0] == "j":
            if JUMP.match(one.name) and state.registers.get("flags", PUBLIC) == SECRET:
                self.say(name, one, "jump")
            if one.operands and one.operands[0].startswith("*"):
                if self.read(name, one, one.operands[0].lstrip("*"), state) == SECRET:
                    self.say(name, one, "jump")
                return sorted(leaders)
            goal = int(one.operands[0], 16) if one.operands else -1
            if one.called is not None or goal not in at:
                self.call(one, state)
                return after if JUMP.match(one.name) else []
            return ([at[goal]] + after) if JUMP.match(one.name) else [at[goal]]
        self.work(name, one, state)
        return after

    def call(self, one, state):
        callee = one.called or one.target
        callee = re.sub(r"[-+]0x[0-9a-f]+$", "", callee or "")
        passed = [state.registers.get(r, PUBLIC) for r in ARGUMENTS]
        if callee in self.functions:
            self.enter(callee, state)
        if STACK in passed:
            state.stack = SECRET  # written through a pointer, with whatever
            state.slots = {k: v for k, v in state.slots.items() if k in state.spilled}
        # The others are kept (gcc knows its own functions), or nobody reads them.
        state.registers["flags"] = PUBLIC
        state.registers["rax"] = SECRET if callee not in ("memcpy", "memset") else PUBLIC
        for number in range(32):
            state.registers[f"v{number}"] = SECRET

    def work(self, name, one, state):
        mnemonic, operands = one.name, one.operands
        if re.match(r"^i?div[bwlq]?$", mnemonic):
            self.say(name, one, "division")
        if mnemonic.startswith(("nop", "endbr", "prefetch", "vzero", "lfence", "leave", "cld")):
            return
        if mnemonic.startswith("push"):
            return  # a saved register comes back to where it was
        if mnemonic.startswith("pop"):
            state.registers[full(operands[0].lstrip("%"))] = PUBLIC
            return
        if mnemonic in ("stos", "movs") or not operands:
            return
        kinds = [self.read(name, one, operand, state) for operand in operands[:-1]]
        target = operands[-1]
        if mnemonic.startswith("lea"):
            self.write(target, self.pointer(operands[0], state), state)
            return
        if NO_RESULT.match(mnemonic) and not mnemonic.startswith(("vptestm", "vpcmp")):
            kinds.append(self.read(name, one, target, state))
            state.registers["flags"] = SECRET if SECRET in kinds else PUBLIC
            return
        keeps = len(operands) > 1 and KEEPS_TARGET.match(mnemonic)
        same = len(operands) > 1 and len(set(operands)) == 1
        merges = "{%k" in target and "{z}" not in target
        if READS_FLAGS.match(mnemonic):
            kinds.append(state.registers.get("flags", PUBLIC))
        if not keeps or merges or mnemonic.startswith("cmov") or len(operands) == 1:
            kinds.append(self.read(name, one, target, state))
        for mask in re.findall(r"\{%(k\d)\}", " ".join(operands)):
            kinds.append(state.registers.get(mask, PUBLIC))
        if same and re.match(r"^v?p?(xor|sub)", mnemonic):
            kinds = [PUBLIC]
        kind = SECRET if SECRET in kinds else max(kinds, default=PUBLIC)
        if re.match(r"^i?mul[bwlq]?$", mnemonic) and len(operands) == 1:
            kind = max(kind, state.registers.get("rax", PUBLIC))
            state.registers["rax"] = state.registers["rdx"] = kind
        elif MEMORY.match(target):
            self.read(name, one, target, state)  # its address
            self.write(target, kind, state)
            self.spill(one, state)
        else:
            self.write(target, kind, state)
            if mnemonic.startswith("mulx"):
                self.write(operands[-2], kind, state)
        if SETS_FLAGS.match(mnemonic) and "x" != mnemonic[-1:]:
            state.registers["flags"] = SECRET if kind == SECRET else PUBLIC

    def spill(self, one, state):
        slot = self.slot(re.sub(r"\{[^}]*\}", "", one.operands[-1]), state)
        if slot and re.match(r"^mov[lq]?$", one.name) and one.operands[0].startswith("%"):
            state.spilled.add(slot)

    def pointer(self, operand, state):
        inside = MEMORY.match(operand).group(2)
        if "%rip" in inside:
            return CONSTANTS
        kinds = [state.registers.get(full(r), PUBLIC) for r in REGISTER.findall(inside)]
        return SECRET if SECRET in kinds else max(kinds, default=PUBLIC)

    @staticmethod
    def slot(operand, state):
        """A stack slot that is named by its distance alone, or None."""
        found = MEMORY.match(operand)
        inside = found.group(2)
        if "," in inside or full(inside.lstrip("%")) not in ("rsp", "rbp"):
            return None
        register = full(inside.lstrip("%"))
        return (register, found.group(1)) if state.registers.get(register) == STACK else None

    def read(self, name, one, operand, state):
        operand = re.sub(r"\{[^}]*\}", "", operand).strip()
        found = MEMORY.match(operand)
        if not found:
            register = REGISTER.match(operand)
            return state.registers.get(full(register.group(1)), PUBLIC) if register else PUBLIC
        if one.name.startswith(("lea", "nop", "prefetch")):
            return PUBLIC
        kind = self.pointer(operand, state)
        if kind == SECRET:
            self.say(name, one, "address")
            return SECRET
        if kind == STACK:
            slot = self.slot(operand, state)
            return state.slots.get(slot, state.stack) if slot else state.stack
        return PUBLIC if kind in (CONSTANTS, POINTERS) else SECRET

    def write(self, operand, kind, state):
        operand = re.sub(r"\{[^}]*\}", "", operand).strip()
        if not MEMORY.match(operand):
            state.registers[full(operand.lstrip("%"))] = kind
        elif self.pointer(operand, state) == STACK:
            slot = self.slot(operand, state)
            if slot:
                state.slots[slot] = kind
            if kind == SECRET:
                state.stack = SECRET


def faults_of(functions, name, given):
    report = set()
    if name not in functions:
        return {f"{name} is not there"}
    Walk(functions, report).run(name, given)
    return report


class Build:
    """Compilers, levels and sources; objects in a folder of their own."""

    def __init__(self, root, table, folder):
        self.root, self.table, self.folder = root, table, pathlib.Path(folder)

    def compile(self, compiler, level, flags, sources):
        out = self.folder / f"{abs(hash((compiler, level, tuple(flags), tuple(sources))))}.o"
        across = ["-flto", "-flinker-output=nolto-rel"] if "-flto" in level else []
        command = [compiler, "-std=c11", "-D_GNU_SOURCE", "-DMLKEMD_RANGE_ASSERTS=0",
                   f"-I{self.root}", "-ffunction-sections", *flags, *level.split(), *across,
                   "-fno-asynchronous-unwind-tables", "-nostdlib", "-r",
                   *map(str, sources), "-o", str(out)]
        subprocess.run(command, check=True, capture_output=True, text=True)
        functions = disassemble(out)
        out.unlink()
        return functions

    def sources(self, backend):
        folder = self.root / "kem" / "arch" / FOLDERS[backend]
        files = [folder / f"{name}.c" for name in
                 ("keccak", "ntt", "pack", "sample", "verify")]
        lanes = [folder / f"{name}.c" for name in
                 ("fe", "fe_invert", "x25519", "x25519_base")] + [self.table]
        return files, lanes if backend == "avx512" else []


def look(build, compiler, level, backend, flags):
    """What is wrong with a backend's kernels, as lines of text."""
    kernels, lanes = build.sources(backend)
    wanted = [(kernels, [f"{name}_{backend}" for name in KERNELS])]
    if lanes:
        wanted.append((lanes, [f"{name}_{backend}" for name in LANES]))
    if backend == "generic":
        wanted.append(([build.root / "tests" / "kem" / "planted_code.c"], HELPERS))
        kem = [build.root / "kem" / f"{name}.c" for name in
               ("encode", "fips202", "kpke", "mlkem", "poly", "sample")]
        wanted.append((kem, []))
    found = []
    for sources, names in wanted:
        if level == "-O0" and backend != "generic":
            names = []  # every register lives on the stack: not to be told apart
        functions = build.compile(compiler, level, flags, sources)
        for name in names:
            given = GIVEN.get(name.rsplit("_" + backend, 1)[0], {})
            found += sorted(faults_of(functions, name, given))
        if "planted" in str(sources[0]):
            continue
        # Division is looked for in everything, followed or not.
        found += [f"division in {name}" for name, code in functions.items()
                  if any(re.match(r"^i?div[bwlq]?$", one.name) for one in code)]
    return found


def missed(build, compiler, level):
    """Rules that did not catch their planted function."""
    functions = build.compile(compiler, level, [],
                              [build.root / "tests" / "kem" / "planted_code.c"])
    return [name for name, rule in PLANTED.items()
            if not any(line.startswith(rule) for line in faults_of(functions, name, {}))]


def compilers():
    names = ["gcc"] if shutil.which("gcc") else []
    for name in ("clang", "clang-14"):
        if shutil.which(name):
            return names + [name]
    return names


def main():
    root, table = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
    backends = [argument.split("=", 1) for argument in sys.argv[3:]]
    if not shutil.which("objdump"):
        print("1..1\nok 1 - code is looked at # SKIP objdump is not here")
        return 0
    is_long = os.environ.get("MLKEMD_LONG") == "1"
    levels = ["-O0", "-Os", "-O2", "-O3", "-O3 -flto"] if is_long else ["-Os", "-O2"]
    lines = []
    with tempfile.TemporaryDirectory() as folder, \
            concurrent.futures.ProcessPoolExecutor(os.cpu_count() or 1) as pool:
        build = Build(root, table, folder)
        for compiler in compilers():
            for level in levels:
                if "lto" in level and compiler != "gcc":
                    lines.append((f"code is looked at with {compiler} {level} "
                                  "# SKIP clang's bitcode needs a linker of its own", None))
                    continue
                lines.append((f"planted code is caught with {compiler} {level}",
                              pool.submit(missed, build, compiler, level)))
                for backend, flags in backends:
                    lines.append((f"{backend}: secrets decide no jump, address or division "
                                  f"with {compiler} {level}",
                                  pool.submit(look, build, compiler, level, backend,
                                              flags.split())))
        bad = 0
        for number, (text, future) in enumerate(lines, 1):
            try:
                found = future.result() if future else []
            except subprocess.CalledProcessError as error:
                found = [error.stderr]
            print("not ok" if found else "ok", number, "-", text)
            for line in found:
                print("#", line)
            bad += bool(found)
    print(f"1..{len(lines)}")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
