"""Groups of element-wise nodes and reductions as compiled loops."""
