"""OPTIMISE: Program -> Program passes, and the pipeline."""
