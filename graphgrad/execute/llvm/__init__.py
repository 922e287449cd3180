"""Groups of element-wise nodes as LLVM IR, compiled in memory."""
