"""LLVM IR as text, and machine code of it that Python calls."""
