"""LLVM through llvmlite: IR text to functions in memory. Nothing else imports llvmlite."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from contextlib import suppress
from functools import cache as once
from itertools import count
from typing import Any
from weakref import finalize

import llvmlite
import llvmlite.binding as llvm
import numpy as np

from ....base.locks import lock_of_module
from . import cache
from .types import Target

llvm.initialize_native_target()
llvm.initialize_native_asmprinter()

COMPILING = lock_of_module()
"""Held while LLVM works: a lock within llvmlite is then not held while the process is forked."""

VERSION = f"llvmlite {llvmlite.__version__}, LLVM {'.'.join(map(str, llvm.llvm_version_info))}"


LINKED = 64  # libraries of one linker, which keeps 10 KB of each that was unloaded
PASSES = ("always_inliner", "sroa", "instruction_combine", "global_dead_code_eliminate")


@once
def host() -> Target:
    """The machine that this process runs on."""
    with COMPILING:
        features = llvm.get_host_cpu_features()
        return target_of(llvm.get_host_cpu_name(), features.flatten())


def target_of(cpu: str, features: str) -> Target:
    """The machine of this name and these features, `+fma,-avx512f`."""
    known = {f[1:] for f in features.split(",") if f.startswith("+")}
    width = 64 if "avx512f" in known else 32 if "avx2" in known else 16
    arm = not llvm.get_process_triple().startswith(("x86_64", "i386", "i686"))
    return Target(cpu, features, width, arm or "fma" in known, "avx512f" in known)


def object_code(text: str, target: Target) -> bytes:
    """A module compiled: an object file.

    In a context of its own: constants and types stay as long as the context that they are in.
    """
    with COMPILING:
        machine, context = _machine(target), llvm.create_context()
        module = llvm.parse_assembly(text, context)
        builder = llvm.create_pass_builder(machine, llvm.create_pipeline_tuning_options())
        _passes().run(module, builder)
        code: bytes = machine.emit_object(module)
        del builder, module, context, machine  # while it is held, a module before its context
    return code


@once
def _passes() -> llvm.ModulePassManager:
    """The same for all modules: llvmlite frees no passes that have run, which is 9 KB each time."""
    passes = llvm.create_new_module_pass_manager()
    for name in PASSES:
        getattr(passes, f"add_{name}_pass")()
    return passes


def _machine(target: Target) -> llvm.TargetMachine:
    native = llvm.Target.from_default_triple()
    return native.create_target_machine(
        cpu=target.cpu, features=target.features, opt=2, reloc="pic", codemodel="small"
    )


class Loaded:
    """Object code in memory, which stays there as long as this, and until the next is loaded.

    Its end may come anywhere, on a thread that must not wait for LLVM: nothing is unloaded then.
    """

    def __init__(
        self, code: bytes, names: Iterable[str], known: Mapping[str, int] | None = None
    ) -> None:
        with COMPILING:
            for library in tuple(_ended):
                _ended.remove(library)
                library.close()
            library = llvm.JITLibraryBuilder().add_object_img(code).add_current_process()
            for name, address in (known or {}).items():
                library.import_symbol(name, address)
            for name in names:
                library.export_symbol(name)
            number = next(_numbers)
            if number % LINKED == 0:
                _linker.cache_clear()  # the one before goes with the last of its libraries
            self._library = library.link(_linker(), f"graphgrad{number}")
        # An array: of two objects in a cycle, the garbage collector ends one while the other may
        # still call the code, but it knows nothing of arrays.
        self._life = np.empty(0)
        finalize(self._life, _ended.append, self._library)

    def address(self, name: str) -> int:
        """Where a function is."""
        address: int = self._library[name]
        return address


def loaded(text: str, names: Iterable[str], known: Mapping[str, int] | None = None) -> Loaded:
    """A module in memory: compiled for this machine, or found in the cache.

    names: functions that it has. known: addresses of what it has not.
    """
    target = host()
    key = cache.key_of(VERSION, *PASSES, repr(target), text)
    kept = cache.read(key)
    if kept is not None:
        with suppress(RuntimeError):  # not what LLVM wrote for this text, so that is made again
            return Loaded(kept, names, known)
    code = object_code(text, target)
    cache.write(key, code)
    return Loaded(code, names, known)


_numbers = count()
_ended: list[Any] = []  # libraries of what was Loaded


@once
def _linker() -> llvm.LLJIT:
    """The linker that puts all of a module side by side.

    The older one takes memory for code and for constants apart. Where the two come to lie more than
    2 GB from each other, as they may in a process with much memory in use, it ends the process:
    `Assertion isInt<32>(RealOffset) failed`.
    """
    return llvm.create_lljit_compiler(_machine(host()), use_jit_link=sys.platform != "win32")
