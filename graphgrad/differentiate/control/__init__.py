"""CONTROL: the gradients of choices and loops, whose bodies are differentiated where they stand."""
