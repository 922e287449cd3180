"""CONTROL: the gradients of choices and loops, whose bodies are differentiated where they stand."""

from . import choice as _choice
from . import loops as _loops
